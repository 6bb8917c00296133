"""The process: loop, sockets, logs, systemd, reload, shutdown."""

"""The process: loop, sockets, logs, systemd, reload, shutdown."""

from fared.startup import import_when_needed, relax_collector, without

relax_collector()
for _rarely_used in ("hashlib", "hmac"):
    import_when_needed(_rarely_used)
with without("typing_extensions"):
    import msgspec  # noqa: F401

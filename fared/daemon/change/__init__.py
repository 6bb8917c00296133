"""From the configuration to settings, and every change of them while the daemon runs.

``settings`` converts a configuration for all packages, with ``common_settings``, ``ospf_settings``,
``isis_settings`` and ``bgp_settings``, and what ``machine`` tells: router id, interfaces.
``operation`` gives the router these, less what ``drains`` has out of service.

``reload`` reads and applies the file, ``config_file``, again; ``config_change`` applies another
with a way back, ``history`` keeps those that ran, ``last_configuration`` replaces a file that is
refused. ``config_documents`` shows them. ``restart`` and ``boot_count`` are what the next process
must know.
"""

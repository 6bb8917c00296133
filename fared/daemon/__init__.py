"""The process: loop, sockets, logs, systemd, reload, shutdown."""

from fared.startup import (
    import_when_needed,
    leave_empty,
    relax_collector,
    skip_last_collection,
    without,
)

relax_collector()
skip_last_collection()
for _rarely_used in ("hashlib", "hmac", "difflib", "locale", "tokenize"):
    import_when_needed(_rarely_used)
leave_empty("numpy._core._add_newdocs", "numpy._core._add_newdocs_scalars", "asyncio.sslproto")
with without("typing_extensions"):
    import msgspec  # noqa: F401

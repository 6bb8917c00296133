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
import_when_needed("hashlib", "hmac", "difflib", "tokenize", "shutil")
import_when_needed("msgspec.inspect", "msgspec.toml", "msgspec.yaml")
import_when_needed("msgspec._json_schema", functions=("schema", "schema_components"))
import_when_needed("structlog.stdlib", "structlog.threadlocal")
import_when_needed("numpy.linalg", functions=("eigvals", "inv", "lstsq", "matrix_power"))
leave_empty("numpy._core._add_newdocs", "numpy._core._add_newdocs_scalars", "asyncio.sslproto")
with without("typing_extensions"):
    import msgspec  # noqa: F401

"""fared-cli, the operator's tool."""

from fared.runtime.startup import (
    import_when_needed,
    load_msgspec,
    relax_collector,
    skip_last_collection,
)

relax_collector()
skip_last_collection()
import_when_needed("difflib")
load_msgspec()

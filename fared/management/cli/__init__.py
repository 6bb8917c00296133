"""fared-cli, the operator's tool."""

from fared.runtime.startup import (
    import_when_needed,
    leave_untranslated,
    load_msgspec,
    relax_collector,
    skip_last_collection,
)

relax_collector()
skip_last_collection()
import_when_needed(
    *("difflib", "shutil", "signal", "textwrap", "tokenize"),  # of mistakes, and of broken output
    functions={"pickle": ("dumps", "loads")},  # of rich, for texts with links
)
leave_untranslated()
load_msgspec()

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
import_when_needed("difflib", "shutil", "textwrap")  # of misspelt words, and errors on a terminal
leave_untranslated()
load_msgspec()

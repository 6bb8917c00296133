"""``python -m bench NAME [ARGUMENT...]`` runs one benchmark alone.

NAME is that of a section, or of another file of this directory: ``receivers``, ``fib/groups``. Its
``main`` reads the arguments; without one, its rows are printed.
"""

from __future__ import annotations

import importlib
import sys

from bench import module_of
from bench.report import show

if __name__ == "__main__":
    if len(sys.argv) == 1:
        sys.exit(__doc__)
    name = sys.argv.pop(1)
    sys.argv[0] = f"python -m bench {name}"
    try:
        module = importlib.import_module(module_of(name))
    except LookupError as error:
        sys.exit(str(error))
    if hasattr(module, "main"):
        sys.exit(module.main())
    show(module.rows())

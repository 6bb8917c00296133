"""Imports modules of a package without executing the package's ``__init__`` first.

``importlib.util.LazyLoader`` cannot do it: the import of a submodule reads ``__path__`` of the
package, which makes it load. A module's own ``__getattr__`` (PEP 562) is asked only for names that
are not there yet.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys


def import_when_needed(name: str) -> None:
    """Enter the package ``name`` into ``sys.modules``; execute it when a name of it is missing.

    Its modules can be imported at once. Nothing is done where it is imported already, or cannot
    be found: then importing it says so.
    """
    spec = None if name in sys.modules else importlib.util.find_spec(name)
    if spec is None or spec.loader is None:
        return
    loader = spec.loader
    package = importlib.util.module_from_spec(spec)

    def find(attribute: str) -> object:
        module = f"{name}.{attribute}"
        if importlib.util.find_spec(module) is not None:
            return importlib.import_module(module)
        vars(package).pop("__getattr__", None)
        loader.exec_module(package)
        return getattr(package, attribute)

    vars(package)["__getattr__"] = find
    sys.modules[name] = package

"""Settings of the interpreter that reduce start-up time, memory and pauses.

Eight measures, each with its measured gain in CPU time on a machine of two cores, where a daemon
imports in some 230 ms. A measure that no longer gains is to be removed. The packages
``fared.daemon`` and ``fared.cli`` apply them; ``tests/test_startup.py`` tests each.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Final

_YOUNG, _MIDDLE, _OLD = 50_000, 20, 50
"""Net allocations before a collection of the youngest generation, and collections before one of
the next."""
_LARGEST_KEPT: Final = 32 * 1024 * 1024 - 65536
"""glibc's dynamic mmap threshold ignores blocks of 32 MiB and more."""
_ARENA_MAX: Final = -8
"""glibc's ``M_ARENA_MAX``."""


def import_when_needed(name: str) -> None:
    """Enter the module ``name`` into ``sys.modules``; execute it at the first access to a name.

    The package pyroute2 imports all its modules (conntrack, WireGuard, an SQL database of
    interfaces) with any of them. Gain: 100 ms and 14 MB. OpenSSL, which hashlib imports, is needed
    for authentication only. Gain: 5 ms and 3.7 MB. difflib is for misspelt words, locale for text
    of other programs, tokenize for tracebacks. Gain: 0.4 MB.

    Modules of a package can be imported as usual. A module that is already imported, or cannot be
    found, is left as it is. ``importlib.util.LazyLoader`` does not serve: a second import of the
    module, or an import of a submodule, reads an attribute, which loads it. Python calls a module's
    ``__getattr__`` (PEP 562) only for names that are missing.
    """
    spec = None if name in sys.modules else importlib.util.find_spec(name)
    if spec is None or spec.loader is None:
        return
    loader = spec.loader
    is_package = spec.submodule_search_locations is not None
    entered = importlib.util.module_from_spec(spec)

    def find(attribute: str) -> object:
        module = f"{name}.{attribute}"
        if is_package and importlib.util.find_spec(module) is not None:
            return importlib.import_module(module)
        vars(entered).pop("__getattr__", None)
        loader.exec_module(entered)
        return getattr(entered, attribute)

    vars(entered)["__getattr__"] = find
    sys.modules[name] = entered


def leave_empty(*names: str) -> None:
    """Enter empty modules of these names into ``sys.modules``, unless they are loaded.

    For modules that nobody calls: two of NumPy only attach the texts of ``help`` to its functions,
    and were separated so that they can be left out. Gain: 0.24 MB. One of asyncio is for TLS, which
    fared does not use. Gain: 0.1 MB.
    """
    for name in names:
        sys.modules.setdefault(name, ModuleType(name))


@contextmanager
def without(name: str) -> Iterator[None]:
    """Hide a package that is not loaded yet from imports inside the block.

    structlog imports rich, if installed, to format tracebacks; a journal does not show these. Gain:
    40 ms and 4 MB. asyncio imports ssl, but fared uses no TLS. Gain: 5 ms and 4 MB. msgspec
    imports typing_extensions, but typing has all that it uses. Gain: 4 ms and 0.3 MB.
    """
    if name in sys.modules:
        yield
        return
    sys.modules[name] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules[name]


def keep_freed(size: int) -> None:
    """Keep up to twice ``size`` freed bytes (64 MiB at most) in the process.

    glibc returns free memory beyond twice the largest block freed so far to the kernel; using it
    again costs a page fault for each 4 KiB. Gain, with 600,000 links: updating the graph after a
    link change takes 8.5 instead of 11 to 13 ms, and 40 such changes cause 2,600 page faults
    instead of 14,000 to 17,500.
    """
    import numpy as np  # noqa: PLC0415 - tools do not load it

    np.empty(min(size, _LARGEST_KEPT), np.uint8)  # never written to, so it takes no memory


def share_heap() -> None:
    """Let all threads allocate from one heap; called before the first thread starts.

    glibc gives each new thread a heap of its own. A daemon's few threads read files and wait for
    one lock anyway. Gain: 0.4 MB.
    """
    import ctypes  # noqa: PLC0415 - tools do not load it; NumPy has loaded it here

    allocator_option = getattr(ctypes.CDLL(None), "mallopt", None)  # of glibc only
    if allocator_option is not None:
        allocator_option(_ARENA_MAX, 1)


def release_freed() -> None:
    """Return to the kernel what start-up has freed and no later allocation has used.

    Called once, when a daemon has started. Gain: 0.1 to 0.6 MB, by what was freed where.
    """
    import ctypes  # noqa: PLC0415 - tools do not load it; NumPy has loaded it here

    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # of glibc only
    if trim is not None:
        trim(0)


# -- garbage ---------------------------------------------------------------------------------
#
# Reference counting frees most objects of the engines; only cycles, which are few, need the
# collector. With Python's default thresholds it would traverse the whole database repeatedly while
# the database is learned, and also during the reaction to a failure. Gain: a collection takes 0.1 s
# with a million objects, 26 ms with the modules only, and 4 us after ``set_aside``.


def relax_collector() -> None:
    """Collect rarely; called before the other imports, which create no garbage.

    The packages ``fared.daemon`` and ``fared.cli`` call it first. Gain: 22 collections and 5 ms for
    the daemon, nothing measurable for the tools.
    """
    gc.set_threshold(_YOUNG, _MIDDLE, _OLD)


def set_aside() -> None:
    """Collect once, and exclude all present objects from later collections."""
    gc.collect()
    gc.freeze()


def skip_last_collection() -> None:
    """Exit without a last collection of garbage: the kernel frees the memory of a process anyway.

    Gain: 10 of the 85 ms of CPU of ``fared-cli show status``.
    """
    atexit.register(gc.freeze)


@contextmanager
def collector_paused() -> Iterator[None]:
    """Pause the collector while many objects are built, none of them garbage.

    While the daemon is loaded, it would examine all modules once, for nothing. Gain: 10 ms.

    While a thread reads a file, it would block the event loop: with 8,000 interfaces for 20
    to 35 ms each time, or for 90 ms once at the end. Therefore the new objects are excluded from
    later collections; reference counting frees them. If two pauses overlap, the end of the first
    one ends both.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()

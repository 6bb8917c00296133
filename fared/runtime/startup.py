"""Settings of the interpreter that reduce start-up time, memory and pauses.

Each measure has its measured gain in CPU time on a machine of two cores, where a daemon imports in
some 120 ms. A measure that no longer gains is to be removed. The packages
``fared.daemon`` and ``fared.management.cli`` apply them; ``tests/runtime/test_startup.py`` tests
each.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import importlib.util
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from importlib.machinery import ModuleSpec, PathFinder
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING, Final, cast

if TYPE_CHECKING:
    from importlib.abc import Loader  # it imports shutil

_YOUNG, _MIDDLE, _OLD = 50_000, 20, 50
"""Net allocations before a collection of the youngest generation, and collections before one of
the next."""
_PORTIONS: Final = 25
_FEW_BLOCKS: Final = 320_000
"""Blocks of memory of a daemon with a small database; it begins with 240,000."""
_LARGEST_KEPT: Final = 32 * 1024 * 1024 - 65536
"""glibc's dynamic mmap threshold ignores blocks of 32 MiB and more."""
_ARENA_MAX: Final = -8
"""glibc's ``M_ARENA_MAX``."""
_CO_COROUTINE: Final = 0x80
"""``inspect.CO_COROUTINE``."""


def import_when_needed(
    *names: str,
    functions: Mapping[str, tuple[str, ...]] = MappingProxyType({}),
    instead: Mapping[str, Mapping[str, object]] = MappingProxyType({}),
) -> None:
    """Let imports of these modules enter them without executing them, until a name is used.

    The package pyroute2 imports all its modules (conntrack, WireGuard, an SQL database of
    interfaces) with any of them. Gain: 100 ms and 14 MB. OpenSSL, which hashlib imports, is needed
    for authentication only. Gain: 5 ms and 3.7 MB. difflib is for misspelt words, tokenize for
    tracebacks. Gain: 0.3 MB. NumPy's linear algebra is for matrices. Gain: 6 ms and 0.6 MB. shutil
    tells argparse how wide the terminal is. Gain: 0.3 MB. NumPy reads and writes files, and has
    histograms, polynomials and functions that skip NaN. Gain: 3 ms and 0.8 MB. pathlib makes URLs,
    and subprocess asks for the encoding of the locale. Gain: 2 ms and 0.3 MB. libyaml reads YAML,
    so what PyYAML has for it is not needed, nor what writes it. Gain: 5 ms and 0.5 MB. structlog
    shows lines in colours, and wraps the loggers of ``logging``. Gain: 3 ms and 0.5 MB.

    ``functions``, by module, may be imported by name: the first call executes the module. With
    ``__all__`` among them, they are all that it exports. ``instead``, by module, has values that a
    module has until it is executed.

    Modules of a package can be imported as usual. A module that is already imported is left as it
    is. ``importlib.util.LazyLoader`` does not serve: a second import of the module, or an import of
    a submodule, reads an attribute, which loads it. Python calls a module's ``__getattr__``
    (PEP 562) only for names that are missing.
    """
    every = {**dict.fromkeys((*names, *instead), ()), **functions}
    sys.meta_path.insert(0, _LateModules(every, instead))


class _LateModules:
    """Finds some modules where Python does, with a loader that executes them later."""

    def __init__(
        self, functions: Mapping[str, tuple[str, ...]], instead: Mapping[str, Mapping[str, object]]
    ) -> None:
        self._functions, self._instead = functions, instead

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec of a module, None if it is not one of these, or does not exist."""
        functions = self._functions.get(fullname)
        spec = None if functions is None else PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None and functions is not None:
            late = _LateExecution(spec, spec.loader, functions, self._instead.get(fullname, {}))
            spec.loader = cast("Loader", late)
        return spec


class _LateExecution:
    """Executes a module when a name of it is used that it does not have yet."""

    def __init__(
        self,
        spec: ModuleSpec,
        loader: Loader,
        functions: tuple[str, ...],
        instead: Mapping[str, object],
    ) -> None:
        self._spec, self._loader, self._functions = spec, loader, functions
        self._instead = instead

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Make the module as its own loader does."""
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """Defer the execution of a module to the first use of a name."""

        def find(attribute: str) -> object:
            if attribute == "__path__":  # ``from`` asks every module whether it is a package
                raise AttributeError(attribute)
            submodule = f"{module.__name__}.{attribute}"
            if is_package and importlib.util.find_spec(submodule) is not None:
                return importlib.import_module(submodule)
            self._execute(module)
            return getattr(module, attribute)

        def deferred(function: str) -> Callable[..., object]:
            def call(*args: object, **named: object) -> object:
                if vars(module).get(function) is call:
                    self._execute(module)
                return getattr(module, function)(*args, **named)

            return call

        is_package = self._spec.submodule_search_locations is not None
        vars(module)["__getattr__"] = find
        vars(module).update({function: deferred(function) for function in self._functions})
        vars(module).update(self._instead)
        if "__all__" in self._functions:
            vars(module)["__all__"] = [name for name in self._functions if name != "__all__"]

    def _execute(self, module: ModuleType) -> None:
        names = vars(module)
        late = {name: names.pop(name, None) for name in ("__getattr__", *self._functions)}
        self._spec.loader = module.__loader__ = self._loader
        try:
            self._loader.exec_module(module)
        except BaseException:  # such as MemoryError: half a module would have other errors
            names.update(late)
            raise


def leave_untranslated() -> None:
    """Let argparse have its texts as they are: gettext looks for translations, by locale.

    Gain: 1 ms and 0.2 MB.
    """
    import_when_needed(instead={"gettext": {"gettext": str, "ngettext": _english}})


def _english(one: str, many: str, count: int) -> str:
    return one if count == 1 else many


def leave_uninspected() -> None:
    """Tell asyncio whether handlers of signals are coroutines, without inspect.

    inspect imports ast and dis. Gain: 3 ms and 0.9 MB, with ``undescribed``.
    """
    import_when_needed("ast", instead={"inspect": {"iscoroutinefunction": _is_coroutine_function}})


def _is_coroutine_function(function: object) -> bool:
    while isinstance(function, partial):
        function = function.func
    code = getattr(function, "__code__", None)
    return code is not None and bool(code.co_flags & _CO_COROUTINE)


@contextmanager
def undescribed() -> Iterator[None]:
    """Import NumPy inside the block without what inspect does for ``help``: texts and signatures.

    The texts stay as they are written.
    """
    names = vars(importlib.import_module("inspect"))
    described = {"cleandoc": str, "signature": _no_signature}
    if "__getattr__" in names:  # it is not executed yet
        names.update(described)
    try:
        yield
    finally:
        if "__getattr__" in names:
            for name in described:
                del names[name]


def _no_signature(_: object) -> None:
    """None as ``__signature__`` means that a function has none of its own."""


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
    40 ms and 4 MB. asyncio imports ssl, but fared uses no TLS. Gain: 5 ms and 4 MB.
    """
    if name in sys.modules:
        yield
        return
    sys.modules[name] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules[name]


def load_msgspec() -> None:
    """Import msgspec without what nobody asks of it: it describes types, and reads other formats.

    It imports typing_extensions, but typing has all that it uses, and uuid, which asks platform on
    which system it is. Gain: 5 ms and 0.7 MB.
    """
    import_when_needed(
        *("msgspec.inspect", "msgspec.toml", "msgspec.yaml"),
        functions={"msgspec._json_schema": ("schema", "schema_components")},
        instead={"platform": {"system": lambda: os.uname().sysname}},
    )
    with without("typing_extensions"):
        importlib.import_module("msgspec")


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
    """Return to the kernel what was freed and no later allocation has used.

    Called when a daemon has started, and after floods (``loop.after_flood``). Gain: 0.1 to
    0.6 MB, by what was freed where; after a flood, what its packets took while they waited.
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

    The packages ``fared.daemon`` and ``management.cli`` call it first. Gain: 22 collections and 5
    ms for the daemon, nothing measurable for the tools.
    """
    gc.set_threshold(_YOUNG, _MIDDLE, _OLD)


def empty_free_lists() -> None:
    """Collect garbage, if that takes no time; Python then also frees tuples kept for new ones.

    It keeps 2,000 of each size up to 20, on pages that they alone may hold: 0.5 to 1 MB, once there
    were as many at a time, or as many were made of generators: such a tuple shrinks from ten
    places, so it takes none of those that were kept and is one more when it is freed. What reads
    packets makes them of lists. Python 3.11 takes none of those with 20 elements, but keeps up to
    2,000 of them: 0.4 MB, which a long flood would fill little by little, so it is interrupted for
    this (``fared.daemon.loop.after_flood``).

    With a hundred thousand LSAs a collection takes half a second on a busy machine, and delays
    hellos.
    """
    if sys.getallocatedblocks() < _FEW_BLOCKS:
        gc.collect()


def set_aside() -> None:
    """Collect once, and exclude all present objects from later collections.

    From then on the youngest are collected in smaller portions, the others as often as before.
    Gain: a collection of the youngest holds the event loop for 2 ms on average instead of 10, and
    for 10 at most instead of 25, at 1,000 changed bandwidths a second (64x512); all together take
    as long.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG // _PORTIONS, _MIDDLE * _PORTIONS, _OLD)


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

"""Fixtures and hooks of all tests: a sandbox for tests that need network namespaces.

pytest enters namespaces of its own before the first test, so that tests marked ``netns`` need
no root and leave nothing behind. ``FARED_TEST_SANDBOX=0`` disables this. Under pytest-xdist each
worker has namespaces of its own, so that labs with routers of equal names run in parallel.
"""

from __future__ import annotations

import contextlib
import importlib
import itertools
import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from fared.extensions.lab import sandbox
from fared.extensions.lab.namespaces import Netns

# what the helpers assert is explained as in the tests: a red run must say what it saw
pytest.register_assert_rewrite("tests")
_REASON = pytest.StashKey[str | None]()
_PEERS = {"FRR": "/usr/lib/frr/zebra", "BIRD": "bird"}


def pytest_configure() -> None:
    """Let the programs under test cache bytecode, and end by Ctrl-C; set no deadline.

    Where the environment forbids the cache, each of hundreds of daemons compiles its modules, and
    each worker of pytest-xdist rewrites the assertions of all tests, in half a minute of CPU.
    """
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
    # a parent in the background may ignore SIGINT, which the programs under test would inherit
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # The time per example depends on the load of the machine.
    settings.register_profile("fared", deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.load_profile("fared")


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> int | None:
    """Run pytest as process 1 of a sandbox, if the machine can create one."""
    if sandbox.inside():
        config.stash[_REASON] = None
        if hasattr(config, "workerinput"):
            sandbox.part()
        return None
    if os.environ.get("FARED_TEST_SANDBOX") == "0":
        config.stash[_REASON] = None if os.geteuid() == 0 else "FARED_TEST_SANDBOX=0, not root"
        return None
    config.stash[_REASON] = sandbox.problem()
    if config.stash[_REASON] is not None:
        return None
    return sandbox.run(lambda: int(config.hook.pytest_cmdline_main(config=config) or 0))


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Let each worker of pytest-xdist first import its part of the tests.

    All workers import all tests. If they did it in the same order, no worker would find in the
    cache what another one has just rewritten.
    """
    worker = getattr(session.config, "workerinput", None)
    if worker is None:
        return
    number = int(worker["workerid"].removeprefix("gw"))
    root = session.config.rootpath
    chosen = [Path(arg.partition("::")[0]) for arg in session.config.args]
    files = sorted(f for p in chosen for f in (p.rglob("test_*.py") if p.is_dir() else [p]))
    for file in files[number :: worker["workercount"]]:
        with contextlib.suppress(Exception, pytest.skip.Exception):  # which is reported later
            importlib.import_module(
                ".".join(file.resolve().relative_to(root).with_suffix("").parts)
            )


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run slow modules first, so that the workers of pytest-xdist end at about the same time."""
    marked = (item for item in items if item.get_closest_marker("slow") is not None)
    slow = {item.path for item in marked}
    items.sort(key=lambda item: item.path not in slow)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip tests that this machine cannot run, and say why."""
    if item.get_closest_marker("netns") is not None:
        reason = item.config.stash.get(_REASON, "the run was started without its command line")
        if reason is not None:
            pytest.skip(reason)
    if item.get_closest_marker("soak") is not None and not os.environ.get("FARED_TEST_SOAK"):
        pytest.skip("more of what a shorter test shows: set FARED_TEST_SOAK=1")
    if item.get_closest_marker("peers") is not None:
        missing = [name for name, path in _PEERS.items() if shutil.which(path) is None]
        if missing:
            pytest.skip(f"not installed: {', '.join(missing)}")


@pytest.fixture
def netns_factory() -> Iterator[Callable[[str], Netns]]:
    """Create network namespaces that are deleted after the test: ``a = netns_factory("a")``."""
    made: list[Netns] = []
    numbers = itertools.count()

    def create(label: str) -> Netns:
        namespace = Netns.create(f"t{os.getpid()}-{next(numbers)}-{label}")
        made.append(namespace)
        return namespace

    yield create
    for namespace in made:
        namespace.delete()


@pytest.fixture
def veth(netns_factory: Callable[[str], Netns]) -> tuple[Netns, Netns]:
    """Two namespaces connected by a veth pair: interface ``b`` in the first, ``a`` in the second.

    The two ends have distinct interface indexes: if they are equal, the kernel reports a lost
    carrier up to a second late.
    """
    left, right = netns_factory("a"), netns_factory("b")
    left.ip(*f"link add name b index 10 type veth peer name a index 110 netns {right.name}".split())
    left.ip("link", "set", "dev", "b", "up")
    right.ip("link", "set", "dev", "a", "up")
    return left, right


@pytest.fixture
def repository() -> Path:
    """The root of the source tree."""
    return Path(__file__).resolve().parent.parent

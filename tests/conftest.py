"""What all tests share: a sandbox for those that need network namespaces.

The whole run moves into namespaces of its own before the first test, so that tests marked
``netns`` need no root and leave nothing behind. ``FARED_TEST_SANDBOX=0`` keeps it outside.
"""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fared.lab import sandbox
from fared.lab.namespaces import Netns

_REASON = pytest.StashKey[str | None]()
_PEERS = {"FRR": "/usr/lib/frr/zebra", "BIRD": "bird"}


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> int | None:
    """Run pytest itself as process 1 of a sandbox, where one can be made."""
    if sandbox.inside():
        config.stash[_REASON] = None
        return None
    if os.environ.get("FARED_TEST_SANDBOX") == "0":
        config.stash[_REASON] = None if os.geteuid() == 0 else "FARED_TEST_SANDBOX=0, not root"
        return None
    config.stash[_REASON] = sandbox.problem()
    if config.stash[_REASON] is not None:
        return None
    return sandbox.run(lambda: int(config.hook.pytest_cmdline_main(config=config) or 0))


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip, with the reason, what this machine cannot do."""
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
    """Make network namespaces that are deleted after the test: ``a = netns_factory("a")``."""
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
    """Two namespaces joined by a veth pair, up: ``b`` in the first, ``a`` in the second.

    The two ends get distinct interface indexes: with equal ones the kernel tells of a link
    going down up to a second late.
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

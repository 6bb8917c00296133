"""The limit of open descriptors: raised as far as allowed; errors of exhaustion."""

from __future__ import annotations

import errno
import resource
from types import SimpleNamespace

import pytest

from fared.daemon.loop.descriptors import ENOUGH, is_shortage, provide, raise_limit

NO_LIMIT = resource.RLIM_INFINITY


@pytest.mark.parametrize(
    ("soft", "hard", "expected"),
    [
        (1024, 4096, 4096),
        (1024, 1 << 20, ENOUGH),
        (1024, NO_LIMIT, ENOUGH),
        (4096, 4096, None),
        (1 << 20, 1 << 20, None),
        (NO_LIMIT, NO_LIMIT, None),
    ],
)
def test_the_soft_limit_is_raised_to_the_hard_one_or_to_what_any_router_needs(
    monkeypatch, soft, hard, expected
):
    written = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (soft, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: written.append(limits))
    assert raise_limit() == (soft if expected is None else expected)
    assert written == ([] if expected is None else [(expected, hard)])


@pytest.mark.parametrize("error", [ValueError("not allowed"), PermissionError(errno.EPERM, "no")])
def test_a_sandbox_that_forbids_a_higher_limit_is_tolerated(monkeypatch, error):
    def refuse(*_: object) -> None:
        raise error

    monkeypatch.setattr(resource, "getrlimit", lambda _: (1024, 4096))
    monkeypatch.setattr(resource, "setrlimit", refuse)
    assert raise_limit() == 1024


@pytest.mark.parametrize(("limit", "warned"), [(40, [40]), (255, [255]), (256, []), (NO_LIMIT, [])])
def test_the_start_says_that_the_limit_is_too_low(monkeypatch, limit, warned):
    found = []
    log = SimpleNamespace(warning=lambda _, limit, **__: found.append(limit))
    monkeypatch.setattr(resource, "getrlimit", lambda _: (limit, limit))
    provide(log)
    assert found == warned


def test_only_exhaustion_is_a_shortage():
    assert is_shortage(OSError(errno.EMFILE, "Too many open files"))
    assert is_shortage(OSError(errno.ENFILE, "Too many open files in system"))
    assert not is_shortage(OSError(errno.ECONNRESET, "reset"))
    assert not is_shortage(RuntimeError("boom"))
    assert not is_shortage(None)

"""What ``show interfaces`` and ``validate`` tell of a platform beside the kernel."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from fared.core.link_facts import KERNEL_PLATFORM, PlatformLink
from fared.daemon.people.metrics import _platform as _metrics
from fared.management.documents.views.link import _lag
from fared.management.documents.views.validate import _platform


def test_a_lag_has_its_members_and_other_links_have_none():
    lag = _lag(PlatformLink(members=(1, 2), min_links=2))
    assert (lag.enabled, lag.members, lag.min_links) == (1, 2, 2)
    assert _lag(PlatformLink(speed=1.0)) is None
    assert _lag(None) is None


@pytest.mark.parametrize("error", [None, "Connection refused"])
def test_validate_says_whether_redis_can_be_read(error):
    (check,) = _platform(SimpleNamespace(platform=SimpleNamespace(name="sonic", error=error)))
    assert check.ok is (error is None)
    assert (error or "") in check.detail


@pytest.mark.parametrize("error", [None, "Connection refused"])
def test_metrics_tell_whether_it_can_be_read_and_how_often_it_was_not(error):
    platform = SimpleNamespace(
        name="sonic", error=error, failures=3, wrong_values=lambda: {"too-many": 7}
    )
    samples = [s for f in _metrics(SimpleNamespace(platform=platform)) for s in f.samples]
    assert {(s.name, *s.labels.values()): s.value for s in samples} == {
        ("fared_platform_up",): error is None,
        ("fared_platform_failures_total",): 3,
        ("fared_platform_wrong_values_total", "too-many"): 7,
    }


def test_of_the_kernel_there_are_no_metrics():
    assert list(_metrics(SimpleNamespace(platform=KERNEL_PLATFORM))) == []


def test_validate_says_nothing_of_the_kernel():
    assert _platform(SimpleNamespace(platform=KERNEL_PLATFORM)) == []

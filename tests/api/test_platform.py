"""What ``show interfaces`` and ``validate`` tell of a platform beside the kernel."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from fared.core.link_facts import KERNEL_PLATFORM, PlatformLink
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


def test_validate_says_nothing_of_the_kernel():
    assert _platform(SimpleNamespace(platform=KERNEL_PLATFORM)) == []

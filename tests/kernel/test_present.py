"""What tells people, and a start, which interface leads to the management network."""

import pytest

from fared.kernel.present import default_route_ports

pytestmark = pytest.mark.netns
GATEWAY = ("default", "via", "192.0.2.2")


def test_default_routes_of_people_are_found_and_those_of_daemons_are_not(veth):
    """One answer of the kernel each, however many routes it holds."""
    here, _ = veth
    here.ip("addr", "add", "192.0.2.1/24", "dev", "b")
    with here.entered():
        assert default_route_ports() == frozenset()
        here.ip("route", "add", *GATEWAY, "proto", "201")
        assert default_route_ports() == frozenset()
        here.ip("route", "replace", *GATEWAY, "proto", "dhcp")
        assert default_route_ports() == {"b"}
        here.ip("route", "del", *GATEWAY)
        here.ip("-6", "route", "add", "default", "dev", "b")
        assert default_route_ports() == {"b"}

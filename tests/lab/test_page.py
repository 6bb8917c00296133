"""``fared-lab page``: the page of a router of the lab at this machine."""

import socket
from types import SimpleNamespace

import pytest

from fared.extensions.lab.errors import LabError
from fared.extensions.lab.page import listen, show_page


def test_a_taken_port_is_replaced_by_a_free_one():
    with listen(0) as first:
        port = first.getsockname()[1]
        with listen(port) as other:
            assert other.getsockname()[1] not in (0, port)


def test_a_router_that_is_not_fared_has_no_page():
    node = SimpleNamespace(plan=SimpleNamespace(node=SimpleNamespace(kind="frr")))
    fabric = SimpleNamespace(node=lambda _: node)
    with socket.socket() as listener, pytest.raises(LabError, match="S1 runs frr"):
        show_page(fabric, "S1", listener)

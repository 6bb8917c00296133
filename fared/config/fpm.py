"""The section ``fib: fpm``: where ``fpmsyncd`` of SONiC takes routes for the switch chip."""

from __future__ import annotations

import ipaddress
from typing import Annotated

from fared.config import values
from fared.config.section import Section
from fared.config.shapes import Scalar

PORT = 2620


def _check_address(value: object) -> str:
    return str(ipaddress.ip_address(value if isinstance(value, str) else ""))


class Fpm(Section, frozen=True):
    """Another address begins a session with a peer of which nothing is known."""

    address: Annotated[
        str,
        Scalar(
            "an address such as 127.0.0.1 or ::1",
            _check_address,
            {"type": "string", "examples": ["127.0.0.1"]},
        ),
    ] = "127.0.0.1"
    port: Annotated[int, values.whole(1, 65535)] = PORT

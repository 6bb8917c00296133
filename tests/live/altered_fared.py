"""``fared`` with alterations for tests, as a separate program: fared has no such options.

``FARED_TEST_STRICT=1``: refuses cryptographic sequence numbers equal to the last, as current FRR.
``FARED_TEST_CLOCK_BEHIND=SECONDS``: its wall clock is that far behind.
``FARED_TEST_FAREWELL=SECONDS``: neighbors have so long until its routes go, on a busy machine too.
``FARED_TEST_BIER_LABEL=LABEL``: advertises that label for BIER, as a router that means MPLS.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from fared.daemon import parts
from fared.daemon.main import main

if TYPE_CHECKING:
    from fared.core.bier import BierInfo, BierSettings


def _set_back(seconds: int) -> None:
    seconds_of, nanoseconds_of = time.time, time.time_ns
    time.time = lambda: seconds_of() - seconds
    time.time_ns = lambda: nanoseconds_of() - seconds * 10**9


def _refuse_equal_numbers() -> None:
    from fared.protocols.ospf.processing import authenticate
    from tests.igp.strict import refuse_equal_numbers

    authenticate.sequence_problem = refuse_equal_numbers


def _mean_mpls(label: int) -> None:
    from msgspec.structs import replace

    from fared.core.bier import BierSettings

    info = BierSettings.info

    def altered(self: BierSettings, bfr_id: int) -> BierInfo:
        found = info(self, bfr_id)
        offered = (replace(each, label=label) for each in found.encapsulations)
        return replace(found, encapsulations=(*offered,))

    BierSettings.info = altered


if __name__ == "__main__":
    if label := os.environ.get("FARED_TEST_BIER_LABEL"):
        _mean_mpls(int(label))
    _set_back(int(os.environ.get("FARED_TEST_CLOCK_BEHIND", "0")))
    if os.environ.get("FARED_TEST_STRICT"):
        _refuse_equal_numbers()
    parts.FAREWELL = float(os.environ.get("FARED_TEST_FAREWELL", parts.FAREWELL))
    main()

"""``fared`` with alterations for tests, as a separate program: fared has no such options.

``FARED_TEST_STRICT=1``: refuses cryptographic sequence numbers equal to the last, as current FRR.
``FARED_TEST_CLOCK_BEHIND=SECONDS``: its wall clock is that far behind.
``FARED_TEST_FAREWELL=SECONDS``: neighbors have so long until its routes go, on a busy machine too.
"""

from __future__ import annotations

import os
import time

from fared.daemon import daemon
from fared.daemon.main import main


def _set_back(seconds: int) -> None:
    seconds_of, nanoseconds_of = time.time, time.time_ns
    time.time = lambda: seconds_of() - seconds
    time.time_ns = lambda: nanoseconds_of() - seconds * 10**9


def _refuse_equal_numbers() -> None:
    from fared.ospf.processing import authenticate
    from tests.strict import refuse_equal_numbers

    authenticate.sequence_problem = refuse_equal_numbers


if __name__ == "__main__":
    _set_back(int(os.environ.get("FARED_TEST_CLOCK_BEHIND", "0")))
    if os.environ.get("FARED_TEST_STRICT"):
        _refuse_equal_numbers()
    daemon.FAREWELL = float(os.environ.get("FARED_TEST_FAREWELL", daemon.FAREWELL))
    main()

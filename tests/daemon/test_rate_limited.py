"""Log lines that may occur a thousand times a second are written once a minute."""

from __future__ import annotations

from fared.daemon.loop.rate_limited import INTERVAL, RateLimitedLog


def test_suppressed_lines_are_counted_in_the_next_one():
    now, written = [50.0], []
    log = RateLimitedLog(
        lambda event, **fields: written.append((event, fields)), "full", lambda: now[0]
    )
    for number in range(1000):
        log(number=number)
    assert written == [("full", {"number": 0})]
    now[0] += INTERVAL - 0.1
    log(number=1000)
    now[0] += 0.1
    log(number=1001)
    assert written[1:] == [("full", {"number": 1001, "suppressed": 1000})]
    now[0] += INTERVAL
    log(number=1002)
    assert written[2:] == [("full", {"number": 1002})]

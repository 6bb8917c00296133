"""How a link is, apart from protocols: parts of documents that the daemon fills in."""

from __future__ import annotations

from fared.management.documents.facts import Facts, Ratio, Seconds, UnixTime


class Derated(Facts):
    """Why less than the capacity of a link is advertised: ``share`` of it, since ``at``.

    ``by``: a user who drained it, or ``link-health``.
    """

    by: str
    share: Ratio
    at: UnixTime
    reason: str


class LagMembers(Facts):
    """Members of a LAG: with fewer than ``min_links`` that are enabled it is down."""

    enabled: int
    members: int
    min_links: int


class LinkHealthStatus(Facts):
    """How a link is that ``link-health`` watches; in mode monitor nothing follows.

    ``errors`` among ``packets`` of the last window; ``share`` of the capacity is left, for
    ``reason``, and all of it ``recovers_in`` so many seconds at the earliest. ``penalty`` of flaps
    (RFC 2439); a ``suppressed`` link is not used before ``reuse_in`` seconds.
    """

    mode: str
    errors: int
    packets: int
    share: Ratio
    reason: str
    recovers_in: Seconds
    penalty: float
    suppressed: bool
    reuse_in: Seconds

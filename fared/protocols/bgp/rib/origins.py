"""The protocol that a route was redistributed from, as a large community (RFC 8092).

Its global administrator is the tag of ``ORIGIN_TAGS``, an AS number for private use (RFC 6996), the
other parts are 0. A border that redistributes routes of BGP has the tag again.
"""

from __future__ import annotations

from fared.core.routes import ORIGIN_TAGS
from fared.protocols.bgp.packet.attributes import LargeCommunities, PathAttributes
from fared.protocols.bgp.packet.communities import LargeCommunity

_MARKS = {LargeCommunity(tag, 0, 0): tag for tag in ORIGIN_TAGS.values()}


def with_origin(attributes: PathAttributes, tag: int) -> PathAttributes:
    """Return attributes that say where a route comes from."""
    return attributes.replaced(LargeCommunities((LargeCommunity(tag, 0, 0),)))


def origin_tag(attributes: PathAttributes) -> int:
    """Return the tag of the protocol that a route was redistributed from; 0: of none."""
    found = attributes.find(LargeCommunities)
    known = () if found is None else found.communities
    return next((_MARKS[one] for one in known if one in _MARKS), 0)

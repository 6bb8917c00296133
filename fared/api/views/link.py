"""What every protocol tells of a link: whether it is up, what it carries, and who says so."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fared.api.schema.link import LinkFacts
from fared.api.views.context import ViewContext, finite

if TYPE_CHECKING:
    from fared.isis.snapshot import CircuitView
    from fared.ospf.snapshot import InterfaceView


def link_facts(context: ViewContext, view: InterfaceView | CircuitView) -> LinkFacts:
    """Gather them; ``view`` is the interface as the protocol has it."""
    name = view.name
    link = context.links.get(view.ifindex)
    utilized = context.runtime.utilized.get(view.ifindex)
    bandwidth = finite(view.capacity)
    available = None
    if bandwidth is not None and utilized is not None:
        available = max(0.0, bandwidth - utilized)
    source = None
    if context.config.interface_bandwidth(name) is not None:
        source = "config"
    elif link is not None and bandwidth is not None:
        source = "shaper" if link.shaped is not None and bandwidth == link.shaped else "speed"
    return {
        "up": link is not None and link.up,
        "bandwidth": bandwidth,
        "bandwidth_source": source,
        "utilized": utilized,
        "available": available,
        "announced_available": finite(view.announced_available),
    }

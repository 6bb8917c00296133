"""Routers that redistribute, and the routes and LSAs that result."""

from fared.core.ids import Prefix, ipv4_prefix
from fared.core.routes import LocalRoute
from fared.extensions.sim.fabric import Fabric
from fared.protocols.ospf.packet.bodies import AsExternalLsa
from fared.protocols.ospf.packet.body import decode_body
from fared.protocols.ospf.packet.lsa import LsType
from fared.protocols.ospf.settings import RedistributeSettings, Redistribution
from fared.router.events import RouterSettingsApplied

OUTSIDE = ipv4_prefix(0xC0000200, 24)
SOMEWHERE = LocalRoute(((99, 0),))
"""A route over an interface that OSPF knows nothing of."""


def configure(fabric: Fabric, name: str, settings: RedistributeSettings) -> None:
    """Set the sources that a router redistributes, before or after its start."""
    node = fabric.network.nodes[name]
    node.settings = node.settings.with_protocol("ospf", redistribute=settings)
    if node.router is not None:
        fabric.network.input(name, RouterSettingsApplied(node.settings))


def static(metric: int = 20, *, type_2: bool = True, **others) -> RedistributeSettings:
    return RedistributeSettings(static=Redistribution(metric, type_2, **others))


def announce(
    fabric: Fabric,
    name: str,
    prefix: Prefix = OUTSIDE,
    *,
    metric: int = 20,
    type_2: bool = True,
    **others,
) -> None:
    """Add a static route to a router, which redistributes it."""
    configure(fabric, name, static(metric, type_2=type_2, **others))
    fabric.network.set_local_route(name, prefix, SOMEWHERE)


def started(fabric: Fabric) -> Fabric:
    fabric.network.start_all()
    fabric.network.run_until_quiet(60)
    return fabric


def externals(fabric: Fabric, name: str) -> dict[tuple[str, Prefix], AsExternalLsa]:
    """The AS-external LSAs of a router, not at MaxAge, by advertising router and prefix."""
    found = {}
    for entry in fabric.network.nodes[name].running.instances["ospf"].engine.instance.as_scope:
        key, body = entry.key, decode_body(entry.lsa)
        if key.ls_type == LsType.AS_EXTERNAL and entry.age(fabric.network.now) < 3600:
            length = body.network_mask.bit_count()
            prefix = ipv4_prefix(key.link_state_id, length)
            found[fabric.name_of(key.advertising_router), prefix] = body
    return found


def route(fabric: Fabric, name: str, prefix: Prefix = OUTSIDE):
    return fabric.network.nodes[name].running.solver.routes.get(prefix)


def hops(fabric: Fabric, name: str, prefix: Prefix = OUTSIDE) -> set[str]:
    """The next hops in a router's kernel."""
    node = fabric.network.nodes[name]
    state = node.kernel.dump()
    target = state.routes.get(prefix)
    if target is None:
        return set()
    members = state.groups.get(target)
    ids = [target] if members is None else [member.nexthop_id for member in members]
    return {
        far.node
        for hop in (state.nexthops[i] for i in ids)
        for far in node.ports[hop[0]].far
        if far.address == hop[2]
    }

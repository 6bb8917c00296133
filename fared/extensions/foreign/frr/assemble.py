"""Makes settings of fared of what FRR's statements say together.

Defaults that FRR and fared do not share are written, since neighbors have FRR's.
"""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import IPv4Interface
from types import MappingProxyType
from typing import Any, Final

from fared.core.units import format_bandwidth
from fared.extensions.foreign.draft import Path, SourceLine
from fared.extensions.foreign.frr.bgp_assemble import assemble_bgp
from fared.extensions.foreign.frr.context import FrrFile, FrrOspf, FrrPort, Given, OspfPort
from fared.extensions.foreign.frr.keys import authentication
from fared.extensions.foreign.frr.policy import put_prefix_list, redistribute
from fared.extensions.foreign.frr.routers import area_id
from fared.extensions.foreign.machine import Machine, MachineLink, lacks

DEFAULT: Final = "FRR's default"
_OSPF_DEFAULTS: Final[Mapping[str, Any]] = MappingProxyType(
    {"network-type": "broadcast", "hello-interval": 10}
)
_ISIS_DEFAULTS: Final[Mapping[str, Any]] = MappingProxyType(
    {"network-type": "broadcast", "hello-interval": 3, "hello-multiplier": 10}
)
_LOOPBACK: Final = "lo"
_MOST_COST: Final = 65535
_NOT_HERE: Final = "this machine does not have the address, and fared sets none: 'ip address add'"


def assemble(frr: FrrFile, machine: Machine) -> None:
    """Put all settings into the draft, and list what remains."""
    ospf = frr.ospf
    router_id = ospf.settings.pop(("router-id",), None) if ospf else None
    router_id = router_id or frr.router_id
    if router_id is not None:
        frr.draft.put(("router-id",), router_id.value, router_id.statement.source)
    if ospf is not None:
        _networks(frr, ospf, machine)
    for port in frr.ports.values():
        _facts(frr, port)
        _ospf_port(frr, port, machine)
    if ospf is not None:
        for path, given in ospf.settings.items():
            frr.draft.put(("ospf", *path), given.value, given.statement.source)
        _area_filters(frr, ospf)
        redistribute(*(frr, "ospf", ospf.redistributed, ospf.default_metric, ospf.distribute_lists))
    _isis(frr)
    assemble_bgp(frr)
    for port in frr.ports.values():
        _addresses(frr, port, machine)


def _area_filters(frr: FrrFile, ospf: FrrOspf) -> None:
    for (area, way), given in ospf.area_filters.items():
        source = given.statement.source
        try:
            name = put_prefix_list(frr, given.value, "ipv4")
        except ValueError as error:
            frr.draft.leave(source, str(error))
        else:
            frr.draft.put(("ospf", "areas", area, "filter", way), name, source)


def _facts(frr: FrrFile, port: FrrPort) -> None:
    rate = port.rate or port.bandwidth
    if rate is not None:
        at = ("interfaces", port.name, "bandwidth")
        frr.draft.put(at, format_bandwidth(rate.value / 8), rate.statement.source)
    if port.delay is not None:
        at = ("interfaces", port.name, "delay")
        frr.draft.put(at, port.delay.value, port.delay.statement.source)


def _shown(port: FrrPort) -> str:
    told = [str(address) for address, _ in port.addresses]
    return ", ".join([*told, *([f'"{port.description}"'] if port.description else [])])


def _addresses(frr: FrrFile, port: FrrPort, machine: Machine) -> None:
    """List addresses that the machine lacks; all of them would be no news on another machine."""
    if port.name not in machine:
        return
    missing = lacks(machine, port.name, [address for address, _ in port.addresses])
    for address, line in port.addresses:
        if address in missing:
            frr.draft.differ(line.source, _NOT_HERE)


# OSPF


def _networks(frr: FrrFile, ospf: FrrOspf, machine: Machine) -> None:
    """Give interfaces the area of the longest ``network`` that has one of their addresses."""
    for name, link in machine.items():
        if name not in frr.ports and any(_area_of(ospf, a) for a in link.addresses):
            frr.ports[name] = FrrPort(name, ospf.statement)
    used: set[int] = set()
    for port in frr.ports.values():
        own = [address for address, _ in port.addresses]
        own += machine.get(port.name, MachineLink((), None)).addresses
        found = next((area for area in (_area_of(ospf, a) for a in own) if area), None)
        if found is not None and port.ospf.area is None:
            port.ospf.area = found
        used |= {n.statement.number for n in ospf.networks for a in own if a.ip in n.prefix}
    for network in ospf.networks:
        if network.statement.number not in used:
            reason = "no interface of the file, or of this machine, has an address in it"
            frr.draft.leave(network.statement.source, reason)


def _area_of(ospf: FrrOspf, address: object) -> Given | None:
    if not isinstance(address, IPv4Interface):
        return None
    inside = [network for network in ospf.networks if address.ip in network.prefix]
    best = max(inside, key=lambda network: network.prefix.prefixlen, default=None)
    return None if best is None else Given(best.area, best.statement)


def _ospf_port(frr: FrrFile, port: FrrPort, machine: Machine) -> None:
    own, ospf = port.ospf, frr.ospf
    if own.area is None or ospf is None:
        lines = [given.statement for given in own.settings.values()]
        lines += [given.statement for given in (own.area, own.passive, own.mode) if given]
        lines += [key.statement for key in (own.password, *own.digests) if key]
        why = f"OSPF does not run on {port.name} in this file"
        for line in {line.number: line for line in lines}.values():
            frr.draft.leave(line.source, why)
        return
    try:
        area = area_id(own.area.value)
    except ValueError as error:
        frr.draft.leave(own.area.statement.source, str(error))
        return
    base = ("ospf", "areas", area, "interfaces", port.name)
    source = own.area.statement.source
    frr.draft.put(base, {}, source, _shown(port))
    passive = _is_passive(ospf, port)
    if passive is not None:
        frr.draft.put((*base, "passive"), True, passive)
    if port.name != _LOOPBACK:
        _cost(frr, port, base, machine)
    if passive is None:
        _speaking(frr, own, base, ospf.area_modes.get(area))


def _is_passive(ospf: FrrOspf, port: FrrPort) -> SourceLine | None:
    """Return the line that makes an interface passive; None: hellos are sent."""
    if port.name == _LOOPBACK:
        return port.statement.source
    given = port.ospf.passive or ospf.passive.get(port.name) or ospf.passive_default
    return given.statement.source if given is not None and given.value else None


def _cost(frr: FrrFile, port: FrrPort, base: Path, machine: Machine) -> None:
    """FRR computes a cost that the file does not name from the speed of the interface."""
    given = port.ospf.settings.pop(("cost",), None)
    if given is not None:
        frr.draft.put((*base, "cost"), given.value, given.statement.source)
        return
    assert frr.ospf is not None
    assert port.ospf.area is not None
    link = machine.get(port.name)
    told = port.bandwidth.value if port.bandwidth else link.speed if link else None
    source = port.ospf.area.statement.source
    if told is None:
        text = f"FRR computes a cost of {port.name} from its speed; here it is fared's default"
        frr.draft.differ(source, text)
        return
    cost = min(max(int(frr.ospf.reference / told + 0.5), 1), _MOST_COST)
    whence = f"computed by FRR from {format_bandwidth(told / 8)}"
    frr.draft.put((*base, "cost"), cost, source, whence)


def _speaking(frr: FrrFile, own: OspfPort, base: Path, area_mode: Given | None) -> None:
    """Put the settings of an interface that sends hellos."""
    assert own.area is not None
    for name, value in _OSPF_DEFAULTS.items():
        if (name,) not in own.settings:
            frr.draft.put((*base, name), value, own.area.statement.source, DEFAULT)
    for path, given in own.settings.items():
        frr.draft.put((*base, *path), given.value, given.statement.source)
    try:
        keys, line = authentication(frr, own, area_mode)
    except ValueError as error:
        mode = own.mode or area_mode
        assert mode is not None
        frr.draft.leave(mode.statement.source, str(error))
        return
    if keys is not None and line is not None:
        frr.draft.put((*base, "authentication"), keys, line.statement.source)
    elif line is not None:
        frr.draft.leave(line.statement.source, "FRR does not use the key: no 'authentication'")


# IS-IS


def _isis(frr: FrrFile) -> None:
    isis, draft = frr.isis, frr.draft
    nets = [given.value for given in isis.nets] if isis else []
    if isis is None or not nets:
        if isis is not None:
            draft.leave(isis.statement.source, "no 'net' in it: IS-IS does not run")
        for port in frr.ports.values():
            _leave_port(frr, port)
        return
    source = isis.nets[0].statement.source
    draft.put(("isis", "net"), nets[0] if len(nets) == 1 else nets, source)
    default = "" if ("level",) in isis.settings else DEFAULT
    draft.put(("isis", "level"), isis.level, isis.statement.source, default)
    for path, given in isis.settings.items():
        draft.put(("isis", *path), given.value, given.statement.source)
    for level, key in isis.level_keys.items():
        draft.put(("isis", f"level-{level}", "authentication"), key.leaves, key.statement.source)
    redistribute(frr, "isis", isis.redistributed, None)
    _families(frr)
    for port in frr.ports.values():
        if port.isis.families:
            _isis_port(frr, port)
        else:
            _leave_port(frr, port)


def _leave_port(frr: FrrFile, port: FrrPort) -> None:
    """List the lines of an interface on which IS-IS does not run."""
    lines = [given.statement for given in port.isis.settings.values()]
    lines += [given.statement for given in port.isis.families.values()]
    lines += [key.statement for key in port.isis.keys]
    for line in {line.number: line for line in lines}.values():
        frr.draft.leave(line.source, f"IS-IS does not run on {port.name} in this file")


def _families(frr: FrrFile) -> None:
    """Route the families of all interfaces; FRR has them by interface."""
    assert frr.isis is not None
    tag = frr.isis.statement.words[2]
    for port in frr.ports.values():
        for family, given in list(port.isis.families.items()):
            if given.value != tag:
                reason = f"another instance than '{frr.isis.statement.text}'"
                frr.draft.leave(given.statement.source, reason)
                del port.isis.families[family]
    speaking = [port for port in frr.ports.values() if port.isis.families]
    all_of = sorted({family for port in speaking for family in port.isis.families})
    if not all_of:
        return
    frr.draft.put(("isis", "address-families"), all_of, frr.isis.statement.source)
    for port in speaking:
        if sorted(port.isis.families) != all_of:
            (only,) = port.isis.families.values()
            text = f"fared routes {' and '.join(all_of)} on all interfaces of IS-IS"
            frr.draft.differ(only.statement.source, text)


def _isis_port(frr: FrrFile, port: FrrPort) -> None:
    assert frr.isis is not None
    own, draft = port.isis, frr.draft
    base = ("isis", "interfaces", port.name)
    source = next(iter(own.families.values())).statement.source
    draft.put(base, {}, source, _shown(port))
    metric = own.settings.pop(("metric",), None)
    if metric is not None:
        draft.put((*base, "metric"), metric.value, metric.statement.source)
    passive = own.settings.pop(("passive",), None)
    if passive is not None or port.name == _LOOPBACK:
        draft.put((*base, "passive"), True, source)
        return
    level = own.settings.get(("level",))
    if level is not None and frr.isis.level != "level-1-2":
        del own.settings["level",]  # it narrows nothing, or is no level of the router
        if level.value not in (frr.isis.level, "level-1-2"):
            draft.leave(level.statement.source, f"the router is {frr.isis.level}")
    for name, value in _ISIS_DEFAULTS.items():
        if (name,) not in own.settings:
            draft.put((*base, name), value, source, DEFAULT)
    for path, given in own.settings.items():
        draft.put((*base, *path), given.value, given.statement.source)
    for key in own.keys:
        draft.put((*base, "authentication"), key.leaves, key.statement.source)

"""Commands of other routers: what people type who know FRR, BIRD or Junos, and ours for it.

They are looked up after a mistake only, and abbreviated as there: ``conf t``. A command that only
looks is run; of one that changes something its user is told ours. ``docs/coming-from.md`` has a
table.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

_LEAST: Final = 2
"""Letters that the first word is recognized by."""
_PING: Final = "'ping' and 'traceroute' are programs of the shell; 'path SRC DST' shows the paths"
_FILE: Final = (
    "the configuration is one file: edit it, 'config check FILE', 'config diff FILE', then"
    " 'config apply FILE'"
)
_APPLIED: Final = "nothing has to be written: 'config apply FILE' and 'config confirm' save"
_LOGS: Final = "'monitor --level debug' follows all events; 'log level debug' logs more for a while"
_CLEAR: Final = (
    "'clear neighbor NAME' ends adjacencies, which form again; 'restart --graceful' starts the"
    " daemon again, its routes stay in the kernel"
)

_LOOKS: Final = MappingProxyType(
    {
        "version": "--version",
        "show version": "show status",
        "show protocols": "show status",
        "show protocols all": "show status",
        "show ip route": "show routes",
        "show ip route summary": "show routes summary",
        "show ipv6 route": "show routes --af ipv6",
        "show ip fib": "show fib",
        "show route": "show routes",
        "show route all": "show routes",
        "show route count": "show routes summary",
        "show route forwarding-table": "show fib",
        "show nexthop-group rib": "show fib",
        "show ip nexthop": "show fib",
        "show ip ospf": "show ospf spf log",
        "show ip ospf neighbor": "show ospf neighbors",
        "show ip ospf neighbor detail": "show ospf neighbors",
        "show ip ospf interface": "show ospf interfaces",
        "show ip ospf interface brief": "show ospf interfaces",
        "show ip ospf route": "show ospf routes",
        "show ip ospf database": "show ospf database",
        "show ip ospf database self-originate": "show ospf database self",
        "show ip ospf border-routers": "show ospf topology",
        "show ip ospf graceful-restart": "show graceful-restart",
        "show ip ospf graceful-restart helper": "show graceful-restart",
        "show ip ospf mpls-te interface": "show ospf interfaces",
        "show ip interface": "show interfaces",
        "show ip interface brief": "show interfaces",
        "show interfaces brief": "show interfaces",
        "show interfaces terse": "show interfaces",
        "show ip isis neighbor": "show isis neighbors",
        "show ip bgp": "show bgp routes",
        "show ip bgp summary": "show bgp summary",
        "show ip bgp neighbors": "show bgp neighbors",
        "show bgp ipv4 unicast": "show bgp routes --af ipv4",
        "show bgp ipv6 unicast": "show bgp routes --af ipv6",
        "show bgp ipv4 unicast summary": "show bgp summary",
        "show bgp ipv6 unicast summary": "show bgp summary",
        "show bgp neighbor": "show bgp neighbors",
        "show isis adjacency": "show isis neighbors",
        "show isis neighbor detail": "show isis neighbors",
        "show isis interface brief": "show isis interfaces",
        "show isis lsp": "show isis database",
        "show isis hostname": "show isis topology",
        "show isis route": "show isis routes",
        "show isis summary": "show isis spf log",
        "show ospf neighbor detail": "show ospf neighbors",
        "show ospf lsadb": "show ospf database",
        "show ospf state": "show ospf topology",
        "show ospf overview": "show status",
        "show ospf log": "show ospf spf log",
        "show isis overview": "show status",
        "show ted database": "show topology",
        "show bfd peers": "show bfd",
        "show bfd session": "show bfd",
        "show logging": "show log",
        "show history": "config history",
        "show system commit": "config history",
        "show running-config": "show config",
        "show configuration": "show config",
        "show startup-config": "show config --saved",
        "show tech-support": "tech-support --help",
        "show cpu": "show counters",
        "show processes": "show status",
        "show system": "show status",
        "show hostname": "show status",
    }
)
_TOLD: Final = MappingProxyType(
    {
        "ping": _PING,
        "traceroute": _PING,
        "configure": _FILE,
        "configure terminal": _FILE,
        "edit": _FILE,
        "set": _FILE,
        "router ospf": _FILE,
        "router isis": _FILE,
        "interface": _FILE,
        "no": _FILE,
        "write": _APPLIED,
        "write memory": _APPLIED,
        "copy running-config startup-config": _APPLIED,
        "commit": "'config apply FILE' applies a file, with --confirm 5m until 'config confirm'",
        "commit confirmed": "'config apply FILE --confirm 5m', then 'config confirm'",
        "commit check": "'config check FILE'",
        "rollback": "'config rollback [N]'",
        "configure check": "'config check FILE'",
        "configure confirm": "'config confirm'",
        "configure undo": "'config rollback'",
        "reload": "'config reload' reads the file again; 'restart' starts the daemon again",
        "reboot": "'restart' starts the daemon again",
        "debug": _LOGS,
        "terminal monitor": _LOGS,
        "terminal": "tables are as wide as the terminal; for a pager: fared-cli ... | less",
        "enable": "there is one level: who may use the socket may use all commands",
        "disable": "'drain' takes this router out of service, 'drain interface NAME' a link",
        "shutdown": "'drain' takes this router out of service, 'drain interface NAME' a link",
        "max-metric": "'drain' takes this router out of service",
        "overload": "'drain' takes this router out of service",
        "clear ip ospf": _CLEAR,
        "clear ip route": _CLEAR,
        "clear bgp": "'clear neighbor NAME' ends a session; with --soft, routes are told again",
        "clear ip bgp": "'clear neighbor NAME --soft'",
        "clear isis": _CLEAR,
        "clear ospf": _CLEAR,
        "request support": "'tech-support'",
        "generate": "'tech-support' writes all that a bug report needs into one tar",
        "show mpls": "fared has no MPLS; 'show bier' has BIER",
        "show vrf": "one daemon has one table, 'fib: table'; 'show status' tells what runs",
        "show route-map": "there are no route maps; 'show config' has filters and redistribution",
        "show access-lists": "'show config' has filters; 'explain PREFIX' says which denies it",
        "show arp": "'ip neighbor' of the shell; 'show neighbors' has those of the protocols",
        "show lldp": "'lldpcli' of the shell; 'show neighbors' has those of the protocols",
    }
)


class Habit(NamedTuple):
    """What another router's command is here.

    ``known`` is that command, ``ours`` the words to run instead, with those that followed; none if
    only ``text`` is to be said.
    """

    known: str
    ours: tuple[str, ...]
    text: str


def of(words: Sequence[str], *, whole: bool) -> Habit | None:
    """Return what these words are here; None if no other router has them either.

    ``whole``: only if nothing but options follows them.
    """
    if words[:1] in (["help"], ["?"]):
        return Habit("", (*words[1:], "--help"), "")
    least = next((n for n, word in enumerate(words) if word.startswith("-")), len(words))
    for length in range(least, (least - 1) * whole, -1):
        known = _known(words[:length])
        if known in _TOLD:
            return Habit(known, (), _TOLD[known])
        if known:
            ours = _LOOKS[known]
            text = "" if ours == "--version" else f"'{known}' is '{ours}' here"
            return Habit(known, (*ours.split(), *words[length:]), text)
    return None


def _known(words: Sequence[str]) -> str:
    """Return the command of the tables that these words are, or abbreviate alike; empty if none."""
    text = " ".join(words)
    if text in _LOOKS or text in _TOLD:
        return text
    found = {each for each in (*_LOOKS, *_TOLD) if _abbreviates(words, each.split())}
    meanings = {_LOOKS.get(each) or _TOLD[each] for each in found}
    return min(found, key=len) if len(meanings) == 1 else ""


def _abbreviates(words: Sequence[str], known: Sequence[str]) -> bool:
    """Whether each word begins one of ``known``; after the first ones a letter is sufficient."""
    if len(words) != len(known):
        return False
    return all(
        name.startswith(word) and len(word) >= min(1 if place else _LEAST, len(name))
        for place, (word, name) in enumerate(zip(words, known, strict=True))
    )

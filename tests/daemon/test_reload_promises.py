"""What ``config diff`` promises of a change is what a reload does, for every setting there is.

Two routers, A and B, run on a virtual clock, each from a configuration of its own. One setting
of A changes, as a reload changes it, and B stays as it is:

- UPDATE: the new value reaches the settings that A runs with, and no adjacency ends;
- BOUNCE: an adjacency of A ends;
- RESTART: A runs with what it had.
"""

from __future__ import annotations

import copy
import typing
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from deb.sample import sections
from fared.config import Config, ConfigErrors, Reload, diff, load_text, merged
from fared.config.section import Section
from fared.config.shapes import fields_of, section_in
from fared.core.links import Link
from fared.daemon.change.bgp_settings import link_settings
from fared.daemon.change.isis_settings import circuit_settings
from fared.daemon.change.ospf_settings import interface_settings
from fared.daemon.change.settings import link_events, router_settings
from fared.extensions.sim.network import Network, Node
from fared.extensions.sim.port import Port
from fared.protocols.igp.events import ADJACENT
from fared.router import events
from fared.router.settings import RouterSettings
from tests.config.links import named

Document = dict[str, Any]
Path = tuple[Any, ...]

AGREED = 90.0
"""Seconds within which two routers that agree are neighbors, whatever was before."""
REFUSED = 6.0
"""Seconds after which a neighbor that does not agree any more is gone; dead interval: 4 s."""
NOW = 1_800_000_000.0
GBIT = 1e9 / 8
KEYS = [
    {"algorithm": "hmac-sha-256", "key-id": 1, "key": "sent"},
    {
        "algorithm": "hmac-sha-256",
        "key-id": 2,
        "key": "of the past",
        "extended-sequence": True,
        "send-start": "2019-01-01T00:00:00Z",
        "send-end": "2020-01-01T00:00:00Z",
        "accept-start": "2019-01-01T00:00:00Z",
        "accept-end": "2020-01-01T00:00:00Z",
    },
]
ISIS_KEYS = [{k: v for k, v in key.items() if k != "extended-sequence"} for key in KEYS]
BFD: Document = {
    "enabled": True,
    "profile": "used",
    "authentication": {"algorithm": "keyed-sha-1", "key-id": 2, "key": "of the past"},
}
PROFILES: Document = {
    "profiles": {
        "used": {"authentication": BFD["authentication"]},
        "other": {"min-tx": "100ms", "authentication": BFD["authentication"]},
    }
}
COMMON: Document = {
    "router-id": "10.0.0.1",
    "hostname": "a",
    "interfaces": {"e*": {"bandwidth": "10G", "delay": "5ms"}},
    "adaptive": {"flows": 128, "metric": "available"},
    "bfd": PROFILES,
    "bier": {"bfr-id": 201, "hosts": {"10.0.0.1": 1}},
    "fib": {"fpm": {}},
    "link-health": {"interfaces": {"e*": {}}},
    "filters": {"used": ["permit 10.0.0.0/8 le 32"], "other": ["permit any"]},
}
SOURCES: Document = {
    "connected": {"prefixes": ["10.1.0.0/16"], "filter": "used"},
    "static": {"prefixes": ["10.2.0.0/16"], "filter": "used"},
    "default": {},
}
OF_PROTOCOL: Document = {"prefixes": ["10.4.0.0/16"], "filter": "used", "tag": 7}
BGP_SOURCES: Document = {
    source: {"prefixes": ["10.1.0.0/16"], "filter": "used", "med": 5, "tag": 7}
    for source in ("connected", "static", "ospf", "isis")
}
BASES: dict[str, Document] = {
    "ospf": {
        **COMMON,
        "ospf": {
            "areas": {
                "0.0.0.1": {
                    "type": "stub",
                    "ranges": {"10.9.0.0/16": {"cost": 5}},
                    "filter": {"in": "used", "out": "used"},
                    "interfaces": {"e*": {"authentication": {"keys": KEYS}, "bfd": BFD}},
                }
            },
            "redistribute": {**SOURCES, "bgp": OF_PROTOCOL, "isis": OF_PROTOCOL},
        },
    },
    "isis": {
        **COMMON,
        "isis": {
            "net": "49.0001.0100.0000.0001.00",
            "level": "level-1-2",
            "interfaces": {"e*": {"authentication": {"keys": ISIS_KEYS}, "bfd": BFD}},
            "level-1": {"authentication": {"keys": ISIS_KEYS}},
            "level-2": {"authentication": {"keys": ISIS_KEYS}},
            "redistribute": {**SOURCES, "bgp": OF_PROTOCOL, "ospf": OF_PROTOCOL},
            "inter-level-propagation-policies": {
                "filter": {"level1-to-level2": "used", "level2-to-level1": "used"}
            },
        },
    },
    "bgp": {
        **COMMON,
        "bgp": {
            "as": 65001,
            "networks": ["lo"],
            "redistribute": BGP_SOURCES,
            "neighbors": {
                "e*": {
                    "import": "all",
                    "export": "all",
                    "filter": {"import": "used", "export": "used"},
                    "authentication": {"key": "sent"},
                    "bfd": BFD,
                    "connect-retry": "100ms",
                }
            },
        },
    },
}
OTHER: dict[str, Any] = {
    "address": "127.0.0.2",
    "profile": "other",
    "filter": "other",
    "used": ["deny any"],
    "other": ["deny any"],
    "net": "49.0002.0100.0000.0001.00",
    "router-id": "10.0.0.9",
    "bandwidth": "25G",
    "http": "off",
    "address-families": ["ipv4"],
    "prefixes": ["10.3.0.0/16"],
    "state-directory": "/var/lib/other",
    "kind": "kernel",
    "databases": "/var/run/redis0/sonic-db/database_config.json",
    "redis": "/var/run/redis0/redis.sock",
    "http-names": ["router.example.net"],
    "counters": "/proc/self/net/dev",
    "mode": "act",
    "ratio": "0.002%",
    "share": "11%",
    "algorithm": "hmac-sha-512",
    "send-start": "2019-02-01T00:00:00Z",
    "accept-start": "2019-02-01T00:00:00Z",
    "send-end": "2020-02-01T00:00:00Z",
    "accept-end": "2020-02-01T00:00:00Z",
    "granularity": "packet",
    "packet-prefixes": ["10.3.0.0/16"],
    "dscp": [26],
    "udp-ports": [4791],
    "bsl": 128,
    "external-capacity-scope": "as",
    "tcp-ports": [5001],
    "networks": ["lo", "10.5.0.0/16"],
    "remote-as": "internal",
    "local-address": "10.0.0.1",
    "min-path-bandwidth": "25G",
    "key": "other",
    "as-path": "strict",
    "missing": "ecmp",
    "demand": "6.4T",
    "value": "share",
    "receive": False,
}
"""Other values of what is neither a number, a duration, a percentage nor a choice."""
TRIED = (
    *("none", "leaf", "normal", "broadcast", "level-1", "capacity", "resilient", "check", "keep"),
    *("debug", "json", "10ms", "60ms", "300ms", "600ms", "3s", "7%", "other", 100),
    "meticulous-keyed-sha-1",
)
IN_THE_DAEMON = {
    ("log", "level"),
    ("log", "format"),
    ("fib", "on-exit"),
    ("fib", "fpm", "address"),
    ("fib", "fpm", "port"),
    ("api", "http-names"),
    ("api", "change-group"),
    ("filters", "other"),
    ("ospf", "stub-router-on-shutdown"),
    ("isis", "overload-on-shutdown"),
    ("bgp", "graceful-shutdown-on-stop"),
}
"""What no engine hears of: the log is tried in ``test_logs``, the end in ``test_life`` and
``test_drains``, names are looked up for each request, and links are judged in
``test_link_health``."""
NOT_IN_USE = {
    ("bfd", "profiles", "used", "strict"),
    ("ospf", "areas", "0.0.0.1", "interfaces", "e*", "bfd", "strict"),
}
"""OSPF announces strict BFD on interfaces without cryptographic keys only."""


ONLY_ONE = ("bgp", "path-bandwidth", "value")
"""It has one value: a share is for neighbors."""


IF_ENABLED = ("bgp", "graceful-restart", "restart-time")
"""Neighbors are told of it only while graceful restart is enabled."""


def config_of(document: Document) -> Config:
    return load_text(yaml.safe_dump(document))


def written_out(protocol: str) -> Document:
    """The base with all defaults, keys as they stand in the file."""
    document = config_of(BASES[protocol]).document()

    def reveal(value: Any) -> Any:
        if isinstance(value, list):
            return [reveal(part) for part in value]
        if not isinstance(value, dict):
            return value
        known = {key["key-id"]: key["key"] for key in KEYS}
        mine = known.get(value.get("key-id"), "sent")  # keys of BGP have no id
        return {k: mine if k == "key" else reveal(v) for k, v in value.items()}

    return typing.cast("Document", reveal(document))


def leaves(value: Any, path: Path = ()) -> Iterator[Path]:
    """Every setting below; of keys and steps only the second: that key is not sent."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield from leaves(part, (*path, key))
    elif isinstance(value, list) and path[-1] in ("keys", "steps"):
        yield from leaves(value[1], (*path, 1))
    else:
        yield path


def at(document: Document, path: Path) -> Any:
    for key in path:
        document = document[key]
    return document


def replaced(document: Document, path: Path, value: Any) -> Document:
    changed = copy.deepcopy(document)
    at(changed, path[:-1])[path[-1]] = value
    return changed


def changed_at(document: Document, path: Path) -> Document:
    """The document with another value of one setting, the first that is valid there."""
    old, before = at(document, path), config_of(document)
    number = isinstance(old, int) and not isinstance(old, bool)
    own = [OTHER.get(str(path[-1])), not old, *([old + 1, old - 1] if number else ())]
    for value in (*own, *TRIED):
        changed = replaced(document, path, value)
        try:
            if value is not None and config_of(changed) != before:
                return changed
        except ConfigErrors:
            continue
    raise AssertionError(f"no other value fits at {path}")


class Pair:
    """A and B on one link, with what A runs."""

    def __init__(self, protocol: str) -> None:
        self.document = written_out(protocol)
        self.running = config_of(self.document)
        other = replaced(self.document, ("router-id",), "10.0.0.2")
        if protocol == "isis":
            other = replaced(other, ("isis", "net"), "49.0001.0100.0000.0002.00")
        elif protocol == "bgp":
            other = replaced(other, ("bgp", "as"), 65002)
        else:
            link = ("ospf", "areas", "0.0.0.1", "interfaces", "e*", "ttl-security")
            other = replaced(other, link, "tx-only")
        self.net = Network()
        ports = [self._add("a", self.running, 0), self._add("b", config_of(other), 1)]
        self.net.connect(*ports)
        self.net.start_all()
        self.net.run_for(0.2)
        self.await_neighbors()

    def _add(self, name: str, config: Config, host: int) -> Port:
        self.net.add_node(name, settings_of(config, host + 1))
        return self.net.add_port(
            name,
            0x0A000000 + host,
            31,
            self._settings(config),
            interface="e1",
            capacity=10 * GBIT,
        )

    def _settings(self, config: Config) -> dict[str, object]:
        """Of the interface, by protocol."""
        found = {
            "ospf": interface_settings(config, named("e1")),
            "isis": circuit_settings(config, named("e1")),
            "bgp": link_settings(config, named("e1")) if config.bgp else None,
        }
        return {proto: settings for proto, settings in found.items() if settings is not None}

    @property
    def a(self) -> Node:
        return self.net.nodes["a"]

    def link(self) -> Link:
        return self.a.ports[1].link()

    def neighbors(self) -> int:
        """How many adjacencies A has."""
        progress = self.a.running.progress()
        return progress.full if not progress.forming else 0

    def await_neighbors(self) -> None:
        deadline = self.net.now + AGREED
        while not self.neighbors():
            assert self.net.now < deadline, "no adjacency"
            self.net.run_for(0.1)

    def ended(self) -> int:
        """How often an adjacency of A has ended."""
        instance = next(iter(self.a.running.instances.values()))
        transitions = instance.engine.counters.transitions
        return sum(n for (before, _), n in transitions.items() if before in ADJACENT)

    def reload(self, config: Config) -> None:
        """What the daemon does with a file that was read."""
        old, self.running = self.running, merged(self.running, config)
        self.net.input("a", events.RouterSettingsApplied(settings_of(self.running, 1)))
        port = self.a.ports[1]
        port.settings = self._settings(self.running)
        if link_events(old, self.link()) != link_events(self.running, self.link()):
            self.net.input("a", *link_events(self.running, self.link()))

    def effect(self, config: Config) -> tuple[bool, bool]:
        """Reload: whether other settings run then, and whether an adjacency ends."""
        before, ended = self.seen(), self.ended()
        self.reload(config)
        self.net.run_for(REFUSED)
        return self.seen() != before, self.ended() > ended

    def seen(self) -> tuple[RouterSettings, list[events.Input]]:
        """What the engines run with."""
        return self.a.running.settings, link_events(self.running, self.link())

    def restore(self) -> None:
        """Run the first configuration again, as neighbors."""
        self.reload(config_of(self.document))
        self.await_neighbors()


def settings_of(config: Config, router_id: int) -> RouterSettings:
    hostname = config.hostname or "system"
    identity = config.router_id or router_id
    return router_settings(config, identity, hostname).with_clock(NOW, 1)


_pairs: dict[str, Pair] = {}


@pytest.fixture
def pair(request: pytest.FixtureRequest) -> Iterator[Pair]:
    protocol = request.param
    if protocol not in _pairs:
        _pairs[protocol] = Pair(protocol)
    pair = _pairs[protocol]
    yield pair
    pair.restore()


def overridden(path: Path) -> bool:
    """Whether no interface uses a setting of a profile: another profile, or a key of its own."""
    return path[:2] == ("bfd", "profiles") and (path[2] == "other" or "authentication" in path)


SETTINGS = [
    pytest.param(protocol, path, id=".".join(map(str, path)))
    for protocol in BASES
    for path in leaves(written_out(protocol))
    if (protocol == "ospf" or path[0] == protocol) and not overridden(path) and path != ONLY_ONE
    # BFD's settings are those of the other protocols
    if not (protocol == "bgp" and "bfd" in path[:-1] and path[-1] != "enabled")
]


@pytest.mark.parametrize(("pair", "path"), SETTINGS, indirect=["pair"])
def test_a_changed_setting_does_what_diff_says(pair: Pair, path: Path):
    wanted = config_of(changed_at(pair.document, path))
    (change,) = diff(pair.running, wanted)
    assert change.path == tuple(map(str, path))
    reached, ended = pair.effect(wanted)
    if change.action is Reload.RESTART:
        assert (reached, ended) == (False, False)
        assert pair.running == config_of(pair.document)
    else:
        assert reached or path in IN_THE_DAEMON | NOT_IN_USE or path[0] == "link-health"
        assert pair.running == wanted
        assert ended is (change.action is Reload.BOUNCE) or path == IF_ENABLED


def test_every_setting_was_tried():
    """A new setting comes here by itself, with its default, or needs a value in the bases."""
    tried = {_general(path) for protocol in BASES for path in leaves(written_out(protocol))}
    known = {
        path
        for path in _model_leaves(Config)
        # A key that stands alone has the leaves of one in a list; a file holds what `key` does.
        if "authentication" not in path[:-1]
        or ({"keys", "bfd", "bgp"} & {*path} and path[-1] != "key-file")
    }
    assert tried - known == set()
    assert known - tried == {
        path for path in known if path[-1] == "extended-sequence" and path[0] == "isis"
    }


def _general(path: Path) -> Path:
    """A path with ``*`` in place of what an operator names."""
    named = {*["interfaces", "areas", "ranges", "keys", "steps", "profiles", "hosts", "filters"]}
    named.add("neighbors")
    return tuple("*" if at and path[at - 1] in named else key for at, key in enumerate(path))


def _model_leaves(kind: type[Section], path: Path = ()) -> Iterator[Path]:
    for key, field in fields_of(kind).items():
        below = section_in(field.hint)
        many = "dict[" in str(field.hint) or (below and "tuple[" in str(field.hint))
        here = (*path, key, "*") if many else (*path, key)
        yield from [here] if below is None else _model_leaves(below, here)


OSPF_ENTRY = ("ospf", "areas", "0.0.0.1", "interfaces")


def _entries(protocol: str, interfaces: Document) -> Document:
    path = OSPF_ENTRY if protocol == "ospf" else ("isis", "interfaces")
    return replaced(written_out(protocol), path, interfaces)


@pytest.mark.parametrize("pair", ["ospf", "isis"], indirect=True)
@pytest.mark.parametrize(
    ("entries", "action"),
    [
        ({}, Reload.BOUNCE),
        ({"e*": {}, "e1": {}}, Reload.UPDATE),
        ({"e*": {}, "e1": {"passive": True}}, Reload.BOUNCE),
        ({"e*": {}, "e1": {"cost": 7}}, Reload.UPDATE),
        ({"e*": {}, "e[1]": {"passive": True}}, Reload.BOUNCE),
        ({"e*": {}, "e[1]": {"cost": 7}}, Reload.UPDATE),
        ({"e*": {}, "f*": {"passive": True}}, Reload.UPDATE),
        ({"e*": {}, "f*": {}}, Reload.UPDATE),
        ({"e1": {}}, Reload.BOUNCE),
    ],
)
def test_an_entry_that_comes_or_goes_does_what_diff_says(
    pair: Pair, entries: Document, action: Reload
):
    """Another key may have counted before, or count now: what differs between them decides.

    Of a glob that goes nobody knows what else it matched, so there diff warns of the worst.
    """
    protocol = "isis" if pair.running.isis else "ospf"
    usual = at(pair.document, OSPF_ENTRY if protocol == "ospf" else ("isis", "interfaces"))["e*"]
    cost = "metric" if protocol == "isis" else "cost"
    wanted = config_of(
        _entries(
            protocol,
            {
                name: {**usual, **{cost if k == "cost" else k: v for k, v in own.items()}}
                for name, own in entries.items()
            },
        )
    )
    assert max(
        (change.action for change in diff(pair.running, wanted)), key=list(Reload).index
    ) is (action)
    _, ended = pair.effect(wanted)
    if "e*" in entries or not entries:
        assert ended is (action is Reload.BOUNCE)


@pytest.mark.parametrize("pair", ["ospf"], indirect=True)
def test_an_interface_that_moves_to_another_area_loses_its_adjacency(pair: Pair):
    usual = at(pair.document, OSPF_ENTRY)["e*"]
    moved = replaced(pair.document, OSPF_ENTRY, {"e*": usual})
    moved["ospf"]["areas"]["0.0.0.2"] = {"type": "stub", "interfaces": {"e1": usual}}
    wanted = config_of(moved)
    (change,) = diff(pair.running, wanted)
    assert (change.path[2], change.action) == ("0.0.0.2", Reload.BOUNCE)
    assert pair.effect(wanted) == (True, True)


def test_no_mapping_by_name_holds_what_needs_a_restart():
    """``merged`` takes entries over as they are."""
    found = {
        inside
        for section in sections()
        for field in fields_of(section).values()
        if "dict[" in str(field.hint) and (inside := section_in(field.hint))
    }
    assert found
    for section in found:
        below = [f for each in sections(section) for f in fields_of(each).values()]
        assert not [f.key for f in below if f.reload is Reload.RESTART], section

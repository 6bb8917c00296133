"""Why a link has no adjacency: fared beside FRR and BIRD, with one mistake on each of its links.

Both ends of a link are configured as the manuals say, but for one thing. ``show neighbors`` of
fared must name it, by code and in a sentence, and ``validate`` must fail. What fared knows is what
it receives: comments tell what that is where the mistake is not in a hello.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest
import yaml

from fared.extensions.lab.fabric import Fabric, RunningNode
from fared.protocols.igp.refusals import CAUSES
from tests.peers.peers import fared, full_neighbors, tell, vtysh
from tests.waiting import seconds_until, wait_for

pytestmark = [pytest.mark.netns, pytest.mark.peers, pytest.mark.slow]

Json = dict[str, Any]
BIRDS_AREA = "area 0.0.0.1"
_NOTHING: Mapping[str, Any] = MappingProxyType({})


class Mistake(NamedTuple):
    """One mistake, and a link from X to each peer that can make it."""

    cause: str
    """The code that fared tells; empty: nothing is wrong."""
    ours: Mapping[str, Any] = _NOTHING
    """Settings of our interface."""
    frr: Sequence[str] = ()
    """Lines of FRR's interface."""
    bird: str = ""
    """Options of BIRD's interface, or the area that it is in."""
    near: Sequence[str] = ()
    """Commands of ip at our end before the daemons start; ``{}`` is the link."""
    far: Sequence[str] = ()
    differs: str = ""
    """The values with which the sentence ends."""
    used: bool = False
    """Whether the adjacency carries traffic, so that the link is not missing."""
    twin: bool = False
    """Whether the peer is a router with our id."""


def addressed(address: str) -> tuple[str, ...]:
    return "addr flush dev {} scope global", f"addr add {address} dev {{}}"


NEAR, FAR, ELSEWHERE = map(addressed, ("10.9.0.1/24", "10.9.0.2/24", "10.8.0.2/24"))
"""Of the same network on several links; a broadcast network is no /31."""
LARGE, SMALL = ("link set {} mtu 9000",), ("link set {} mtu 1400",)
LAN = {"network-type": "broadcast"}
KEY = {"authentication": {"algorithm": "md5", "key-id": 1, "key": "alpha"}}
BIRDS_KEY = 'authentication cryptographic; password "beta" { id 1; algorithm keyed md5; };'
FRRS_KEY = ("ip ospf authentication message-digest", "ip ospf message-digest-key 1 md5 beta")
FRRS_LAN = ("ip ospf network broadcast",)
OSPF = {
    "hello": Mistake(
        "hello-interval-mismatch",
        frr=["ip ospf hello-interval 2"],
        bird="hello 2; dead 4;",
        differs="2, ours 1",
    ),
    "dead": Mistake(
        "dead-interval-mismatch",
        frr=["ip ospf dead-interval 8"],
        bird="dead 8;",
        differs="8, ours 4",
    ),
    "key": Mistake("auth-digest", KEY, FRRS_KEY, BIRDS_KEY),
    "nokey": Mistake("auth-type", KEY),
    "area": Mistake(
        "area-mismatch",
        frr=["ip ospf area 0.0.0.1"],
        bird=BIRDS_AREA,
        differs="0.0.0.1, ours 0.0.0.0",
    ),
    # The type is not in a hello, but only a broadcast network has a designated router (RFC 2328
    # §9.4): our end is told of one, or, after Waiting, of none. There it is even Full at both ends.
    "lan": Mistake(
        "network-type-mismatch", frr=FRRS_LAN, bird="type broadcast;", near=NEAR, far=FAR
    ),
    "ptp": Mistake("network-type-mismatch", LAN, near=NEAR, far=FAR),
    "subnet": Mistake("source-network", near=NEAR, far=ELSEWHERE),
    "mask": Mistake(
        "network-mask-mismatch",
        LAN,
        FRRS_LAN,
        "type broadcast;",
        NEAR,
        addressed("10.9.0.2/25"),
        differs="255.255.255.128, ours 255.255.255.0",
    ),
    "small": Mistake("mtu-mismatch", far=SMALL, differs="1400, ours 1500, it refuses ours"),
    "large": Mistake("mtu-mismatch", near=SMALL, differs="1500, ours 1400, its descriptions"),
    "twin": Mistake("duplicate-router-id", twin=True),
}
HMAC = {"authentication": {"algorithm": "hmac-md5", "key": "alpha"}}
FRRS_HMAC = ("isis password md5 beta",)
ISIS = {
    # ISO 10589 §8.2.3, §9.7: a hello tells its own holding time, so that no interval must be equal
    "hello": Mistake("", frr=["isis hello-interval 2", "isis hello-multiplier 9"], used=True),
    "key": Mistake("auth", HMAC, FRRS_HMAC),
    "nokey": Mistake("auth", HMAC),
    # Nothing in a hello is wrong for us who have no key; it does not list us.
    "theirkey": Mistake("not-heard", frr=FRRS_HMAC),
    "area": Mistake(
        "area-mismatch",
        {"level": "level-1"},
        ["isis circuit-type level-1"],
        differs="49.0002, ours 49.0001",
    ),
    "level1": Mistake("level-mismatch", {"level": "level-2"}, ["isis circuit-type level-1"]),
    "level2": Mistake("level-mismatch", {"level": "level-1"}, ["isis circuit-type level-2-only"]),
    "lan": Mistake("network-type-mismatch", frr=["no isis network point-to-point"]),
    "ptp": Mistake("network-type-mismatch", LAN),
    # FRR's adjacency is up, too, but it has no route over the link; fared has.
    "subnet": Mistake(
        "source-network",
        near=NEAR,
        far=ELSEWHERE,
        differs="10.8.0.2, ours 10.9.0.1/24",
        used=True,
    ),
    # Hellos are padded to the MTU (ISO 10589 §8.2.3): the larger end's are lost, and tell nothing.
    "small": Mistake("mtu-mismatch", far=SMALL, differs="1400, ours 1500, it does not receive"),
    "large": Mistake("silent", far=LARGE),
    "lsps": Mistake("mtu-too-small", near=SMALL, far=SMALL),
    "family": Mistake("no-common-protocol", frr=["no ip router isis fabric"]),
    "twin": Mistake("duplicate-system-id", twin=True),
}
MISTAKES = {"ospf": OSPF, "isis": ISIS}
PEERS = {"F": "frr", "B": "bird"}
TWINS = {"F": "G", "B": "C"}


class Link(NamedTuple):
    """One of the links of X, with its mistake."""

    name: str
    peer: str
    mistake: Mistake


def links_of(protocol: str) -> list[Link]:
    peers = PEERS if protocol == "ospf" else {"F": "frr"}
    return [
        Link(f"{peer.lower()}-{name}", TWINS[peer] if mistake.twin else peer, mistake)
        for peer in peers
        for name, mistake in MISTAKES[protocol].items()
    ]


def topology(protocol: str) -> str:
    """X with all links; in IS-IS the peer is in another area, which matters in level 1 only."""
    labels = {"fared-lab.protocol": protocol, "fared-lab.isis-area": "49.0001"}
    if protocol == "isis":
        labels["fared-lab.isis-level"] = "level-1-2"
    links = links_of(protocol)
    kinds = {**PEERS, **{TWINS[peer]: kind for peer, kind in PEERS.items()}}
    nodes: Json = {link.peer: {"kind": kinds[link.peer]} for link in links}
    nodes["F"]["labels"] = {"fared-lab.isis-area": "49.0002"}
    made = {
        "defaults": {"labels": labels},
        "nodes": {"X": {"kind": "fared"}, **nodes},
        "links": [{"endpoints": [f"X:{n}", f"{peer}:{n}"]} for n, peer, _ in links],
    }
    return yaml.safe_dump({"name": f"reasons{protocol}", "topology": made})


class Wrong:
    """The running fabric."""

    def __init__(self, fabric: Fabric, protocol: str) -> None:
        self.fabric = fabric
        self.protocol = protocol
        self.links = links_of(protocol)
        self.x = fabric.node("X")

    def write(self) -> None:
        """Write the configurations, with the mistakes, and make those of addresses and MTUs."""
        for node in self.fabric.nodes.values():
            node.directory.mkdir(parents=True)
            for file, text in node.kind.files(node.plan, node.directory).items():
                (node.directory / file).write_text(self._wrong(node, file, text))
        for name, peer, mistake in self.links:
            for at, commands in (("X", mistake.near), (peer, mistake.far)):
                if commands:
                    lines = [command.format(name) for command in commands]
                    self.fabric.node(at).netns.batch("ip", lines)

    def _wrong(self, node: RunningNode, file: str, text: str) -> str:
        if file == "zebra.conf":
            return text
        if file == "fared.yaml":
            return self._ours(yaml.safe_load(text))
        if node.name in TWINS.values():
            theirs, ours = node.plan, self.x.plan
            id_line = re.compile(rf"(router.id ){theirs.router_id}|(net ){theirs.net}")
            mine = str(ours.net if ours.isis else ours.router_id)
            text = id_line.sub(lambda found: (found[1] or found[2]) + mine, text)
        # FRR enables no circuit whose MTU is too small for its own LSPs
        text = text.replace(" metric-style", " lsp-mtu 1300\n metric-style")
        for name, peer, mistake in self.links:
            if peer == node.name and file == "bird.conf":
                text = bird_with(text, name, mistake.bird)
            elif peer == node.name:
                text = frr_with(text, name, mistake.frr)
        return text

    def _ours(self, config: Json) -> str:
        section = config[self.protocol]
        if self.protocol == "isis":
            section["address-families"] = ["ipv4"]
        else:
            section = section["areas"]["0.0.0.0"]
        for name, _, mistake in self.links:
            section["interfaces"][name].update(mistake.ours)
        return yaml.safe_dump(config)

    def neighbors(self) -> Json:
        return fared(self.x).request("show neighbors")

    def told(self) -> dict[str, str]:
        """The cause at each link of X: that of a missing one, or that of its neighbor."""
        shown = self.neighbors()
        found = {n["interface"]: (n["problem"] or {}).get("cause", "") for n in shown["neighbors"]}
        return found | {each["interface"]: each["cause"] for each in shown["missing"]}


def frr_with(text: str, name: str, lines: Sequence[str]) -> str:
    """FRR's file with lines at an interface, instead of those that set the same."""
    (block,) = re.findall(rf"^interface {name}\n(?: .*\n)+", text, re.MULTILINE)
    kept = block.splitlines(keepends=True)
    for line in lines:
        words = line.rpartition(" ")[0]
        kept = [old for old in kept if not old.startswith(f" {words} ")] + [f" {line}\n"]
    return text.replace(block, "".join(kept))


def bird_with(text: str, name: str, options: str) -> str:
    """BIRD's file with options of an interface, or with the interface in another area."""
    (line,) = re.findall(rf'^ *interface "{name}" .*\n', text, re.MULTILINE)
    if options == BIRDS_AREA:
        return text.replace(line, "").rstrip()[:-1] + f"  {options} {{\n{line}  }};\n}}\n"
    return text.replace(line, line.replace(" };\n", f" {options} }};\n"))


@pytest.fixture(scope="module", params=["ospf", "isis"])
def wrong(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Wrong]:
    directory = tmp_path_factory.mktemp("reasons")
    file = directory / "topology.clab.yml"
    file.write_text(topology(request.param))
    fabric = Fabric.from_file(file, directory=directory / "state")
    try:
        fabric.build()
        wrong = Wrong(fabric, request.param)
        wrong.write()
        for name in fabric.nodes:
            fabric.start_node(name)
        wanted = {name: mistake.cause for name, _, mistake in wrong.links}
        took = seconds_until(
            lambda: wrong.told() == wanted,
            30,
            lambda: f"{sorted(wanted.items() - wrong.told().items())} are told",
        )
        tell(f"{len(wanted)} causes told {took:.1f} s after the last daemon started")
        yield wrong
    finally:
        fabric.stop()


def test_each_mistake_is_told_by_its_cause(wrong: Wrong):
    """By code where a program asks, by the sentence of that cause where a person does."""
    shown = wrong.neighbors()
    missing = {each["interface"]: each for each in shown["missing"]}
    assert set(missing) == {name for name, _, mistake in wrong.links if not mistake.used}
    for name, _, mistake in wrong.links:
        causes = {each["cause"]: each for each in shown["refused"] if each["interface"] == name}
        problems = [n["problem"] for n in shown["neighbors"] if n["interface"] == name]
        causes |= {each["cause"]: each for each in problems if each}
        assert set(causes) == {mistake.cause} - {"", "silent"}, name
        for told in (*causes.values(), *filter(None, [missing.get(name)])):
            assert CAUSES.get(mistake.cause, "no hello has arrived") in told["text"]
            assert mistake.differs in told["text"]


def test_validate_fails_with_the_reasons(wrong: Wrong):
    shown = wrong.neighbors()
    checks = {each["name"]: each for each in fared(wrong.x).request("validate")["checks"]}
    links = checks["links have an adjacency"]
    total, gone = len(wrong.links), len(shown["missing"])
    assert not links["ok"]
    assert links["detail"].startswith(f"{total - gone} of {total} have one: ")
    for each in shown["missing"][:5]:
        assert f"{each['interface']}: {each['text']}" in links["detail"]
    assert {name for name, check in checks.items() if not check["ok"]} == {
        "neighbors are full" if wrong.protocol == "ospf" else "adjacencies are up",
        "links have an adjacency",
        "hellos are accepted",
        "router id is unique",
    }


def test_where_the_others_see_a_good_adjacency_paths_are_missing(wrong: Wrong):
    """OSPF: each end advertises a link that the other does not (RFC 2328 §16.1 (2) (b)). IS-IS:
    FRR takes no next hop of another network, and fared does."""
    if wrong.protocol == "ospf":
        for peer in PEERS:
            link = f"{peer.lower()}-ptp"
            assert link in full_neighbors(wrong.fabric.node(peer))
            assert link in full_neighbors(wrong.x)
        assert routed(wrong, "X", "F") == routed(wrong, "F", "X") == set()
    else:
        both = {"f-hello", "f-subnet"}
        wait_for(lambda: routed(wrong, "X", "F") == both, 10, "fared's paths")
        wait_for(lambda: routed(wrong, "F", "X") == {"f-hello"}, 10, "FRR's path")
        shown = vtysh(wrong.fabric.node("F"), "show isis neighbor detail")
        assert re.search(r"Interface: f-subnet, .*State: Up", shown)


def routed(wrong: Wrong, source: str, target: str) -> set[str]:
    """The interfaces over which a kernel reaches a router."""
    prefix = f"{wrong.fabric.plan.node(target).router_id}/32"
    return {hop.interface for hop in wrong.fabric.view(source).hops(prefix)}

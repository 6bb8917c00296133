"""IS-IS with keys: fared beside FRR's isisd, and beside itself where FRR 8.4 knows no HMAC-SHA.

X signs hellos with another key on each link and everything of a level with one of that level; each
FRR is told what its manual says: ``isis password``, ``area-password``, ``domain-password``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
import yaml

from fared.extensions.lab.fabric import Fabric
from tests.peers.isis_peers import adjacencies, databases, hostnames
from tests.peers.isis_recordings import judge, pdu_errors
from tests.peers.peers import fared, tell, vtysh
from tests.peers.recordings import ISIS, WIRESHARK, Recordings, recorded
from tests.waiting import seconds_until, wait_for

pytestmark = [pytest.mark.netns, pytest.mark.peers, pytest.mark.slow]

SECRETS = ("alpha", "beta-gamma", "delta-epsilon", "region", "realm")
ALPHA, BETA, WRONG, AREA, DOMAIN = SECRETS
Json = dict[str, Any]


class Case(NamedTuple):
    """One link of X: the peer at its far end, and the keys of hellos both ends are told."""

    peer: str
    ours: Json | None
    theirs: str | Json | None
    good: bool = True


def key(algorithm: str, secret: str = ALPHA, **more: Any) -> Json:
    return {"algorithm": algorithm, "key": secret, **more}


def sha(bits: int, secret: str = ALPHA, key_id: int = 1) -> Json:
    return key(f"hmac-sha-{bits}", secret, **{"key-id": key_id})


MD5, CLEAR = key("hmac-md5"), key("cleartext")
CASES = {
    "fm": Case("F", MD5, f"isis password md5 {ALPHA}"),
    "fc": Case("F", CLEAR, f"isis password clear {ALPHA}"),
    "fr": Case("F", MD5, f"isis password md5 {ALPHA}"),
    "fxm": Case("F", MD5, f"isis password md5 {WRONG}", good=False),
    "fxc": Case("F", CLEAR, f"isis password clear {WRONG}", good=False),
    "fx0": Case("F", MD5, None, good=False),
    "y1": Case("Y", sha(1), sha(1)),
    "y256": Case("Y", sha(256), sha(256)),
    "y384": Case("Y", sha(384), sha(384)),
    "y512": Case("Y", sha(512), sha(512)),
    "yr": Case("Y", sha(256), sha(256)),
    "yx": Case("Y", sha(256), sha(256, WRONG), good=False),
    "yi": Case("Y", sha(256), sha(256, key_id=2), good=False),
    "V": Case("V", None, None),
    "S": Case("S", None, None),
    "N": Case("N", None, None),
    "W": Case("W", None, None),
}
GOOD = {name for name, case in CASES.items() if case.good}
BAD = set(CASES) - GOOD
ROLLING = {"fr", "yr"}
PASSWORDS = {
    "F": f" domain-password md5 {DOMAIN} authenticate snp validate",
    "V": f" area-password md5 {AREA} authenticate snp validate",
    "S": f" area-password md5 {AREA} authenticate snp send-only",
    "N": f" area-password md5 {AREA}",  # of LSPs only
    "W": f" area-password md5 {WRONG} authenticate snp validate",
}
LEVELS = {"level-1": key("hmac-md5", AREA), "level-2": key("hmac-md5", DOMAIN)}
LINKS = "\n".join(
    f'    - {{endpoints: ["X:{name}", "{case.peer}:{name}"],'
    f" vars: {{level: {'level-1' if case.peer in 'VSNW' else 'level-2'}}}}}"
    for name, case in CASES.items()
)
TOPOLOGY = f"""
name: isiskeys
topology:
  defaults: {{labels: {{fared-lab.protocol: isis, fared-lab.isis-level: level-1}}}}
  nodes:
    X: {{kind: fared, labels: {{fared-lab.isis-level: level-1-2}}}}
    Y: {{kind: fared, labels: {{fared-lab.isis-level: level-2}}}}
    F: {{kind: frr, labels: {{fared-lab.isis-level: level-2}}}}
    V: {{kind: frr}}
    S: {{kind: frr}}
    N: {{kind: frr}}
    W: {{kind: frr}}
    C: {{kind: fared, labels: {{fared-lab.isis-level: level-1-2}}}}
    P: {{kind: frr}}
    Q: {{kind: frr, labels: {{fared-lab.isis-level: level-2}}}}
  links:
{LINKS}
    - {{endpoints: ["C:P", "P:C"], vars: {{level: level-1}}}}
    - {{endpoints: ["C:Q", "Q:C"], vars: {{level: level-2}}}}
"""
"""C signs its levels with passwords in clear text."""
CLEAR_PASSWORDS = {
    "P": f" area-password clear {AREA} authenticate snp validate",
    "Q": f" domain-password clear {DOMAIN} authenticate snp validate",
}
CLEAR_LEVELS = {"level-1": key("cleartext", AREA), "level-2": key("cleartext", DOMAIN)}


class Keyed:
    """The running fabric, and how to tell each router other keys."""

    def __init__(self, fabric: Fabric, recordings: Recordings) -> None:
        self.fabric = fabric
        self.recordings = recordings
        self.names = hostnames(fabric.plan)
        self.configs: dict[str, Json] = {}

    def write(self) -> None:
        """Write all configurations with their keys."""
        for name in self.fabric.nodes:
            node = self.fabric.node(name)
            node.directory.mkdir(parents=True)
            for file, text in node.kind.files(node.plan, node.directory).items():
                (node.directory / file).write_text(self._keyed(name, text, file))
        for name, config in self.configs.items():
            self.save(name, config)

    def _keyed(self, name: str, text: str, file: str) -> str:
        if file == "fared.yaml":
            self.configs[name] = config = yaml.safe_load(text)
            levels = CLEAR_LEVELS if name == "C" else LEVELS
            for level, secret in levels.items():
                if level == "level-2" or name != "Y":
                    config["isis"][level] = {"authentication": secret}
            for link, case in CASES.items():
                ours = {"X": case.ours, case.peer: case.theirs}.get(name)
                if isinstance(ours, dict):
                    config["isis"]["interfaces"][link]["authentication"] = ours
        elif file == "isisd.conf":
            level = {**PASSWORDS, **CLEAR_PASSWORDS}[name]
            # before all else: FRR's first LSP is made when it reads its title
            text = text.replace("router isis fabric\n", f"router isis fabric\n{level}\n", 1)
            for link, case in CASES.items():
                if isinstance(case.theirs, str):
                    block = f"interface {link}\n ip router isis fabric\n"
                    text = text.replace(block, f"{block} {case.theirs}\n")
        return text

    def save(self, name: str, config: Json) -> None:
        """Write a fared's file."""
        (self.fabric.node(name).directory / "fared.yaml").write_text(yaml.safe_dump(config))

    def tell(self, name: str, link: str, *keys: Json) -> Json:
        """Give a fared other keys for a link and let it read its file; what it says of that."""
        interface = self.configs[name]["isis"]["interfaces"][link]
        interface["authentication"] = {"keys": list(keys)}
        self.save(name, self.configs[name])
        return fared(self.fabric.node(name)).request("reload")

    def up(self, name: str) -> set[str]:
        """The interfaces with an adjacency."""
        return set(adjacencies(self.fabric.node(name), self.names))

    def records(self, name: str, event: str) -> list[Json]:
        """What a fared has logged under a name."""
        lines = (self.fabric.node(name).directory / "fared.log").read_text().splitlines()
        return [json.loads(line) for line in lines if f'"event": "{event}"' in line]

    def changes(self, name: str, link: str) -> int:
        """How often an adjacency has changed its state."""
        self.fabric.node(name).cli("show", "log")  # lines that wait are written for it
        found = self.records(name, "neighbor-changed")
        return sum(record["interface"] == link for record in found)

    def held(self, name: str, level: int) -> set[str]:
        """The hostnames of the routers of which a router has LSPs in a level."""
        by_system = {system: host for host, system in self.names.items()}
        found = databases(self.fabric.node(name), self.names).get(level, frozenset())
        return {by_system[lsp.lsp_id[:14]] for lsp in found}


@pytest.fixture(scope="module")
def keyed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Keyed]:
    with recorded(TOPOLOGY, tmp_path_factory.mktemp("keys"), ISIS) as (fabric, recordings):
        keyed = Keyed(fabric, recordings)
        keyed.write()
        for name in fabric.nodes:
            fabric.start_node(name)
        yield keyed


@pytest.fixture
def story(keyed: Keyed) -> Keyed:
    """The fabric after all other tests."""
    return keyed


def test_circuits_are_up_with_every_algorithm_of_the_peers(keyed: Keyed):
    """HMAC-MD5 and clear text with FRR, HMAC-SHA-1 to -512 with fared; both ends agree."""
    wanted = GOOD - ROLLING
    took = seconds_until(lambda: wanted <= keyed.up("X"), 20.0, lambda: f"{wanted - keyed.up('X')}")
    for peer in ("F", "Y", "V", "S", "N"):
        links = {name for name in wanted if CASES[name].peer == peer}
        wait_for(lambda p=peer, w=links: w <= keyed.up(p) | {"X"}, 40.0, f"{peer}: {links}")
    tell(f"{len(wanted)} authenticated circuits are up {took:.2f} s after the last daemon started")


def test_a_wrong_key_never_forms_an_adjacency_and_is_counted(keyed: Keyed):
    """Wrong key, wrong key id, no key at the far end: refused, logged, counted on and on."""
    wait_for(
        lambda: {r.get("interface") for r in keyed.records("X", "isis-rejected")} >= BAD,
        10.0,
        lambda: str(keyed.records("X", "isis-rejected")),
    )
    before = pdu_errors(keyed.fabric.node("X"))["auth"]
    wait_for(lambda: pdu_errors(keyed.fabric.node("X"))["auth"] >= before + 10, 40.0, "counted")
    assert not keyed.up("X") & BAD
    assert not keyed.up("F") & BAD
    assert not keyed.up("Y") & BAD
    assert set(pdu_errors(keyed.fabric.node("X"))) <= {"auth", "no-adjacency"}


def test_lsps_and_snps_of_a_level_are_signed(keyed: Keyed):
    """Everybody with the area's key has the LSPs of the area, and so with the domain's.

    W, whose area password is another, is a neighbor, for hellos have no key there; but its LSPs
    are believed by nobody, and it believes nobody's. N signs no SNPs: fared refuses those and sends
    again what they acknowledge, and yet both have all LSPs.
    """
    area, domain = {"X", "V", "S", "N"}, {"X", "Y", "F"}
    for name, level, members in (
        *((name, 1, area) for name in ("X", "V", "S", "N")),
        *((name, 2, domain) for name in ("X", "Y", "F")),
        ("W", 1, {"W"}),
    ):
        wait_for(
            lambda n=name, v=level, m=members: keyed.held(n, v) == m,
            20.0,
            lambda n=name, v=level, m=members: f"{n} level {v}: {keyed.held(n, v)}, not {m}",
        )
    assert "W" in keyed.up("X")
    rejected = {record.get("interface") for record in keyed.records("X", "isis-rejected")}
    assert rejected >= {"W", "N"}
    assert not rejected & {"V", "S", "fm", "fc", "y256"}


def test_passwords_in_clear_text_protect_levels_too(keyed: Keyed):
    for name, level, members in (("P", 1, {"C", "P"}), ("Q", 2, {"C", "Q"})):
        wait_for(
            lambda n=name, v=level, m=members: keyed.held(n, v) == m, 20.0, f"{name} {members}"
        )
    assert keyed.held("C", 1) == {"C", "P"}
    assert keyed.held("C", 2) == {"C", "Q"}
    assert keyed.records("C", "isis-rejected") == []


def test_keys_roll_without_losing_an_adjacency(keyed: Keyed):
    """fared accepts both keys, the far end changes over, fared follows, and forgets the old one.

    FRR takes HMAC-MD5 with another secret; another fared goes from HMAC-SHA-256 to HMAC-SHA-512.
    """
    for far, link in (("F", "fr"), ("Y", "yr")):
        wait_for(lambda f=far, n=link: n in keyed.up("X") & keyed.up(f), 40.0, f"{link} is up")
    before = changes(keyed)
    md5, old, new = key("hmac-md5", BETA), sha(256), sha(512, BETA, 2)

    done = keyed.tell("X", "fr", MD5, md5)
    assert {change["action"] for change in done["changes"]} == {"update-in-place"}
    assert not [secret for secret in SECRETS if secret in json.dumps(done)]
    keyed.tell("X", "yr", old, new)
    frr = ("configure terminal", "interface fr", f"isis password md5 {BETA}")
    vtysh(keyed.fabric.node("F"), *frr)
    keyed.tell("Y", "yr", new, old)
    await_hellos(keyed, 1)

    keyed.tell("X", "fr", md5)
    keyed.tell("X", "yr", new)
    keyed.tell("Y", "yr", new)
    await_hellos(keyed)
    assert {"fr", "yr"} <= keyed.up("X")
    assert "fr" in keyed.up("F")
    assert changes(keyed) == before


def changes(keyed: Keyed) -> list[int]:
    """How often adjacencies whose keys roll have changed their states."""
    return [keyed.changes(*end) for end in (("X", "fr"), ("X", "yr"), ("Y", "yr"))]


def await_hellos(keyed: Keyed, count: int = 5) -> None:
    """Wait for so many hellos over each link: more than what the holding time forgives."""

    def sent() -> int:
        rows = fared(keyed.fabric.node("X")).request("show counters")["counters"]
        return next(r["value"] for r in rows if r["name"] == "sent p2p-hello")

    wanted = sent() + count * len(CASES)
    wait_for(lambda: sent() >= wanted, 40.0, f"{count} hellos over each link")


def test_no_secret_is_ever_shown(keyed: Keyed):
    """Not by the views, not by the log."""
    client = fared(keyed.fabric.node("X"))
    shown = [json.dumps(client.request(f"show {what}")) for what in ("config", "counters", "log")]
    shown += [log.read_text() for log in keyed.fabric.node("X").directory.glob("*.log")]
    assert not [secret for secret in SECRETS for text in shown if f'"{secret}"' in text]


@WIRESHARK
def test_wireshark_finds_no_flaw_in_what_was_signed(story: Keyed):
    story.recordings.stop()
    verdict = judge(story.recordings.merged(*story.recordings.names()))
    assert (verdict.flawed, verdict.bad_lsps) == ([], [])
    assert verdict.lsps > 0

"""fared beside FRR and BIRD with keys: every algorithm they know, wrong keys, and keys that roll.

One fared router with a link for each case; nothing is configured on the far ends but what their
manuals say. FRR 8.4 knows passwords and MD5 for OSPF, no key chains and no HMAC.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
import yaml

from fared.extensions.lab.fabric import Fabric
from tests.peers.peers import fared, full_neighbors, tell, vtysh
from tests.peers.recordings import WIRESHARK, Recordings, errors_of, recorded
from tests.waiting import seconds_until, wait_for

pytestmark = [pytest.mark.netns, pytest.mark.peers, pytest.mark.slow]

SECRETS = ("alpha", "beta-gamma", "delta-epsilon", "longer-than-the-digest-" * 2)
ALPHA, BETA, WRONG, LONG = SECRETS
Json = dict[str, Any]


class Case(NamedTuple):
    """One link of X: the peer at its far end, and what both ends are told."""

    peer: str
    ours: Json
    theirs: str
    reason: str = ""
    """What X counts, where they must not meet."""


def key(algorithm: str, secret: str = ALPHA, key_id: int = 1, **more: Any) -> Json:
    return {"algorithm": algorithm, "key-id": key_id, "key": secret, **more}


def bird(algorithm: str, secret: str = ALPHA, key_id: int = 1) -> str:
    return f'password "{secret}" {{ id {key_id}; algorithm {algorithm}; }};'


def bird_crypt(*passwords: str) -> str:
    return " ".join(("authentication cryptographic;", *passwords))


def frr_md5(secret: str = ALPHA, key_id: int = 1) -> str:
    digest = f"ip ospf message-digest-key {key_id} md5 {secret}"
    return f" ip ospf authentication message-digest\n {digest}"


CLEARTEXT = {"algorithm": "cleartext", "key": ALPHA}
CASES = {
    "bs": Case("B", CLEARTEXT, f'authentication simple; password "{ALPHA}";'),
    "bm": Case("B", key("md5"), bird_crypt(bird("keyed md5"))),
    "bh1": Case("B", key("hmac-sha-1"), bird_crypt(bird("hmac sha1"))),
    "bh256": Case("B", key("hmac-sha-256"), bird_crypt(bird("hmac sha256"))),
    "bh384": Case("B", key("hmac-sha-384"), bird_crypt(bird("hmac sha384"))),
    "bh512": Case("B", key("hmac-sha-512"), bird_crypt(bird("hmac sha512"))),
    "bhl": Case("B", key("hmac-sha-256", LONG), bird_crypt(bird("hmac sha256", LONG))),
    "fs": Case("F", CLEARTEXT, f" ip ospf authentication\n ip ospf authentication-key {ALPHA}"),
    "fm": Case("F", key("md5"), frr_md5()),
    "ye": Case("Y", key("hmac-sha-256", **{"extended-sequence": True}), ""),
    "br": Case("B", key("hmac-sha-256"), bird_crypt(bird("hmac sha256"))),
    "fr": Case("F", key("md5"), frr_md5()),
    "bc": Case("B", key("hmac-sha-384"), bird_crypt(bird("hmac sha384"))),
    "bxs": Case("B", CLEARTEXT, f'authentication simple; password "{WRONG}";', "auth-key"),
    "bxm": Case("B", key("md5"), bird_crypt(bird("keyed md5", WRONG)), "auth-digest"),
    "bxh": Case("B", key("hmac-sha-256"), bird_crypt(bird("hmac sha256", WRONG)), "auth-digest"),
    "bxi": Case("B", key("hmac-sha-256"), bird_crypt(bird("hmac sha256", key_id=2)), "auth-key"),
    "fxm": Case("F", key("md5"), frr_md5(WRONG), "auth-digest"),
    "fx0": Case("F", key("md5"), "", "auth-type"),
}
GOOD = [name for name, case in CASES.items() if not case.reason]
BAD = [name for name, case in CASES.items() if case.reason]
CHANGING = {"br", "fr", "bc"}
"""Links whose keys the tests change; each test has its own."""
LINKS = "\n".join(
    f'    - endpoints: ["X:{name}", "{case.peer}:{name}"]' for name, case in CASES.items()
)
TOPOLOGY = f"""
name: keys
topology:
  nodes:
    X: {{kind: fared}}
    Y: {{kind: fared}}
    F: {{kind: frr}}
    B: {{kind: bird}}
  links:
{LINKS}
"""


class Keyed:
    """The running fabric, and how to tell each router other keys."""

    def __init__(self, fabric: Fabric, recordings: Recordings) -> None:
        self.fabric = fabric
        self.recordings = recordings
        self.x = fabric.node("X")
        self._bird = {name: case.theirs for name, case in CASES.items() if case.peer == "B"}
        self.config = yaml.safe_load(self._generated("X")["fared.yaml"])
        for name, case in CASES.items():
            self._interfaces(self.config)[name]["authentication"] = case.ours

    def _generated(self, name: str) -> dict[str, str]:
        node = self.fabric.node(name)
        return dict(node.kind.files(node.plan, node.directory))

    @staticmethod
    def _interfaces(config: Json) -> Json:
        return config["ospf"]["areas"]["0.0.0.0"]["interfaces"]

    def write(self) -> None:
        """Write all configurations with their keys."""
        for name in ("X", "Y", "F", "B"):
            directory = self.fabric.node(name).directory
            directory.mkdir(parents=True)
            for file, text in self._generated(name).items():
                (directory / file).write_text(text)
        self._write_x(self.config)
        y = yaml.safe_load(self._generated("Y")["fared.yaml"])
        self._interfaces(y)["ye"]["authentication"] = CASES["ye"].ours
        (self.fabric.node("Y").directory / "fared.yaml").write_text(yaml.safe_dump(y))
        ospfd = self.fabric.node("F").directory / "ospfd.conf"
        text = ospfd.read_text()
        for name, case in CASES.items():
            text = text.replace(f"interface {name}\n", f"interface {name}\n{case.theirs}\n")
        ospfd.write_text(text)
        self._write_bird()

    def _write_x(self, config: Json) -> None:
        (self.x.directory / "fared.yaml").write_text(yaml.safe_dump(config))

    def _write_bird(self) -> None:
        text = self._generated("B")["bird.conf"]
        for name, options in self._bird.items():
            text = re.sub(rf'(interface "{name}" {{.*?) }};', rf"\1 {options} }};", text)
        (self.fabric.node("B").directory / "bird.conf").write_text(text)

    def tell_x(self, link: str, *keys: Json) -> Json:
        """Give X other keys for a link and let it read its file; what it says about that."""
        self._interfaces(self.config)[link]["authentication"] = {"keys": list(keys)}
        self._write_x(self.config)
        return fared(self.x).request("reload")

    def tell_bird(self, link: str, *passwords: str) -> None:
        """Give BIRD other passwords for a link."""
        self._bird[link] = bird_crypt(*passwords)
        self._write_bird()
        answer = self.fabric.node("B").cli("configure")
        assert "Reconfigured" in answer, answer

    def interface(self, link: str) -> Json:
        rows = fared(self.x).request("show interfaces")["interfaces"]
        return next(row for row in rows if row["interface"] == link)

    def uses(self, link: str) -> int:
        """The id of the key that X signs with."""
        found: int = self.interface(link)["authentication"]["key_id"]
        return found

    def refused(self) -> set[tuple[str, str]]:
        """The links of X on which something was refused, and why, by its log."""
        lines = (self.x.directory / "fared.log").read_text().splitlines()
        records = [json.loads(line) for line in lines if "ospf-rejected" in line]
        return {(r["interface"], r["reason"]) for r in records if "interface" in r}

    def errors(self) -> dict[str, int]:
        return errors_of(self.x, "packet-errors")

    def await_hello(self, link: str) -> None:
        """Wait until another hello has been accepted: the neighbor's dead timer jumps up."""
        last = self._dead_in(link)

        def jumped() -> bool:
            nonlocal last
            before, last = last, self._dead_in(link)
            return last > before

        wait_for(jumped, 20.0, f"a hello over {link}")

    def refusals(self, name: str, link: str) -> list[str]:
        """What the log of a peer says against packets of X on a link."""
        logs = self.fabric.node(name).directory.glob("*.log")
        lines = [line for log in logs for line in log.read_text("utf-8", "replace").splitlines()]
        wanted = re.compile(rf"\b{link}\b.*(fail|mismatch|bad|auth)", re.IGNORECASE)
        return [line for line in lines if wanted.search(line)]

    def _dead_in(self, link: str) -> float:
        rows = fared(self.x).request("show neighbors")["neighbors"]
        (row,) = (row for row in rows if row["interface"] == link)
        assert row["state"] == "Full"
        return float(row["dead_in"])


@pytest.fixture(scope="module")
def keyed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Keyed]:
    with recorded(TOPOLOGY, tmp_path_factory.mktemp("keys")) as (fabric, recordings):
        keyed = Keyed(fabric, recordings)
        keyed.write()
        for name in fabric.nodes:
            fabric.start_node(name)
        yield keyed


@pytest.fixture
def story(keyed: Keyed) -> Keyed:
    """The fabric after all other tests."""
    return keyed


def test_every_algorithm_of_the_peers_forms_a_full_adjacency(keyed: Keyed):
    """By both ends' account; the interfaces tell algorithm and key id."""
    wanted = set(GOOD) - CHANGING
    took = seconds_until(lambda: wanted <= set(full_neighbors(keyed.x)), 40.0, f"{wanted}")
    for peer in ("B", "F", "Y"):
        links = {name for name in wanted if CASES[name].peer == peer}
        node = keyed.fabric.node(peer)
        wait_for(lambda n=node, w=links: w <= set(full_neighbors(n)), 20.0, f"{peer}: {links}")
    for name in set(GOOD) - CHANGING:
        shown, ours = keyed.interface(name)["authentication"], CASES[name].ours
        assert shown["algorithm"] == ours["algorithm"]
        assert shown["key_id"] == ours.get("key-id", 0)
        assert shown["extended"] is ours.get("extended-sequence", False)
    tell(f"{len(wanted)} authenticated adjacencies Full {took:.2f} s after the last daemon started")


def test_a_wrong_key_never_forms_an_adjacency_and_is_counted(keyed: Keyed):
    """Neither end gets as far as a neighbor in Init; each reason grows with each hello."""
    wanted = {(name, CASES[name].reason) for name in BAD}
    wait_for(lambda: keyed.refused() >= wanted, 30.0, f"refusals are logged: {wanted}")
    reasons = {reason for _, reason in wanted}
    assert reasons == {"auth-type", "auth-key", "auth-digest"}
    before = keyed.errors()
    wait_for(
        lambda: all(keyed.errors()[reason] >= before[reason] + 2 for reason in reasons),
        20.0,
        "refused hellos are counted",
    )
    rows = fared(keyed.x).request("show neighbors")["neighbors"]
    assert not {row["interface"] for row in rows} & set(BAD)
    for peer in ("B", "F"):
        assert not set(full_neighbors(keyed.fabric.node(peer))) & set(BAD)
    assert keyed.refusals("B", "bxh")
    assert keyed.refusals("F", "fxm")
    assert "auth-sequence" not in keyed.errors()


def test_keys_roll_with_bird_without_losing_the_adjacency(keyed: Keyed):
    """A at both ends, then A and B, then B: BIRD changes over first and fared follows it."""
    link = "br"
    wait_for(lambda: link in full_neighbors(keyed.x), 40.0, "Full with the first key")
    old, new = key("hmac-sha-256"), key("hmac-sha-512", BETA, 2)
    old_b, new_b = bird("hmac sha256"), bird("hmac sha512", BETA, 2)
    done = keyed.tell_x(link, old, new)
    assert {change["action"] for change in done["changes"]} == {"update-in-place"}
    assert not [secret for secret in SECRETS if secret in json.dumps(done)]
    keyed.tell_bird(link, old_b, new_b)
    keyed.await_hello(link)
    assert keyed.uses(link) == 1
    keyed.tell_bird(link, new_b, old_b)
    wait_for(lambda: keyed.uses(link) == 2, 20.0, "fared follows")
    keyed.tell_x(link, new)
    keyed.tell_bird(link, new_b)
    keyed.await_hello(link)
    keyed.await_hello(link)
    assert keyed.interface(link)["flaps"] == 0
    assert link in full_neighbors(keyed.fabric.node("B"))
    assert keyed.refusals("B", link) == []
    assert keyed.interface(link)["authentication"] == {
        "algorithm": "hmac-sha-512",
        "key_id": 2,
        "extended": False,
        "expired": False,
        "accepted_key_ids": [2],
    }


def test_keys_roll_with_frr_without_losing_the_adjacency(keyed: Keyed):
    """FRR signs with the key it was given last, and accepts all of them."""
    link = "fr"
    wait_for(lambda: link in full_neighbors(keyed.x), 40.0, "Full with the first key")
    keyed.tell_x(link, key("md5"), key("md5", BETA, 2))
    frr = keyed.fabric.node("F")
    where = ("configure terminal", f"interface {link}")
    vtysh(frr, *where, f"ip ospf message-digest-key 2 md5 {BETA}")
    wait_for(lambda: keyed.uses(link) == 2, 20.0, "fared follows")
    vtysh(frr, *where, "no ip ospf message-digest-key 1")
    keyed.tell_x(link, key("md5", BETA, 2))
    keyed.await_hello(link)
    keyed.await_hello(link)
    assert keyed.interface(link)["flaps"] == 0
    assert link in full_neighbors(frr)
    assert keyed.refusals("F", link) == []


def test_a_key_that_is_changed_at_one_end_only_ends_the_adjacency(keyed: Keyed):
    """After the dead interval, not before; with the old key it is back at once."""
    link = "bc"
    wait_for(lambda: link in full_neighbors(keyed.x), 40.0, "Full")
    begun = time.monotonic()
    keyed.tell_x(link, key("hmac-sha-384", WRONG))
    wait_for(lambda: link not in full_neighbors(keyed.x), 20.0, "given up")
    assert time.monotonic() - begun > 1.5
    keyed.tell_x(link, CASES[link].ours)
    wait_for(lambda: link in full_neighbors(keyed.x), 30.0, "Full again")


def test_no_secret_is_ever_shown(keyed: Keyed):
    """Not by the views, not by the log, not by refusals of a bad file."""
    client = fared(keyed.x)
    shown = [
        json.dumps(client.request(f"show {what}"))
        for what in ("config", "interfaces", "neighbors", "status", "counters", "log")
    ]
    good = (keyed.x.directory / "fared.yaml").read_text()
    (keyed.x.directory / "fared.yaml").write_text(good.replace("key: alpha", "key: [alpha]"))
    try:
        shown.append(json.dumps(client.request("reload")))
        assert "authentication.key" in shown[-1]
    finally:
        (keyed.x.directory / "fared.yaml").write_text(good)
        assert client.request("reload")["applied"]
    shown += [log.read_text() for log in keyed.x.directory.glob("*.log")]
    assert not [secret for secret in SECRETS for text in shown if f"{secret}" in text]


@WIRESHARK
def test_wireshark_finds_no_flaw_in_what_was_signed(story: Keyed):
    story.recordings.stop()
    for name in story.recordings.names():
        verdict = story.recordings.judge(name)
        assert verdict.flawed == []
        assert verdict.fragments == 0

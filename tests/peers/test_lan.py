"""fared, FRR and BIRD on one LAN: fared as DR, BDR and neither, and failures of the DR."""

import shutil
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.peers.lan import PORT, Lan
from tests.peers.peers import await_equal_databases, fared, tell
from tests.peers.recordings import Recordings, complaints, rejected
from tests.waiting import seconds_until, wait_for

pytestmark = [pytest.mark.netns, pytest.mark.peers, pytest.mark.slow]

ROUTERS = {
    "F1": ("fared", 1, 100),
    "F2": ("fared", 2, 90),
    "R": ("frr", 3, 50),
    "B": ("bird", 4, 10),
}
TAKEN_OVER = 7.5
"""The dead interval is 4 s; another election after it would take as long again."""
MESSAGES = {"Hello", "DB Description", "LS Request", "LS Update", "LS Acknowledge"}


@pytest.fixture
def lan(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Four routers on a bridge, not started yet. Any: it stands in for a lab's fabric."""
    with Lan.in_directory(tmp_path_factory, ROUTERS) as made:
        yield made


def await_offices(lan: Any, designated: str, backup: str, seconds: float = 40.0) -> float:
    """Wait until all who live agree on these two and hold the same databases and routes.

    Returns when they agreed. Routes may take longer: BIRD says that its link to the LAN is gone,
    and only five seconds after that (MinLSInterval) that it is back.
    """
    ends = (lan.node(designated).address, lan.node(backup).address)

    def agreed() -> bool:
        return all(member.designated() == (*wanted(member), *ends) for member in lan.alive)

    def wanted(member: Any) -> tuple[str]:
        return ({designated: "DR", backup: "Backup"}.get(member.name, "DR Other"),)

    def states() -> dict[str, tuple[str, str, str]]:
        return {member.name: member.designated() for member in lan.alive}

    passed = seconds_until(
        agreed, seconds, f"{designated} is DR, {backup} its backup, not {states()}"
    )
    later = seconds_until(lambda: routed(lan), seconds, "everybody reaches everybody who lives")
    tell(
        f"{designated} is DR, {backup} its backup after {passed:.2f} s, routes {later:.2f} s later"
    )
    await_equal_databases(lan, 20.0)
    return passed


def routed(lan: Any) -> bool:
    """Whether each kernel sends directly to each living neighbor, and nothing to the dead."""
    for member in lan.alive:
        for other in lan.members.values():
            hops = {(hop.interface, hop.gateway) for hop in lan.hops(member.name, other)}
            wanted = set() if other.killed else {(PORT, other.address)}
            if other is not member and hops != wanted:
                return False
    return True


def states_of(lan: Any, name: str) -> dict[str, str]:
    rows = fared(lan.node(name)).request("show neighbors")["neighbors"]
    return {row["address"]: row["state"] for row in rows}


def suppress(member: Any) -> None:
    """Keep its networks to itself from now on: as designated router, that of the LAN for all."""
    file = member.directory / "fared.yaml"
    document = yaml.safe_load(file.read_text())
    document["ospf"]["prefix-suppression"] = True
    file.write_text(yaml.safe_dump(document, sort_keys=False))
    member.cli("config", "reload")


def await_hidden(lan: Any, designated: str) -> None:
    """Wait until each kernel has for the network LSA of the LAN what its make makes of it.

    To fared it is no route (RFC 6860 §2.2.2); FRR 8.4 and BIRD 2.0 take it for a host route to the
    designated router, which is where packets to it go anyway (§2.2.1.1).
    """
    host = f"{lan.node(designated).address}/32"
    wanted = {name: member.kind != "fared" for name, member in lan.members.items()}

    def found() -> dict[str, bool]:
        return {name: host in view.routes() for name, view in lan.views.items()}

    wait_for(lambda: found() == wanted, 40.0, f"host routes {wanted}, not {found()}")
    wait_for(lambda: routed(lan), 40.0, "everybody reaches everybody")
    await_equal_databases(lan, 20.0)


@pytest.mark.timeout(120)
def test_fared_works_as_dr_bdr_and_other_router_beside_frr_and_bird(lan: Any, tmp_path):
    recordings = Recordings(lan, tmp_path / "sent")
    try:
        for member in lan.members.values():  # in this order, however slow one is to start
            member.start()
            wait_for(lambda m=member: m.designated()[0] != "starting", 20.0, f"{member.name} is up")
        await_offices(lan, "F1", "F2", 30.0)
        assert set(states_of(lan, "F1").values()) == {"Full"}

        suppress(lan.node("F1"))
        await_hidden(lan, "F1")
        assert set(states_of(lan, "F1").values()) == {"Full"}

        lan.node("F1").kill()
        assert await_offices(lan, "F2", "R") < TAKEN_OVER

        lan.node("F1").start()
        await_offices(lan, "F2", "R")  # of higher priority, and yet it takes no office
        assert sorted(states_of(lan, "F1").values()) == ["2-Way", "Full", "Full"]

        lan.node("F2").kill()
        assert await_offices(lan, "R", "F1") < TAKEN_OVER
        assert complaints(lan) == {}

        lan.node("R").kill()
        assert await_offices(lan, "F1", "B") < TAKEN_OVER
        assert complaints(lan) == {}
        assert rejected(lan) == {}
    finally:
        recordings.stop()
    if None in map(shutil.which, ("tcpdump", "tshark")):
        return
    for name in ("F1", "F2"):
        verdict = recordings.judge(name)
        assert verdict.flawed == []
        assert set(verdict.kinds) == MESSAGES

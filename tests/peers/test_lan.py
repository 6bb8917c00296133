"""fared, FRR and BIRD on one LAN: fared in every office, and the death of the one who holds it."""

import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from tests.peers.lan import PORT, Lan
from tests.peers.peers import await_equal_databases, fared, tell, until
from tests.peers.recordings import Recordings, complaints, rejected

pytestmark = [pytest.mark.netns, pytest.mark.peers]

ROUTERS = {
    "F1": ("fared", 1, 100),
    "F2": ("fared", 2, 90),
    "R": ("frr", 3, 50),
    "B": ("bird", 4, 10),
}
TAKEN_OVER = 6.0
"""The dead interval is 4 s."""
MESSAGES = {"Hello", "DB Description", "LS Request", "LS Update", "LS Acknowledge"}


@pytest.fixture
def lan(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Four routers on a bridge, not started yet. Any: it stands in for a lab's fabric."""
    directory = tmp_path_factory.mktemp("lan")
    for parent in (directory, directory.parent):
        parent.chmod(0o755)
    made = Lan(directory, ROUTERS)
    try:
        yield made
    finally:
        made.close()


def await_offices(lan: Any, designated: str, backup: str, seconds: float = 15.0) -> float:
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

    passed = until(agreed, seconds, f"{designated} is DR, {backup} its backup, not {states()}")
    later = until(lambda: routed(lan), seconds, "everybody reaches everybody who lives")
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


@pytest.mark.timeout(120)
def test_fared_is_designated_router_backup_and_neither_beside_frr_and_bird(lan: Any, tmp_path):
    recordings = Recordings(lan, tmp_path / "sent")
    try:
        for member in lan.members.values():  # in this order, however slow one is to start
            member.start()
            until(lambda m=member: m.designated()[0] != "starting", 20.0, f"{member.name} is up")
        await_offices(lan, "F1", "F2", 30.0)
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

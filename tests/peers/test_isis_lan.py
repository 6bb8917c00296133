"""fared and FRR's isisd on one LAN, at both levels: each as DIS, and its failure."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.peers.isis_lan import IsisLan
from tests.peers.isis_recordings import FRR_LOST_LINK, FRR_MET_A_FORMER_LIFE, judge, refused
from tests.peers.peers import tell
from tests.peers.recordings import ISIS, Recordings, complaints

pytestmark = [pytest.mark.netns, pytest.mark.peers, pytest.mark.slow]

ROUTERS = {
    "F1": ("fared", 1, 100),
    "R1": ("frr", 2, 80),
    "F2": ("fared", 3, 60),
    "R2": ("frr", 9, 5),  # of another area: a neighbor in level 2 only
}
TAKEN_OVER = 8.0
"""The holding time is 4 s, that of a designated IS a third."""
SENT = {f"l{level}-{kind}" for level in (1, 2) for kind in ("lan-hello", "lsp", "csnp")}


@pytest.fixture
def lan(tmp_path_factory: pytest.TempPathFactory) -> Iterator[IsisLan]:
    """Four routers on a bridge, not started yet."""
    with IsisLan.in_directory(tmp_path_factory, ROUTERS) as made:
        yield made


@pytest.mark.timeout(120)
def test_a_lan_of_fared_and_frr_elects_a_new_dis_after_each_loss(lan: IsisLan, tmp_path: Path):
    """One LAN, two levels, two areas: who is designated, and who takes over from the dead."""
    recordings = Recordings(lan, tmp_path / "sent", ISIS)  # type: ignore[arg-type]
    try:
        for member in lan.members.values():
            member.start()
        lan.await_designated("F1")

        lan.node("F1").kill()
        taken = [lan.await_designated("R1")]

        lan.node("R1").kill()
        taken.append(lan.await_designated("F2"))

        lan.node("F1").start()  # of a higher priority: it takes the office from its holder
        lan.await_designated("F1")
        tell(f"the designated IS died: {[f'{seconds:.2f} s' for seconds in taken]}")
        assert max(taken) < TAKEN_OVER
        assert complaints(lan, f"{FRR_LOST_LINK}|{FRR_MET_A_FORMER_LIFE}") == {}  # type: ignore[arg-type]
        assert refused(lan, frozenset({"no-adjacency", "area-mismatch"})) == {}  # R2 in level 1
    finally:
        recordings.stop()
    if None in map(shutil.which, ("tcpdump", "tshark")):
        return
    verdict = judge(recordings.merged("F1", "F2"))
    assert (verdict.flawed, verdict.bad_lsps) == ([], [])
    assert SENT <= set(verdict.kinds) <= SENT | {"l1-psnp", "l2-psnp"}

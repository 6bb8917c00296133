"""Filters of documents, asked for on the control socket of a daemon."""

from pathlib import Path

import pytest

from fared.management.api.client import DaemonRefusedError
from tests.daemon.stage import Stage


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    return Stage(tmp_path, monkeypatch)


async def test_documents_are_filtered_on_the_control_socket(stage):
    async with stage.running():
        everything = await stage.ask("show interfaces")
        name = everything["interfaces"][0]["interface"]
        found = await stage.ask("show interfaces", name=name)
        assert [row["interface"] for row in found["interfaces"]] == [name]
        assert [row["interface"] for row in found["detail"]] == [name]
        (own,) = {
            lsa["adv_router"]
            for lsa in (await stage.ask("show database", type="self"))["areas"][0]["lsas"]
        }
        assert own == everything["router_id"]
        lines = (await stage.ask("show log", level="warning"))["lines"]
        assert {line["level"] for line in lines} <= {"warning", "error"}
        with pytest.raises(DaemonRefusedError, match="no neighbor S9; known: ") as refused:
            await stage.ask("show neighbors", name="S9")
        assert refused.value.code == "not-found"
        with pytest.raises(DaemonRefusedError, match="'loud' is not a level") as refused:
            await stage.ask("show log", level="loud")
        assert refused.value.code == "bad-argument"

"""``show config`` costs the daemon no more for many who ask: each document is made once."""

import asyncio
import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from fared.config import load
from fared.daemon.change import config_documents
from fared.daemon.change.config_documents import ConfigDocuments
from fared.management.api.encode import encode
from fared.management.documents.errors import CommandError

OSPF = "router-id: 10.0.0.1\nospf: {{areas: {{0: {{interfaces: {{eth0: {{cost: {}}}}}}}}}}}\n"


@pytest.fixture
def host(tmp_path: Path) -> SimpleNamespace:
    file = tmp_path / "fared.yaml"
    file.write_text(OSPF.format(10))
    return SimpleNamespace(
        path=str(file), config=load(file), runtime=SimpleNamespace(loaded_at=1.0), file=file
    )


@pytest.fixture
def started(monkeypatch) -> list[str]:
    """The files that processes were started for."""
    found: list[str] = []
    read = config_documents._read

    async def counted(path: str) -> tuple[bytes, str]:
        found.append(path)
        return await read(path)

    monkeypatch.setattr(config_documents, "_read", counted)
    return found


async def test_the_file_is_read_once_by_a_process_of_its_own_until_it_is_written_again(
    host: SimpleNamespace, started: list[str]
):
    documents = ConfigDocuments(host, host.runtime)
    answers = await asyncio.gather(*(documents.answer(saved=True) for _ in range(16)))
    assert started == [host.path]
    assert {encode(answer) for answer in answers} == {encode(answers[0])}
    assert b'"cost":10' in encode(answers[0])
    host.file.write_text(OSPF.format(20))
    os.utime(host.file, (5, 5))
    assert b'"cost":20' in encode(await documents.answer(saved=True))
    assert len(started) == 2


async def test_a_file_with_errors_is_refused_with_all_of_them(
    host: SimpleNamespace, started: list[str]
):
    documents = ConfigDocuments(host, host.runtime)
    host.file.write_text("ospf: {aera: {}}\n")
    for _ in range(2):
        with pytest.raises(CommandError, match="'areas'"):
            await documents.answer(saved=True)
    assert len(started) == 1


async def test_what_runs_is_written_once_until_it_changes(host: SimpleNamespace, monkeypatch):
    documents, made = ConfigDocuments(host, host.runtime), []
    encoded = config_documents._encoded
    monkeypatch.setattr(config_documents, "_encoded", lambda c: made.append(c) or encoded(c))
    for _ in range(3):
        assert b'"cost":10' in encode(await documents.answer(saved=False))
    assert made == [host.config]
    host.file.write_text(OSPF.format(30))
    host.config = load(host.file)
    assert b'"cost":30' in encode(await documents.answer(saved=False))

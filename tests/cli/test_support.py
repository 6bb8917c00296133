"""``fared-cli tech-support``: one tar for a bug report, private and whole."""

import json
import os
import stat
import tarfile

import pytest
from click.testing import CliRunner

from fared.management.cli import support_tar
from fared.management.cli.main import main
from fared.management.documents.registry import SHOWN, document_of
from tests.api.documents import ANSWERS
from tests.api.documents.changes import CONFIG, CONFIG_HISTORY
from tests.api.documents.router import LOG
from tests.api.documents.routing import FIB_DIFF
from tests.api.isis_documents import BOTH_STATUS
from tests.cli.test_main import Daemon

KERNEL = (
    "link", "address", "nexthop", "route-ipv4", "route-ipv6", "rule-ipv4", "rule-ipv6",
    "neigh-ipv4", "neigh-ipv6",
)  # fmt: skip


@pytest.fixture
def daemon(tmp_path):
    with Daemon(tmp_path / "fared.sock") as running:
        yield running


@pytest.fixture
def programs(monkeypatch, tmp_path):
    """Programs that show the kernel: each prints its arguments as JSON; nft fails."""
    for name, text in (
        ("ip", 'printf \'{"asked": "%s"}\' "$*"'),
        ("nft", "echo no table >&2; exit 1"),
    ):
        file = tmp_path / "bin" / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"#!/bin/sh\n{text}\n")
        file.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")


def run(daemon, *words):
    return CliRunner().invoke(main, ["-s", str(daemon.path), "tech-support", *words])


def members(path):
    """Contents by name, without the directory that all of them are in."""
    with tarfile.open(path) as tar:
        entries = tar.getmembers()
        assert {entry.name.split("/")[0] for entry in entries} == {entries[0].name.split("/")[0]}
        assert all(entry.isfile() and entry.mode == 0o600 for entry in entries)
        return {e.name.split("/", 1)[1]: tar.extractfile(e).read() for e in entries}


def test_it_contains_documents_log_kernel_and_versions(daemon, programs, tmp_path):
    file = tmp_path / "report.tar.gz"
    result = run(daemon, str(file))
    assert (result.exit_code, result.stdout, result.stderr) == (0, f"{file}\n", "")
    found = members(file)
    document = json.loads(found["tech-support.json"])
    assert document["format"] == "fared-tech-support/1"
    of_bgp = {name for name in SHOWN if document_of(name).proto}
    assert set(SHOWN) - of_bgp <= set(document["documents"])
    assert document["documents"]["fib diff"] == FIB_DIFF
    assert document["documents"]["config-history"] == CONFIG_HISTORY
    assert "lsdb isis" not in document["documents"]
    assert ("show config", {"saved": True}) in daemon.asked
    assert json.loads(found["config.json"]) == CONFIG
    assert [json.loads(line) for line in found["log.jsonl"].splitlines()] == LOG["lines"]
    asked = {name: json.loads(found[f"kernel/ip-{name}.json"])["asked"] for name in KERNEL}
    assert asked["link"] == "-d -s -j link"
    assert asked["route-ipv6"] == "-6 -d -s -j route show table all"
    about = json.loads(found["kernel/about.json"])
    assert about["failed"]["nft-ruleset.json"] == "nft -j list ruleset: no table"
    assert about["network_namespace_of_the_daemon"] == "this one"
    versions = json.loads(found["versions.json"])
    assert versions["libraries"]["msgspec"]
    assert versions["programs"]["nft"] == "no table"
    assert not [name for name in found if name.startswith("recording")]


def test_the_file_is_private_and_nothing_else_is_left(daemon, programs, tmp_path):
    file = tmp_path / "out" / "report.tar.gz"
    file.parent.mkdir()
    file.write_text("older")
    file.chmod(0o644)
    assert run(daemon, str(file)).exit_code == 0
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert list(file.parent.iterdir()) == [file]


def test_a_tar_that_cannot_be_finished_leaves_the_older_one(
    daemon, programs, tmp_path, monkeypatch
):
    def full(*_):
        raise OSError(28, "No space left on device")

    file = tmp_path / "out" / "report.tar.gz"
    file.parent.mkdir()
    file.write_text("older")
    monkeypatch.setattr(support_tar.os, "fsync", full)
    result = run(daemon, str(file))
    assert result.exit_code == 1
    assert "No space left on device" in result.stderr
    assert [entry.read_text() for entry in file.parent.iterdir()] == ["older"]


def test_without_a_name_the_file_has_host_and_time(daemon, programs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name = run(daemon).stdout.strip()
    assert name.startswith("fared-")
    assert name.endswith("Z.tar.gz")
    assert members(tmp_path / name)


def test_json_prints_the_documents_alone(daemon, monkeypatch):
    """Where both protocols run, the raw database of one of them is not enough."""
    monkeypatch.setitem(ANSWERS, "show status", BOTH_STATUS)
    document = json.loads(run(daemon, "--json").stdout)
    assert document["format"] == "fared-tech-support/1"
    assert "lsdb isis" in document["documents"]
    assert ("show lsdb", {"proto": "isis"}) in daemon.asked
    assert run(daemon, "x.tar.gz", "--json").exit_code == 2


def test_a_recording_is_included_only_if_asked_for(daemon, programs, tmp_path):
    """Its regular files, and nothing that a link leads to; with a warning."""
    recording = tmp_path / "recording"
    (recording / "part").mkdir(parents=True)
    (recording / "part" / "0001").write_bytes(b"packets")
    (recording / "passwd").symlink_to("/etc/passwd")
    os.mkfifo(recording / "pipe")
    file = tmp_path / "report.tar.gz"
    result = run(daemon, str(file), "--recording", str(recording))
    assert result.exit_code == 0
    assert "Hint: the recording holds authentication keys" in result.stderr
    found = {name: content for name, content in members(file).items() if "recording" in name}
    assert found == {"recording/part/0001": b"packets"}


def test_without_a_daemon_the_kernel_is_reported(programs, tmp_path):
    """The daemon that does not run may be the subject of the report."""
    file = tmp_path / "report.tar.gz"
    words = ["-s", str(tmp_path / "none.sock"), "tech-support", str(file)]
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 3
    found = members(file)
    assert "fared is not running" in json.loads(found["error.json"])["error"]
    assert "kernel/ip-link.json" in found
    assert "tech-support.json" not in found


def test_a_program_that_hangs_is_not_waited_for(daemon, programs, tmp_path, monkeypatch):
    (tmp_path / "bin" / "nft").write_text("#!/bin/sh\nexec sleep 60\n")
    monkeypatch.setattr(support_tar, "_PATIENCE", 0.2)
    file = tmp_path / "report.tar.gz"
    assert run(daemon, str(file)).exit_code == 0
    failed = json.loads(members(file)["kernel/about.json"])["failed"]
    assert "no end within 0.2 s" in failed["nft-ruleset.txt"]

"""``fared-cli tech-support`` of a daemon with keys everywhere: none of them is in the tar."""

from __future__ import annotations

import base64
import json
import tarfile
from pathlib import Path

import pytest

from tests.live.daemons import LINKS, RIGHT_STUB
from tests.live.isis_daemons import IsisPair

pytestmark = [pytest.mark.netns, pytest.mark.slow]

SECRETS = {
    "ospf": "ospfpass",
    "ospf-md5": "oak-Eight-7",
    "hello": "hazel-Hello-3",
    "lsp": "larch-Lsp-cleartext-5",
    "bfd": "beech-Bfd-9",
    "file": "fir-File-secret-2",
}


def authenticated(pair: IsisPair) -> None:
    """Configure keys of every kind at both ends."""
    cleartext = {"algorithm": "cleartext", "key": SECRETS["lsp"]}
    bfd = {"algorithm": "meticulous-keyed-sha-1", "key-id": 1, "key": SECRETS["bfd"]}
    for daemon in (pair.left, pair.right):
        key_file = daemon.directory / "hello.key"
        key_file.write_text(SECRETS["file"] + "\n")
        key_file.chmod(0o600)
        isis, ospf = daemon.config["isis"], daemon.config["ospf"]["areas"]["0.0.0.0"]["interfaces"]
        isis["level-2"] = {"authentication": cleartext}
        isis["interfaces"]["u0"]["authentication"] = {
            "algorithm": "hmac-md5",
            "key": SECRETS["hello"],
        }
        isis["interfaces"]["u1"]["authentication"] = {
            "algorithm": "hmac-sha-256",
            "key-id": 1,
            "key-file": str(key_file),
        }
        ospf["u0"]["authentication"] = {"algorithm": "cleartext", "key": SECRETS["ospf"]}
        ospf["u1"]["authentication"] = {
            "algorithm": "md5",
            "key-id": 1,
            "key": SECRETS["ospf-md5"],
        }
        ospf["u1"]["bfd"] = {"enabled": True, "authentication": bfd}


@pytest.fixture(scope="module")
def members(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The tar of the left router, written after a refused and an applied configuration."""
    directory = tmp_path_factory.mktemp("keys")
    pair = IsisPair("k", directory, ospf=True)
    authenticated(pair)
    try:
        pair.start()
        bad = directory / "bad.yaml"
        bad.write_text(
            pair.left.file.read_text().replace("level-2: {}", "").replace("net: 49", "nett: 49")
        )
        assert pair.left.cli("config", "apply", str(bad)).returncode == 1
        assert pair.left.cli("config", "apply", str(pair.left.file)).returncode == 0
        file = directory / "report.tar.gz"
        done = pair.left.cli("tech-support", str(file))
        assert (done.returncode, done.stderr) == (0, "")
        return contents(file)
    finally:
        pair.close()


def contents(file: Path) -> dict[str, bytes]:
    with tarfile.open(file) as tar:
        found = {}
        for entry in tar.getmembers():
            member = tar.extractfile(entry)
            assert member is not None
            found[entry.name.partition("/")[2]] = member.read()
        return found


@pytest.mark.parametrize("secret", SECRETS.values(), ids=SECRETS)
def test_no_key_is_in_the_tar(members: dict[str, bytes], secret: str):
    """Neither as text, nor as hexadecimal digits or base64 at any alignment."""
    raw = secret.encode()
    forms = {raw, raw.hex().encode(), raw.hex().upper().encode(), raw.hex(" ").encode()}
    for shift in range(3):
        encoded = base64.b64encode(b"\0" * shift + raw)
        forms.add(encoded[(0, 2, 3)[shift] : -4])
    held = {name for name, content in members.items() for form in forms if form in content}
    assert held == set()


def test_the_databases_are_in_the_tar_with_stars_for_passwords(members: dict[str, bytes]):
    documents = json.loads(members["tech-support.json"])["documents"]
    stars = (b"\x01" + b"*" * len(SECRETS["lsp"])).hex()
    lsps = documents["lsdb isis"]["lsps"]
    assert len(lsps) >= 2
    assert all(stars in lsp["hex"] for lsp in lsps)
    assert documents["lsdb"]["proto"] == "ospf"
    assert len(documents["neighbors"]["neighbors"]) == 2 * len(LINKS)
    assert "<hidden>" in members["config.json"].decode()
    assert "error" not in documents["config saved"]


def test_the_kernel_of_the_daemon_is_in_the_tar(members: dict[str, bytes]):
    routes = json.loads(members["kernel/ip-route-ipv4.json"])
    assert RIGHT_STUB in {route["dst"] for route in routes}
    groups = [one for one in json.loads(members["kernel/ip-nexthop.json"]) if "group" in one]
    assert groups
    about = json.loads(members["kernel/about.json"])
    assert about["network_namespace_of_the_daemon"] == "this one"
    assert about["failed"] == {}
    assert any(
        json.loads(line)["event"] == "starting" for line in members["log.jsonl"].splitlines()
    )

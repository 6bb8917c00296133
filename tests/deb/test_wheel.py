"""The wheel: all that an installation without the source tree needs, and where pip, pipx and uv put
it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

from deb import contents
from fared.extensions.lab import shipped

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("wheel")
    return Path(next(WheelBuilder(str(ROOT)).build(directory=str(directory))))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel as installers unpack it: modules, and beside them ``share`` of the prefix."""
    prefix = tmp_path_factory.mktemp("prefix")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(prefix)
    (data,) = prefix.glob("*.data/data/share")
    return data.rename(prefix / "share").parent


def test_the_wheel_has_what_the_debian_packages_have(installed):
    share = installed / "share"
    pages = {f"{path.parent.name}/{path.name}" for path in share.glob("man/*/*")}
    assert pages == {
        *("man1/fared-cli.1", "man1/fared-lab.1", "man5/fared.yaml.5"),
        *("man8/fared.8", "man8/fared-ina.8"),
    }
    assert "holddown" in (share / "man/man5/fared.yaml.5").read_text()
    for program in ("fared-cli", "fared-lab"):
        assert program in (share / "bash-completion/completions" / program).read_text()
        assert program in (share / "zsh/site-functions" / f"_{program}").read_text()
        assert program in (share / f"fish/vendor_completions.d/{program}.fish").read_text()
    unit = (share / "fared/systemd/fared.service").read_text()
    assert unit == (ROOT / "systemd/fared.service").read_text()
    assert (share / "fared/systemd/networkd.conf.d/fared.conf").exists()
    assert {path.name for path in (ROOT / "config").glob("*.yaml")} <= {
        path.name for path in (share / "doc/fared/examples").iterdir()
    }
    topologies = installed / "fared/extensions/lab/topologies"
    assert set(shipped.files()) <= {
        path.name.removesuffix(shipped.SUFFIX) for path in topologies.iterdir()
    }
    static = Path("fared/management/api/static")
    page = {file.relative_to(ROOT) for file in (ROOT / static).rglob("*") if file.is_file()}
    assert page <= {file.relative_to(installed) for file in (installed / static).rglob("*")}


def test_an_editable_installation_builds_without_the_dependencies(tmp_path):
    """It reads the source tree."""
    builder = WheelBuilder(str(ROOT))
    made = next(builder.build(directory=str(tmp_path), versions=["editable"]))
    with zipfile.ZipFile(made) as archive:
        assert [name for name in archive.namelist() if ".data/" in name] == []


# -- real installers -------------------------------------------------------------------------

INSTALLERS = {
    "pip": ("{python} -m venv {home}/venv", "{home}/venv/bin/pip install -q {wheel}"),
    "pipx": ("{tools}/pipx install -q {wheel}",),
    "uv": ("{tools}/uv tool install -q {wheel}",),
}
PROGRAMS = [name for programs in contents.PROGRAMS.values() for name in programs]


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of pipx and uv."""
    venv = tmp_path_factory.mktemp("tools")
    subprocess.run((sys.executable, "-m", "venv", str(venv)), check=True, timeout=120)
    pip = (str(venv / "bin/pip"), "install", "--quiet", "--retries=0", "pipx", "uv")
    if subprocess.run(pip, check=False, timeout=300).returncode:
        pytest.skip("pipx and uv cannot be installed: make test-wheel, with a package index")
    return venv / "bin"


def run(environment: Mapping[str, str], *command: str) -> str:
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=600, env=environment, cwd="/"
    )
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


@pytest.mark.soak
@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("installer", INSTALLERS)
def test_installed_by(installer, wheel, tools, tmp_path):
    """All programs run, outside of the tree; man finds the pages where the installer says so."""
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("VIRTUAL")},
        "HOME": str(tmp_path),
        "PIPX_HOME": str(tmp_path / "pipx"),
        "PIPX_BIN_DIR": str(tmp_path / "bin"),
        "PIPX_MAN_DIR": str(tmp_path / "share/man"),
        "UV_TOOL_DIR": str(tmp_path / "uv"),
        "UV_TOOL_BIN_DIR": str(tmp_path / "bin"),
        "UV_PYTHON": sys.executable,
        "UV_NATIVE_TLS": "true",
    }
    environment.pop("PYTHONPATH", None)
    words = {"python": sys.executable, "home": tmp_path, "wheel": wheel, "tools": tools}
    for command in INSTALLERS[installer]:
        run(environment, *command.format(**words).split())
    prefix = {
        "pip": tmp_path / "venv",
        "pipx": tmp_path / "pipx/venvs/fared",
        "uv": tmp_path / "uv/fared",
    }[installer]
    programs = prefix / "bin" if installer == "pip" else tmp_path / "bin"
    environment["PATH"] = f"{programs}:/usr/bin:/bin"
    for program in PROGRAMS:
        assert "usage" in run(environment, program, "--help").lower()
    example = prefix / "share/doc/fared/examples/leaf.yaml"
    assert "ok" in run(environment, "fared", "-c", str(example), "--check")
    named = [line.split()[0] for line in run(environment, "fared-lab", "topologies").splitlines()]
    assert named == list(shipped.files())
    assert "spf" in run(environment, "fared-cli", "--help")
    if shutil.which("man") is not None:
        if installer == "uv":  # which leaves them where they are
            environment["MANPATH"] = str(prefix / "share/man")
        assert run(environment, "man", "--where", "fared.yaml").startswith(str(tmp_path))
    script = prefix / "share/bash-completion/completions/fared-cli"
    ask = (
        f"source {script}; COMP_WORDS=(fared-cli show ne) COMP_CWORD=2;"
        ' _fared_cli_completion fared-cli; echo "${COMPREPLY[*]}"'
    )
    assert run(environment, "bash", "-c", ask) == "neighbors\n"

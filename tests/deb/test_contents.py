"""The split of the Debian packages: what each may import, what it bundles, what it takes from
Debian."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from deb import contents
from deb.releases import RELEASES

ROOT = Path(__file__).parents[2]
IMPORTED = {
    "pyyaml": "yaml",
    "prometheus-client": "prometheus_client",
    "python-dateutil": "dateutil",
    "pillow": "PIL",
}
DEBIAN_12 = {
    "click": "8.1.3",
    "cloudpickle": "2.2.0",
    "h11": "0.14.0",
    "pyyaml": "6.0",
    "dpkt": "1.9.8",
}
"""Versions in Debian 12 of what is not bundled."""
DEBIAN_13 = {
    "click": "8.1.8",
    "cloudpickle": "3.1.1",
    "h11": "0.14.0",
    "pyyaml": "6.0.2",
    "dpkt": "1.9.8",
}
UBUNTU_24_04 = {
    "click": "8.1.6",
    "cloudpickle": "3.0.0",
    "h11": "0.14.0",
    "pyyaml": "6.0.1",
    "dpkt": "1.9.8",
}


def pins(package: str) -> dict[str, str]:
    lines = (ROOT / "deb" / contents.BUNDLED[package]).read_text().splitlines()
    return dict(line.split("==") for line in lines if not line.startswith("#"))


def requirements() -> list[Requirement]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *extras["plot"], *extras["ina"], *extras["sonic"]]
    return [Requirement(r) for r in wanted]


def imports(file: Path) -> Iterator[str]:
    """All absolute imports of a module, also those inside functions."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


EXTRAS = {"fared.extensions.ina.torch": "torch"}
"""Modules for users of a library that no package of fared depends on."""


def test_no_module_of_the_router_and_its_client_needs_the_tools():
    known = contents.modules(ROOT)
    available = {*pins("fared"), *contents.DEBIAN}
    libraries = {IMPORTED.get(name, name.replace("-", "_")) for name in available}
    wrong = []
    for name, file in known.items():
        if contents.package_of(name) != "fared":
            continue
        for needed in imports(file):
            top = needed.partition(".")[0]
            if EXTRAS.get(name) == top:
                right = True
            elif top == "fared":
                right = needed not in known or contents.package_of(needed) == "fared"
            else:
                right = top in sys.stdlib_module_names or top in libraries
            if not right:
                wrong.append(f"{name} imports {needed}")
    assert wrong == []


def test_no_class_of_click_that_only_newer_versions_parameterize_is_a_base():
    """Debian and Ubuntu have click 8.1: ``class Name(click.ParamType[str])`` fails there."""
    wrong = []
    for name, file in contents.modules(ROOT).items():
        for node in ast.walk(ast.parse(file.read_text())):
            for base in node.bases if isinstance(node, ast.ClassDef) else ():
                if isinstance(base, ast.Subscript) and ast.unparse(base).startswith("click."):
                    wrong.append(f"{name}: {ast.unparse(base)}")  # noqa: PERF401 - a line each
    assert wrong == []


def test_the_tools_are_there_and_are_modules():
    known = contents.modules(ROOT)
    assert [name for name in contents.TOOLS if name not in known] == []


@pytest.mark.parametrize(
    "release", [DEBIAN_12, DEBIAN_13, UBUNTU_24_04], ids=[one.name for one in RELEASES]
)
def test_every_dependency_is_bundled_or_from_debian_in_a_version_that_fared_accepts(release):
    debian = {**contents.DEBIAN, **contents.DEBIAN_TOOLS}
    assert debian.keys() == release.keys()
    found = {**pins("fared"), **pins("fared-tools"), **release}
    assert not pins("fared").keys() & pins("fared-tools").keys()
    for required in requirements():
        version = found[canonicalize_name(required.name)]
        assert required.specifier.contains(version), f"{required}: {version}"


@pytest.mark.parametrize("python", ["3.11.2", "3.12.3", "3.13.5"])
def test_what_a_bundled_package_needs_on_the_python_of_a_release_is_there_too(python):
    """pip is told to install no dependencies, so nobody else would notice."""
    there = {*pins("fared"), *contents.DEBIAN}
    here = {"python_version": python.rpartition(".")[0], "python_full_version": python, "extra": ""}
    missing = [
        f"{name} needs {required}"
        for name in pins("fared")
        if name != "async-timeout"  # of older Pythons than this one: not installed here
        for required in map(Requirement, metadata.requires(name) or ())
        if required.marker is None or required.marker.evaluate(here)
        if canonicalize_name(required.name) not in there
    ]
    assert missing == []


@pytest.mark.parametrize("package", ["fared", "fared-tools"])
def test_all_files_that_a_package_names_exist(package):
    for pattern in contents.FILES[package]:
        assert list(ROOT.glob(pattern)), pattern


def test_the_router_has_all_files_of_its_page():
    patterns = contents.FILES["fared"]
    packed = {file for pattern in patterns for file in ROOT.glob(pattern) if file.is_file()}
    static = ROOT / "fared" / "management" / "api" / "static"
    assert {file for file in static.rglob("*") if file.is_file()} <= packed


def test_the_import_contract_forbids_the_same_as_the_packages():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    named = next(one for one in contracts["contracts"] if "deb/contents.py" in one["name"])
    rooms = {name for name in contents.TOOLS if not name.startswith("fared.management.cli.")}
    assert rooms <= set(named["forbidden_modules"])
    assert all(contents.package_of(name) == "fared" for name in named["source_modules"])
    third = {re.sub(r"\W", "_", name) for name in pins("fared-tools")} | {*contents.DEBIAN_TOOLS}
    assert set(named["forbidden_modules"]) - rooms <= third

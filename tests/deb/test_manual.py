"""Man pages and completions have all that ``--help`` and the schema have."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest

from deb import build, contents, manual, sample
from fared.config.model import Config
from fared.config.shapes import fields_of
from fared.daemon.main import parser
from fared.extensions.ina.inad.main import parser as ina_parser
from fared.extensions.lab import shipped
from fared.management.cli.main import main as cli

ROOT = Path(__file__).parents[2]
PAGES = {
    **manual.pages("fared", ROOT / "config" / "fared.yaml"),
    **manual.pages("fared-tools", ROOT / "config" / "fared.yaml"),
}


def plain(page: str) -> str:
    """The text of a page, without escapes and requests."""
    text = re.sub(r"\\f[BR]", "", PAGES[page]).replace("\\-", "-").replace("\\e", "\\")
    return re.sub(r"\\\[u([0-9A-F]+)\]", lambda found: chr(int(found[1], 16)), text)


def commands(command: click.Command, path: str) -> list[tuple[str, click.Command]]:
    if not isinstance(command, click.Group):
        return [(path, command)]
    context = click.Context(command)
    below = ((name, command.get_command(context, name)) for name in command.list_commands(context))
    found = [pair for name, one in below if one for pair in commands(one, f"{path} {name}".strip())]
    return [(path, command), *found] if command.invoke_without_command and path else found


@pytest.mark.skipif(shutil.which("groff") is None, reason="groff is missing")
@pytest.mark.parametrize("page", PAGES)
def test_groff_has_no_complaint_about_a_page(page):
    command = ["groff", "-man", "-ww", "-z", "-Tutf8"]
    done = subprocess.run(command, input=PAGES[page], capture_output=True, text=True, check=True)
    assert done.stderr == ""


def test_there_is_a_page_for_every_program_and_for_the_file():
    assert set(PAGES) == {"fared.8", "fared-ina.8", "fared-cli.1", "fared.yaml.5", "fared-lab.1"}


def test_fared_cli_1_has_every_command_with_its_options():
    text = plain("fared-cli.1")
    for path, command in commands(cli, ""):
        if path.startswith(("show ospf", "show isis")):
            continue
        _, found, rest = text.partition(f".SS {path}\n")
        assert found, path
        own = rest.partition("\n.S")[0]
        for option in (o for p in command.params if isinstance(p, click.Option) for o in p.opts):
            assert option in own or option in ("--json", "--watch", "--help"), f"{path} {option}"


SAMPLE = (ROOT / "config" / "fared.yaml").read_text()


def section_of_page(place: str) -> str:
    """The text about a section, as it stands in the file."""
    _, found, rest = plain("fared.yaml.5").partition(f".SS {place}\n")
    assert found, place
    return rest.partition("\n.S")[0]


def test_fared_yaml_5_has_every_key_of_every_section_at_its_place_in_the_file():
    places: dict[type, list[str]] = {}
    for section, place in sample.places():
        places.setdefault(section, []).append(place)
    assert [Config, *places] == sample.sections()
    for section, where in places.items():
        own = section_of_page(", ".join(where))
        assert [key for key in fields_of(section) if f".B {key}\n" not in own] == [], where


def test_fared_yaml_5_has_all_settings_with_their_comments():
    text = plain("fared.yaml.5")
    for line in SAMPLE.splitlines():
        assert line in text


def test_every_setting_has_help_which_the_page_prints():
    """It is said once, in ``config/fared.yaml``; what several sections have, at one of them."""
    text = plain("fared.yaml.5")
    help_of = sample.help_of(SAMPLE)
    assert [place for place, said in help_of.items() if not said] == []
    for said in help_of.values():
        assert f"\n.br\n{said.replace('`', '')}\n" in text


@pytest.mark.parametrize(
    ("place", "key", "said"),
    [
        (
            "isis: redistribute: default",
            "always",
            "true: even if this router has no static default route",
        ),
        ("isis: interfaces: *: authentication: keys", "send-start", "it signs from then on"),
        ("bfd: profiles: *", "multiplier", "packets missed until the session is down"),
        ("ospf", "flooding", "``reduction``: how flooding to neighbors is reduced."),
    ],
)
def test_what_has_no_comment_of_its_own_has_that_of_the_same_setting_or_its_section(
    place, key, said
):
    section = next(one for one, where in sample.places() if place in where)
    assert sample.help_of(SAMPLE)[section, key] == said


@pytest.mark.parametrize(
    ("section", "key", "facts", "comment"),
    [
        (
            *("ospf: areas: *: interfaces: *", "dead-interval"),
            "whole seconds, 1..65535; default 4; bounce-adjacency",
            "default: four times the hello interval",
        ),
        (
            *("isis", "lsp-lifetime"),
            "whole seconds, 1..65535; default 1200",
            "seconds; LSPs that are not refreshed expire",
        ),
        (
            *("ospf", "areas"),
            (
                "by name (an area id: dotted such as 0.0.0.0, or an integer):"
                " section ospf: areas: *; bounce-adjacency"
            ),
            "One area and its interfaces.",
        ),
        (
            "api",
            "socket",
            "text that is not empty; default /run/fared/fared.sock; restart-required",
            "control socket of fared-cli, for its owner and group",
        ),
    ],
)
def test_fared_yaml_5_tells_what_a_setting_must_be_its_default_its_effect_and_its_help(
    section, key, facts, comment
):
    """Words and default are those of the field, help is the comment of the example."""
    assert f".B {key}\n{facts}\n.br\n{comment}\n" in section_of_page(section) + "\n"


@pytest.mark.parametrize(("page", "made"), [("fared.8", parser()), ("fared-ina.8", ina_parser())])
def test_the_page_of_a_daemon_has_every_option_and_its_help(page, made):
    text = plain(page)
    for action in made._actions:
        assert ", ".join(action.option_strings) in text
    assert made.description in text


def test_text_that_looks_like_a_request_of_roff_stays_text():
    assert manual.escaped(".SH a\n'b\\c-d") == "\\&.SH a\n\\&'b\\ec\\-d"


@pytest.fixture(scope="module")
def staged(tmp_path_factory) -> dict[str, Path]:
    """Both packages without what they bundle, which would be downloaded."""
    roots = {name: tmp_path_factory.mktemp(name) for name in build.PACKAGES}
    for name, root in roots.items():
        build.stage(name, root, "9.9.9")
    return roots


def test_no_file_is_in_both_packages(staged):
    files = [
        {file.relative_to(root) for file in root.rglob("*") if file.is_file()}
        for root in staged.values()
    ]
    assert files[0]
    assert files[1]
    assert not files[0] & files[1]


def test_the_programs_report_the_version_of_the_package(staged):
    text = (staged["fared"] / "usr/lib/fared/fared/__init__.py").read_text()
    assert '__version__ = "9.9.9"' in text


def test_the_staged_router_runs_without_the_tools_and_names_the_package_that_has_them(staged):
    """Its modules alone; the dependencies are those of this environment."""
    environment = {**os.environ, "PYTHONPATH": str(staged["fared"] / "usr/lib/fared")}

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-P", "-m", *arguments]
        return subprocess.run(
            command, capture_output=True, text=True, check=False, env=environment, cwd="/"
        )

    check = run("fared.daemon.main", "-c", str(ROOT / "config" / "leaf.yaml"), "--check")
    assert check.returncode == 0, check.stderr
    assert run("fared.management.cli.main", "--version").stdout == "fared-cli, version 9.9.9\n"
    missing = run("fared.management.cli.main", "spf", "--lsdb", "x")
    assert missing.returncode == 2
    assert "'spf' is in another package: install fared-tools" in missing.stderr


@pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="dpkg-deb is missing")
@pytest.mark.parametrize(
    ("python", "version", "depends"),
    [
        ((3, 11), "9.9.9", "python3 (>= 3.11), python3 (<< 3.12)"),
        ((3, 12), "9.9.9+ubuntu24.04", "python3 (>= 3.12), python3 (<< 3.13)"),
        ((3, 13), "9.9.9+deb13", "python3 (>= 3.13), python3 (<< 3.14)"),
    ],
)
def test_a_package_is_for_the_release_whose_python_builds_it(
    python, version, depends, tmp_path, monkeypatch
):
    """Its wheels and compiled modules are for no other; the later release has the later package."""
    monkeypatch.setattr(build, "PYTHON", python)
    monkeypatch.setattr(contents, "CONFFILES", ())
    monkeypatch.setattr(build, "stage", lambda _, root, __: root.mkdir())
    monkeypatch.setattr(build, "bundled", lambda *_: tmp_path / "empty")
    (tmp_path / "empty").mkdir()
    file = build.build("fared", tmp_path, "9.9.9", fast=True)
    assert file.name == f"fared_{version}_{build.architecture()}.deb"
    told = (tmp_path / "fared" / "DEBIAN" / "control").read_text()
    assert f"Version: {version}\n" in told
    assert f"Depends: {depends}," in told


def test_a_package_for_another_machine_has_wheels_for_it_alone(tmp_path, monkeypatch):
    """An ELF file tells its machine; a build for this machine's would be of no use there."""
    monkeypatch.setattr(contents, "CONFFILES", ())
    monkeypatch.setattr(build, "stage", lambda _, root, __: root.mkdir())
    asked = []

    def pip(command: tuple[str, ...], **_: object) -> None:
        asked.extend(command)
        target = Path(command[command.index("--target") + 1])
        target.mkdir(parents=True)
        (target / "one.so").write_bytes(b"\x7fELF" + bytes(14) + machine.to_bytes(2, "little"))

    monkeypatch.setattr(build.subprocess, "run", pip)
    machine = 62  # x86-64
    with pytest.raises(SystemExit, match=r"not for arm64: one\.so"):
        build.bundled("fared", tmp_path, "arm64")
    shutil.rmtree(tmp_path)
    machine = 183  # AArch64
    assert (build.bundled("fared", tmp_path, "arm64") / "one.so").exists()
    assert "--platform=manylinux2014_aarch64" in asked


def test_a_tree_without_git_builds_packages_with_the_time_of_its_files(monkeypatch):
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    monkeypatch.setenv("PATH", "/nonexistent")
    assert build._source_time() == int((ROOT / "fared/__init__.py").stat().st_mtime)


def test_the_staged_lab_has_the_topologies(staged, tmp_path):
    for root in staged.values():
        shutil.copytree(root / "usr/lib/fared", tmp_path, dirs_exist_ok=True)
    command = [sys.executable, "-P", "-m", "fared.extensions.lab.main", "topologies"]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, env=environment, cwd="/"
    )
    assert [line.split()[0] for line in done.stdout.splitlines()] == list(shipped.files())


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is missing")
def test_bash_completes_words_of_fared_cli(staged):
    script = staged["fared"] / "usr/share/bash-completion/completions/fared-cli"
    ask = (
        f"source {script}; COMP_WORDS=(fared-cli show ne) COMP_CWORD=2;"
        ' _fared_cli_completion fared-cli; echo "${COMPREPLY[*]}"'
    )
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", ask], capture_output=True, text=True, check=True, env={"PATH": path}
    )
    assert done.stdout == "neighbors\n"


def test_completions_of_all_shells_are_where_these_look(staged):
    names = {
        "usr/share/bash-completion/completions/{}",
        "usr/share/zsh/vendor-completions/_{}",
        "usr/share/fish/vendor_completions.d/{}.fish",
    }
    for package, program in (("fared", "fared-cli"), ("fared-tools", "fared-lab")):
        for name in names:
            assert program in (staged[package] / name.format(program)).read_text()


@pytest.mark.parametrize("script", ["postinst", "prerm", "postrm"])
def test_maintainer_scripts_are_valid_for_the_shell(script):
    subprocess.run(["sh", "-n", str(ROOT / "deb" / f"fared.{script}")], check=True)

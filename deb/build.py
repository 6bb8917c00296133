"""Builds the packages ``fared`` and ``fared-tools``: ``make deb``, on a release of ``releases``.

The packages are for the release whose Python builds them: bundled wheels and compiled modules are
for its version. ``--architecture`` takes the wheels of another machine, since compiled modules are
the same on all. Uses dpkg-deb alone. Everything is staged below ``build/deb``; bundled dependencies
are kept there, so that a second build takes seconds. A package installs compiled modules, so that
nothing is written to /usr after the installation.
"""

from __future__ import annotations

import argparse
import compileall
import gzip
import hashlib
import importlib
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
from click.shell_completion import BashComplete, FishComplete, ZshComplete

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # as a program, this module finds its neighbors

import fared  # noqa: E402
from deb import contents, manual  # noqa: E402
from deb.releases import MACHINES, RELEASES, SUFFIX  # noqa: E402

PACKAGES = ("fared", "fared-tools")
PYTHON = sys.version_info[:2]
_SCRIPTS = ("postinst", "prerm", "postrm")
_PRUNED = ("tests", "include", "bin", "__pycache__")
"""Directories of bundled packages that no program runs."""
_ELF = {62: "amd64", 183: "arm64"}
_SHELLS = (BashComplete, ZshComplete, FishComplete)
_COMPLETIONS = {
    "bash": "usr/share/bash-completion/completions/{}",
    "zsh": "usr/share/zsh/vendor-completions/_{}",
    "fish": "usr/share/fish/vendor_completions.d/{}.fish",
}
_LAUNCHER = """\
#!/usr/bin/python3 -s
import os
import sys

sys.path[0] = "/{private}"
os.environ["PYTHONPATH"] = sys.path[0]  # of fared-bfd

from {module} import main

main()
"""
_CONTROL = """\
Package: {package}
Version: {version}
Architecture: {architecture}
Maintainer: The fared authors <fared@localhost>
Installed-Size: {size}
Section: net
Priority: optional
{relations}
Description: {description}
"""
_RELATIONS = {
    "fared": """\
Depends: python3 (>= {python}), python3 (<< {next_python}), {debian}, libc6 (>= 2.28), \
libstdc++6, zlib1g, passwd, systemd | systemd-standalone-sysusers
Recommends: iproute2
Suggests: fared-tools, nftables""",
    "fared-tools": """\
Depends: fared (= {version}), {debian}, iproute2
Suggests: frr, bird2, iperf3, nftables""",
}
_DESCRIPTIONS = {
    "fared": """\
link-state routing daemon for AI fabrics: router and client
 OSPFv2 and IS-IS that weight every equal-cost path by its end-to-end
 capacity, and program these weights into the kernel.""",
    "fared-tools": """\
lab, offline analysis and planner of fared
 Fabrics of routers in network namespaces, routes computed from saved
 databases and captures, and the planner of in-network aggregation.""",
}


def main() -> None:
    """Build both packages; print the paths."""
    made = argparse.ArgumentParser(description=main.__doc__)
    made.add_argument("--out", type=Path, default=ROOT / "build" / "deb")
    made.add_argument("--version", default=fared.__version__, help="of the programs and packages")
    made.add_argument("--fast", action="store_true", help="compress little")
    made.add_argument("--architecture", choices=MACHINES, default=architecture())
    options = made.parse_args()
    if PYTHON not in SUFFIX or shutil.which("dpkg-deb") is None:
        known = ", ".join(release.name for release in RELEASES)
        sys.exit(f"make deb needs dpkg-deb, and the Python of one of these (PYTHON=...): {known}")
    for package in PACKAGES:
        wanted = options.architecture
        print(build(package, options.out, options.version, wanted, fast=options.fast))


def build(
    package: str, out: Path, version: str, wanted: str | None = None, *, fast: bool = False
) -> Path:
    """Build one package below ``out``, for this machine or another one; return its file."""
    version += SUFFIX.get(PYTHON, "")
    wanted = wanted or architecture()
    root = out / package
    shutil.rmtree(root, ignore_errors=True)
    stage(package, root, version)
    shutil.copytree(bundled(package, out, wanted), root / contents.PRIVATE, dirs_exist_ok=True)
    _compile(root)
    _control(package, root, version, wanted)
    file = out / f"{package}_{version}_{wanted}.deb"
    how = ("-Zgzip", "-z1") if fast else ("-Zxz", "-z2")
    command = ("dpkg-deb", "--root-owner-group", *how, "--build", str(root), str(file))
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return file


def architecture() -> str:
    """Return Debian's name of this machine's architecture."""
    known = {machine: name for name, machine in MACHINES.items()}
    return known.get(platform.machine(), platform.machine())


def stage(package: str, root: Path, version: str) -> None:
    """Copy all that comes from the source tree; write launchers, completions and man pages."""
    for name, file in contents.modules(ROOT).items():
        if contents.package_of(name) == package:
            target = root / contents.PRIVATE / file.relative_to(ROOT)
            _copy(file, target)
            if name == "fared":
                text = re.sub(r'(?<=__version__ = ").*(?=")', version, file.read_text("utf-8"))
                target.write_text(text, "utf-8")
    for file, inside in contents.matching(ROOT, package).items():
        _copy(file, root / inside)
    for program, module in contents.PROGRAMS[package].items():
        _launcher(root, program, module)
    for name, text in manual.pages(package, ROOT / "config" / "fared.yaml").items():
        _gzip(root / f"usr/share/man/man{name[-1]}/{name}.gz", text)
    _write(root / f"usr/share/doc/{package}/copyright", _copyright())


def _launcher(root: Path, program: str, module: str) -> None:
    file = root / "usr" / "bin" / program
    _write(file, _LAUNCHER.format(private=contents.PRIVATE, module=module))
    file.chmod(0o755)
    for shell, text in completions(program, module).items():
        _write(root / _COMPLETIONS[shell].format(program), text)


def completions(program: str, module: str) -> dict[str, str]:
    """Return completion scripts of a program by shell; the daemons have few options, and none."""
    command = importlib.import_module(module).main
    if not isinstance(command, click.Command):
        return {}
    variable = f"_{program.replace('-', '_').upper()}_COMPLETE"
    made = {shell.name: shell(command, {}, program, variable) for shell in _SHELLS}
    return {name: one.source_template % one.source_vars() for name, one in made.items()}


def bundled(package: str, out: Path, wanted: str) -> Path:
    """Install the bundled dependencies of a package once; return their directory."""
    pins = ROOT / "deb" / contents.BUNDLED[package]
    digest = hashlib.sha256(f"{PYTHON}{wanted}".encode() + pins.read_bytes()).hexdigest()[:12]
    directory = out / f"bundled-{package}-{digest}"
    if directory.exists():
        return directory
    part = directory.with_suffix(".part")
    shutil.rmtree(part, ignore_errors=True)
    pip = (sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    how = ("--no-deps", "--no-compile", "--target", str(part), "--requirement", str(pins))
    other = () if wanted == architecture() else _platforms(wanted)
    subprocess.run((*pip, *how, *other), check=True)
    for name in _PRUNED:
        for found in sorted(part.rglob(name)):
            if found.is_dir():
                shutil.rmtree(found)
    for found in [*part.rglob("*.pyi"), *part.rglob("*.a")]:
        found.unlink()
    if foreign := [file for file in part.rglob("*.so*") if machine_of(file) != wanted]:
        sys.exit(f"not for {wanted}: {', '.join(file.name for file in foreign)}")
    return part.rename(directory)


def _platforms(wanted: str) -> Iterator[str]:
    """Yield options of pip for wheels of another machine, whose C library is Debian's 2.36."""
    for minor in range(36, 16, -1):
        yield f"--platform=manylinux_2_{minor}_{MACHINES[wanted]}"
    yield f"--platform=manylinux2014_{MACHINES[wanted]}"


def machine_of(file: Path) -> str:
    """Return Debian's name of the machine that a shared library is for (ELF: ``e_machine``)."""
    with file.open("rb") as opened:
        head = opened.read(20)
    return _ELF.get(int.from_bytes(head[18:20], "little"), "unknown")


def _compile(root: Path) -> None:
    """Give all files the time of the source, and compile all modules with it."""
    when = _source_time()
    for file in root.rglob("*"):
        if file.is_file() and not file.is_symlink():
            os.utime(file, (when, when))
    private = root / contents.PRIVATE
    compileall.compile_dir(private, quiet=2, stripdir=str(root), prependdir="/", workers=0)


def _source_time() -> int:
    """The time of the last commit, so that equal sources make equal packages."""
    if "SOURCE_DATE_EPOCH" in os.environ:
        return int(os.environ["SOURCE_DATE_EPOCH"])
    if shutil.which("git") is not None and (ROOT / ".git").exists():
        command = ("git", "-C", str(ROOT), "log", "-1", "--format=%ct")
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return int(done.stdout)
    return int(Path(fared.__file__).stat().st_mtime)  # an unpacked archive


def _control(package: str, root: Path, version: str, wanted: str) -> None:
    files = [file for file in sorted(root.rglob("*")) if file.is_file()]
    sums = (f"{_md5(file)}  {file.relative_to(root)}\n" for file in files)
    size = sum(file.stat().st_size for file in files) // 1024
    debian = {**contents.DEBIAN} if package == "fared" else contents.DEBIAN_TOOLS
    relations = _RELATIONS[package].format(
        version=version,
        debian=", ".join(debian.values()),
        python=".".join(map(str, PYTHON)),
        next_python=f"{PYTHON[0]}.{PYTHON[1] + 1}",
    )
    _write(root / "DEBIAN/md5sums", "".join(sums))
    text = _CONTROL.format(
        package=package,
        version=version,
        architecture=wanted,
        size=size,
        relations=relations,
        description=_DESCRIPTIONS[package],
    )
    _write(root / "DEBIAN/control", text)
    if package == "fared":
        _write(root / "DEBIAN/conffiles", "".join(f"/{name}\n" for name in contents.CONFFILES))
    for script in _SCRIPTS:
        source = ROOT / "deb" / f"{package}.{script}"
        if source.exists():
            _write(root / "DEBIAN" / script, source.read_text().replace("@VERSION@", version))
            (root / "DEBIAN" / script).chmod(0o755)


def _copyright() -> str:
    """The license of fared; those of bundled packages are beside them."""
    text = (ROOT / "LICENSE").read_text("utf-8")
    where = f"/{contents.PRIVATE}/*.dist-info"
    return f"Licenses of bundled packages: {where}\n\nfared:\n\n{text}"


def _md5(file: Path) -> str:
    return hashlib.md5(file.read_bytes(), usedforsecurity=False).hexdigest()


def _copy(file: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(file, target)


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, "utf-8")


def _gzip(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(gzip.compress(text.encode(), 9, mtime=0))


if __name__ == "__main__":
    main()

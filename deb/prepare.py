"""Prepares what ``tests/deb/test_clean_root.py``, which runs without a network, needs.

For each release, below ``build/deb-test``: a clean root, and the packages in two versions, built
as on a machine of that release: in a copy of the clean root, from a checkout, by its Python.
Without arguments for all releases whose archive keys are below ``KEYRINGS``, else for those that
are named. ``arm64``: the release that runs here, on that machine, for ``test_arm64.py``.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # as a program, this module finds its neighbors

from deb import build, contents  # noqa: E402
from deb.releases import RELEASES, Release  # noqa: E402

OUT = ROOT / "build" / "deb-test"
OLD, NEW = "0.2.0", "0.2.1~test"
FOREIGN = "arm64"
KEYRINGS = Path(os.environ.get("KEYRINGS", "/usr/share/keyrings"))
_INCLUDED = ("apt", "systemd", "iproute2", "python3", *contents.DEBIAN.values())
"""What the packages depend on, a supervisor, and what is no required package in Ubuntu: apt."""
_TOOLS = tuple(contents.DEBIAN_TOOLS.values())
_BUILDERS = ("python3-venv", "ca-certificates")
_BUILD = """
set -e
cd /tmp
[ -x venv/bin/pip ] || python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check /src
for version; do venv/bin/python /src/deb/build.py --out /out --version "$version" --fast; done
"""
"""Arguments: the versions. pip installs what the programs need that write man pages."""


def clean(release: Release) -> Path:
    """Return the file of a clean root, with Debian's packages only."""
    return OUT / f"{release.name}.tar"


def package(release: Release, name: str, version: str) -> Path:
    """Return the file of a package."""
    version += release.suffix
    return OUT / release.name / f"{name}_{version}_{build.architecture()}.deb"


def foreign() -> Path:
    """Return the file of a root of the other machine, in which nothing has been configured."""
    return OUT / f"{FOREIGN}.tar"


def main(names: Sequence[str]) -> None:
    """Make the roots that are missing, and the packages anew."""
    if shutil.which("mmdebstrap") is None:
        sys.exit("a clean root needs mmdebstrap: apt install mmdebstrap")
    OUT.mkdir(parents=True, exist_ok=True)
    if not names or FOREIGN in names:
        prepare_foreign()
    for release in RELEASES:
        if names and release.name not in names:
            continue
        if (KEYRINGS / release.keyring).exists():
            prepare(release)
        else:
            print(f"{release.name}: left out, since {KEYRINGS / release.keyring} is missing")


def prepare(release: Release) -> None:
    """Make the clean root of a release, if it is missing, and its packages."""
    packages = OUT / release.name
    packages.mkdir(parents=True, exist_ok=True)
    _root(release, clean(release), "--variant=minbase")
    with tempfile.TemporaryDirectory(dir=OUT) as copy:
        subprocess.run(("tar", "-C", copy, "-xf", str(clean(release))), check=True)
        shutil.copy("/etc/resolv.conf", f"{copy}/etc/resolv.conf")
        _inside(copy, "apt-get", "update", "-qq")
        _inside(copy, "apt-get", "install", "-qq", "--no-install-recommends", *_BUILDERS)
        source = Path(copy) / "src"
        source.mkdir()
        export = f"cd {ROOT} && git ls-files -z | tar -c --null -T - | tar -x -C {source}"
        subprocess.run(("sh", "-c", export), check=True)
        (Path(copy) / "out").mkdir()
        _inside(copy, "sh", "-c", _BUILD, "build", OLD, NEW, bound=packages)


def prepare_foreign() -> None:
    """Make the root of the other machine, if it is missing, and packages for it."""
    release = next((each for each in RELEASES if each.python == build.PYTHON), None)
    if release is None:
        print(f"{FOREIGN}: left out, since no release has this Python")
        return
    _root(release, foreign(), "--variant=extract", f"--architectures={FOREIGN}")
    for name in build.PACKAGES:
        build.build(name, OUT / FOREIGN, NEW, FOREIGN, fast=True)


def _root(release: Release, file: Path, *how: str) -> None:
    """Make a root with Debian's packages, if it is missing."""
    if file.exists():
        return
    part = file.with_suffix(".part")
    included = ",".join((*_INCLUDED, *_TOOLS))
    where = (f"--keyring={KEYRINGS / release.keyring}", f"--components={release.components}")
    wanted = (*how, f"--include={included}", "--format=tar", *where)
    command = ("mmdebstrap", *wanted, release.suite, str(part), release.mirror)
    subprocess.run(command, check=True, timeout=3600)
    part.rename(file)


def _inside(root: str, *command: str, bound: Path | None = None) -> None:
    """Run a command in a root, with the keys of this machine, and ``bound`` as /out."""
    bind = ["set -e", 'for name in proc dev; do mount --rbind /$name "$0/$name"; done']
    certificates = Path("/etc/ssl/certs/ca-certificates.crt")
    environment = {"PATH": os.environ["PATH"], "DEBIAN_FRONTEND": "noninteractive", "HOME": "/root"}
    if certificates.exists():
        shutil.copy(certificates, f"{root}/src.crt")
        environment["PIP_CERT"] = "/src.crt"
    if bound is not None:
        bind.append(f'mount --bind "{bound}" "$0/out"')
    script = "\n".join([*bind, 'exec chroot "$0" "$@"'])
    within = ("unshare", "--mount", "sh", "-c", script, root, *command)
    subprocess.run(within, check=True, timeout=3600, env=environment)


if __name__ == "__main__":
    main(sys.argv[1:])

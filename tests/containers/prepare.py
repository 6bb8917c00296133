"""Makes the images that ``tests/containers`` runs, which has no network: ``make test-containers``.

There is no registry of containers where the tests run. Debian's own archive gives the base, under
the name that the Dockerfile asks for, and all Dockerfiles are built as a user builds them. All is
below ``build/containers``, and is made again only if the source tree has changed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from tests.containers.engine import (
    BASE,
    DEVICE,
    IMAGES,
    PEERS,
    PREPARED,
    ROOT,
    ROUTER,
    STAMP,
    Podman,
    absent,
    made_from,
)

_BASE_TAR = PREPARED / "base.tar"
_DEPENDS_ON_PERL = (
    "usrmerge libfile-find-rule-perl libnumber-compare-perl libtext-glob-perl perl "
    "perl-modules-5.36 libperl5.36 libgdbm-compat4 libgdbm6"
)
"""What mmdebstrap adds to Debian's minimal system; the published image does without."""


def main() -> None:
    """Make what is missing. Exit code 1: a Dockerfile cannot be built.

    A machine on which no container can run has its reason in the stamp, and tests skip with it.
    """
    reason = absent()
    if reason is not None:
        print(f"containers: {reason}")
        return
    begun = time.monotonic()
    source = made_from()
    if STAMP.exists() and STAMP.read_text() == source:
        print("containers: the images are of this source tree")
        return
    STAMP.unlink(missing_ok=True)
    podman = Podman(PREPARED)
    problem = _missing(podman)
    if problem is None:
        _build(podman)
    else:
        print(f"containers: {problem}")
    STAMP.write_text(source if problem is None else f"{source}\n{problem}")
    print(f"containers: {time.monotonic() - begun:.0f} s, {IMAGES}")


def _missing(podman: Podman) -> str | None:
    """Make the base, and run it. Return what this machine lacks for that; None: nothing."""
    try:
        _make_base(podman)
    except (subprocess.SubprocessError, AssertionError) as error:
        return f"no base could be made of Debian's archive: {error} ({PREPARED / 'base.log'})"
    problem = podman.problem()
    return None if problem is None else f"podman runs no container on this machine: {problem}"


def _make_base(podman: Podman) -> None:
    if podman.succeeds("image", "exists", BASE):
        return
    part = _BASE_TAR.with_suffix(".part")
    excluded = [f"--dpkgopt=path-exclude=/usr/share/{part}/*" for part in ("man", "locale", "doc")]
    purge = f'chroot "$1" apt-get purge --yes -qq {_DEPENDS_ON_PERL}'
    tidy = 'rm -rf "$1"/var/cache/apt/* "$1"/var/log/*'
    command = (
        *("mmdebstrap", "--variant=minbase", "--include=usr-is-merged", "--format=tar"),
        *("--dpkgopt=force-unsafe-io", *excluded),
        *(f"--customize-hook={purge}", f"--customize-hook={tidy}"),
        *("bookworm", str(part)),
    )
    if not _BASE_TAR.exists():
        with (PREPARED / "base.log").open("wb") as log:
            subprocess.run(command, check=True, timeout=900, stdout=log, stderr=log)
        part.rename(_BASE_TAR)
    podman.run("import", _BASE_TAR, BASE, seconds=300)


def _build(podman: Podman) -> None:
    """Build the images; pip trusts the authority that this machine's own pip is told of."""
    words: list[str | Path] = ["build", "--format", "docker", "--pull-never", "--network", "host"]
    if authority := os.environ.get("PIP_CERT"):
        settings = PREPARED / "pip.conf"
        settings.write_text("[global]\ncert = /authority.crt\n")
        for outside, inside in ((authority, "/authority.crt"), (settings, "/etc/pip.conf")):
            words += ["--volume", f"{outside}:{inside}:ro"]
    files = ((ROUTER, "Dockerfile"), (PEERS, "Dockerfile.peers"), (DEVICE, "netlab/Dockerfile"))
    for image, file in files:
        path = ROOT / "containerlab" / file
        podman.watch(*words, "--tag", image, "--file", path, ROOT, seconds=900)


if __name__ == "__main__":
    try:
        main()
    except subprocess.SubprocessError as error:
        sys.exit(f"containers: {error}")

"""Prepares what ``tests/deb/test_clean_root.py``, which runs without a network, needs.

A clean Debian 12, and the packages in two versions, below ``build/deb-test``.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # as a program, this module finds its neighbors

from deb import build, contents  # noqa: E402

OUT = ROOT / "build" / "deb-test"
OLD, NEW = "0.2.0", "0.2.1~test"
CLEAN = OUT / "debian-12.tar"
_INCLUDED = ",".join(
    (
        "systemd",
        "iproute2",
        "python3",
        *contents.DEBIAN.values(),
        *contents.DEBIAN_TOOLS.values(),
    )
)
"""What the packages depend on, and a supervisor."""


def package(name: str, version: str) -> Path:
    """Return the file of a package."""
    return OUT / f"{name}_{version}_{build.architecture()}.deb"


def main() -> None:
    """Build what is missing, and the packages anew."""
    OUT.mkdir(parents=True, exist_ok=True)
    if not CLEAN.exists():
        if shutil.which("mmdebstrap") is None:
            sys.exit("the clean root needs mmdebstrap: apt install mmdebstrap")
        part = CLEAN.with_suffix(".part")
        how = ("--variant=minbase", f"--include={_INCLUDED}", "--format=tar")
        subprocess.run(("mmdebstrap", *how, "bookworm", str(part)), check=True, timeout=600)
        part.rename(CLEAN)
    for version in (OLD, NEW):
        for name in build.PACKAGES:
            print(build.build(name, OUT, version, fast=True))


if __name__ == "__main__":
    main()

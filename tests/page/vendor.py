"""The libraries of the page, and of its tests, from npm: `python tests/page/vendor.py` renews them.

Each package has its version and the checksum of npm (`npm view d3@7.9.0 dist.integrity`); its files
are copied as they are. `vendor.sha256` has the checksums of the copies.
"""

from __future__ import annotations

import base64
import hashlib
import subprocess
import tarfile
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
STATIC = ROOT / "fared" / "management" / "api" / "static" / "vendor"
HERE = Path(__file__).parent


class Library(NamedTuple):
    """An npm package: files of it by their targets."""

    name: str
    integrity: str
    files: dict[str, Path]


LIBRARIES = (
    Library(
        "d3@7.9.0",
        "sha512-e1U46jVP+w7Iut8Jt8ri1YsPOvFpg46k+K8TpCb0P+zjCkjkPnV7WzfDJzMHy1LnA+wj5pLT1wjO901gLXeEhA==",
        {"dist/d3.min.js": STATIC / "d3.min.js", "LICENSE": STATIC / "d3.LICENSE.txt"},
    ),
    Library(
        "uplot@1.6.32",
        "sha512-KIMVnG68zvu5XXUbC4LQEPnhwOxBuLyW1AHtpm6IKTXImkbLgkMy+jabjLgSLMasNuGGzQm/ep3tOkyTxpiQIw==",
        {
            "dist/uPlot.iife.min.js": STATIC / "uPlot.iife.min.js",
            "dist/uPlot.min.css": STATIC / "uPlot.min.css",
            "LICENSE": STATIC / "uPlot.LICENSE.txt",
        },
    ),
    Library(
        "axe-core@4.14.1",
        "sha512-FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ==",
        {"axe.min.js": HERE / "axe.min.js", "LICENSE": HERE / "axe.LICENSE.txt"},
    ),
)
SUMS = HERE / "vendor.sha256"
"""As sha256sum writes them: the files in the tree."""


def checksum(file: Path) -> str:
    """The SHA-256 of a file."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


def renew() -> None:
    """Fetch all packages, compare their checksums, and copy their files."""
    with tempfile.TemporaryDirectory() as directory:
        for library in LIBRARIES:
            command = ["npm", "pack", "--silent", library.name]
            done = subprocess.run(
                command, cwd=directory, check=True, capture_output=True, text=True
            )
            archive = Path(directory) / done.stdout.split()[-1]
            found = (
                "sha512-" + base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
            )
            if found != library.integrity:
                raise SystemExit(f"{library.name}: {found} is not {library.integrity}")
            with tarfile.open(archive) as packed:
                for name, target in library.files.items():
                    member = packed.extractfile(f"package/{name}")
                    assert member is not None
                    target.write_bytes(member.read())
    targets = [target for library in LIBRARIES for target in library.files.values()]
    lines = [f"{checksum(target)}  {target.relative_to(ROOT)}\n" for target in targets]
    SUMS.write_text("".join(lines))


if __name__ == "__main__":
    renew()

"""netlab, in a virtual environment of its own (``make test-netlab``), with fared as its device."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
DEVICE = ROOT / "containerlab" / "netlab"
OWN = ROOT / "build" / "netlab" / "bin" / "netlab"
NETLAB = str(OWN) if OWN.exists() else shutil.which("netlab")
HEAD = f"""
provider: clab
defaults.device: fared
defaults.sources.extra: [ {DEVICE}/fared.yml ]
"""


def create(text: str, directory: Path) -> subprocess.CompletedProcess[str]:
    """Let netlab write the files of all nodes below ``node_files``."""
    for name in ("templates", "ospf"):
        (directory / name).symlink_to(DEVICE / name)
    (directory / "topology.yml").write_text(HEAD + text)
    command = (str(NETLAB), "create", "topology.yml")
    environment = {**os.environ, "HOME": str(directory)}
    return subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=directory, env=environment
    )

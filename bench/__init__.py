"""Benchmarks: ``make bench`` runs all of them, ``python -m bench NAME`` one.

The head of each folder says what it measures; ``neighbors`` and ``lab`` have what others share.
``run.py`` runs the sections, ``report.py`` lays out their rows, ``compare.py`` compares two trees.
``compute.py`` stays beside it: the workers of any tree find it there.
"""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OUTPUT = ROOT / "build" / "bench"

# One thread for NumPy, which reads this when it is loaded.
for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")


def module_of(name: str) -> str:
    """Return the module of a benchmark: the file of its name, here or in a folder."""
    file = next((ROOT / "bench").rglob(f"{name}.py"), None)
    if file is None:
        raise LookupError(f"no such benchmark: {name}")
    return ".".join(file.relative_to(ROOT).with_suffix("").parts)

"""Error counters of an interface, which a test makes sick."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Self

PERIOD = 0.2


class Interface:
    """The error counters of one interface, which go on like those of a kernel."""

    def __init__(self, file: Path, name: str) -> None:
        self.file, self.name = file, name
        self._packets = self._errors = 0
        self.sick = False
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._write()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ends.wait(PERIOD):
            self._packets += 2000
            self._errors += 20 if self.sick else 0
            self._write()

    def _write(self) -> None:
        fresh = self.file.with_suffix(".new")
        counts = f"0 {self._packets} {self._errors} 0 0 0 0 0 0 0 0 0 0 0 0 0"
        fresh.write_text(f"{self.name}: {counts}\n")
        fresh.replace(self.file)

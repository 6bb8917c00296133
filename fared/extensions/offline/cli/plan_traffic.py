"""The traffic of ``fared-cli plan failures``: given in a file, or as a collective."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from fared.extensions.offline.plan.fabric import PlanError, PlanFabric
from fared.extensions.offline.plan.routes import Demands
from fared.extensions.offline.plan.traffic import collective, read_demands
from fared.management.cli.session import Failure

_RATE = 100e9 / 8
_FORM = "a file of demands is YAML: demands: [{from: L1, to: L2, rate: 100G}]"


class AskedTraffic(msgspec.Struct, frozen=True):
    """The options ``--demand``, ``--collective``, ``--hosts`` and ``--rate`` (bytes/s)."""

    file: Path | None
    kind: str | None
    hosts: tuple[str, ...]
    rate: float | None

    def asks(self, *, beside: bool) -> bool:
        """Whether traffic is asked for; ``beside``: hosts and rate are asked for something else."""
        return not beside or self.kind is not None or self.file is not None

    def read(self, fabric: PlanFabric) -> Demands | None:
        """Return the rates between nodes, None without any. Raises PlanError, Failure."""
        if self.kind is None:
            if self.hosts or self.rate is not None:
                raise click.UsageError("--hosts and --rate are those of a --collective")
            return None if self.file is None else self._from_file(self.file, fabric)
        if self.file is not None:
            raise click.UsageError("give either --demand or --collective")
        hosts = self.hosts or tuple(fabric.names[node] for node in fabric.ends.tolist())
        return collective(self.kind, hosts, self.rate or _RATE, fabric.names)

    @staticmethod
    def _from_file(file: Path, fabric: PlanFabric) -> Demands:
        try:
            return read_demands(file.read_text(), fabric.names)
        except OSError as error:
            raise Failure(f"{file}: {error.strerror or error}", _FORM) from error
        except (PlanError, UnicodeDecodeError) as error:
            raise Failure(f"{file}: {error}", _FORM) from error

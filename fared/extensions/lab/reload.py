"""Changes of settings of running fared routers, as an operator makes them: file, then reload."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import yaml

from fared.extensions.lab.errors import LabError
from fared.extensions.lab.fabric import Fabric
from fared.management.api.client import (
    ControlClient,
    DaemonRefusedError,
    DaemonUnreachableError,
)


def adapt(fabric: Fabric, routers: Iterable[str], adaptive: Mapping[str, Any]) -> None:
    """Replace the section ``adaptive`` in the configurations of routers, and reload them.

    Raises LabError.
    """
    for name in routers:
        directory = fabric.node(name).directory
        file = directory / "fared.yaml"
        config = yaml.safe_load(file.read_text("utf-8")) | {"adaptive": dict(adaptive)}
        file.write_text(yaml.safe_dump(config, sort_keys=False), "utf-8")
        try:
            answer = ControlClient(str(directory / "fared.sock")).request("reload")
        except (DaemonRefusedError, DaemonUnreachableError) as error:
            raise LabError(f"{name}: reload: {error}") from error
        if not answer["applied"]:
            raise LabError(f"{name}: reload: {answer}")

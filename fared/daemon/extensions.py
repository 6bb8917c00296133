"""What plugs into the daemon: names of parts that are imported where the configuration wants them.

No other module of the router's house names an extension. A package that is not installed plugs
nothing in.
"""

from __future__ import annotations

import importlib
from typing import Any, Final

_AGGREGATION: Final = "fared.extensions.ina.service"
JOBS: Final = f"{_AGGREGATION}.jobs:InaService"
"""``(runner, socket, log, links)``: the jobs of aggregation, a service."""
JOB_REQUESTS: Final = f"{_AGGREGATION}.requests:REQUESTS"
"""Requests about jobs, by command."""
PERFORM_JOB_REQUEST: Final = f"{_AGGREGATION}.requests:perform"
"""``(service, request)``: answers one of them."""


def extension(name: str) -> Any:  # noqa: ANN401 - each part has its own type
    """Import a part. Raises ImportError."""
    module, _, attribute = name.partition(":")
    return getattr(importlib.import_module(module), attribute)

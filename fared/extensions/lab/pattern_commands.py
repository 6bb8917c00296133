"""``fared-lab traffic step`` and others: training steps and inference on a lab that is up."""

from __future__ import annotations

from collections.abc import Iterator

import click

from fared.extensions.lab.federated_command import federated
from fared.extensions.lab.inference_commands import kv_cache, requests
from fared.extensions.lab.training_commands import experts, pipeline, step
from fared.extensions.lab.transfer_commands import checkpoint, send


def pattern_commands() -> Iterator[click.Command]:
    """Yield the commands, in the order in which help lists them."""
    yield from (step, pipeline, experts, send, checkpoint, kv_cache, requests, federated)

"""A rank of a test: DistributedDataParallel whose gradients the routers sum.

``python torch_program.py '{"job": ..., "rank": ..., ...}'`` prints one JSON line when it has joined
and one with the gradients of each step. DDP has a process group of one rank here, so that whatever
ranks have in common has come through the hook.
"""

from __future__ import annotations

import json
import sys

import torch
from torch import distributed

from fared.extensions.ina import client
from fared.extensions.ina.torch import GradientHook

INPUTS, HIDDEN, OUTPUTS, ROWS, STEPS = 1000, 600, 70, 16, 3


def batch(rank: int, step: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The rows of a rank: others in each step."""
    made = torch.Generator().manual_seed(1000 * step + rank)
    return (
        torch.randn(ROWS, INPUTS, generator=made),
        torch.randn(ROWS, OUTPUTS, generator=made),
    )


def network() -> torch.nn.Module:
    """The same at all ranks; DDP's first bucket, 1 MB, ends with the second layer."""
    torch.manual_seed(7)
    return torch.nn.Sequential(
        torch.nn.Linear(INPUTS, HIDDEN),
        torch.nn.Linear(HIDDEN, HIDDEN),
        torch.nn.Linear(HIDDEN, OUTPUTS),
    )


def gradients(model: torch.nn.Module) -> list[torch.Tensor]:
    return [p.grad.clone() for p in model.parameters() if p.grad is not None]


def expected(step: int, size: int, model: torch.nn.Module) -> list[torch.Tensor]:
    """The mean over the gradients of all ranks, computed here."""
    total: list[torch.Tensor] = []
    for rank in range(size):
        model.zero_grad()
        rows, wanted = batch(rank, step)
        torch.nn.functional.mse_loss(model(rows), wanted).backward()
        found = gradients(model)
        total = found if not total else [a + b for a, b in zip(total, found, strict=True)]
    return [one / size for one in total]


def tell(line: dict) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def work(given: dict) -> dict:
    distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
    model = torch.nn.parallel.DistributedDataParallel(network(), bucket_cap_mb=0.1)
    rank, size = given["rank"], given["size"]
    worst, bits = 0.0, []
    with client.join(given["job"], rank, size, timeout=given["timeout"]) as group:
        tell({"joined": rank})
        with GradientHook(group) as hook:
            model.register_comm_hook(hook, GradientHook.mean)
            for step in range(STEPS):
                model.zero_grad()
                rows, wanted = batch(rank, step)
                torch.nn.functional.mse_loss(model(rows), wanted).backward()
                found = gradients(model)
                for mine, true in zip(found, expected(step, size, network()), strict=True):
                    worst = max(worst, float((mine - true).abs().max() / true.abs().max()))
                bits.append([float(one.double().sum()) for one in found])
        calls = group.stats().calls
    return {"worst": worst, "bits": bits, "calls": calls}


def main() -> None:
    given = json.loads(sys.argv[1])
    try:
        result = work(given)
    except Exception as error:  # noqa: BLE001 - the test reads what it was
        result = {"error": type(error).__name__, "text": str(error)}
    tell(result)


if __name__ == "__main__":
    main()

"""A communication hook for DistributedDataParallel: gradients are summed by the routers.

Use, with PyTorch installed (extra ``torch``)::

    from fared.extensions.ina import client
    from fared.extensions.ina.torch import GradientHook

    with client.join("train", rank, size) as group, GradientHook(group) as hook:
        model = DistributedDataParallel(network)
        model.register_comm_hook(hook, GradientHook.mean)

Buckets are reduced by one thread in the order in which DDP gives them, the same at all ranks, while
the backward pass goes on. Whatever an all-reduce raises, ``backward`` raises.
"""
# Annotations are evaluated, since DDP compares those of a hook with its own types.

from concurrent.futures import ThreadPoolExecutor
from typing import Literal

import numpy as np
import torch
from torch import distributed

from fared.core.closing import Closing
from fared.extensions.ina.client.group import WorkerGroup

_HALF = (torch.float16, torch.bfloat16)


class GradientHook(Closing):
    """The state of the hook: a group, and the thread that reduces its buckets.

    Gradients of 16 bits travel as 16-bit integers with an exponent for each chunk, others as
    32-bit ones; ``width`` decides otherwise. One thread, since calls of a group are in order.
    """

    def __init__(self, group: WorkerGroup, width: Literal["int32", "int16"] | None = None) -> None:
        self._group, self._width = group, width
        self._thread = ThreadPoolExecutor(1, "fared-ina-gradients")

    def mean(self, bucket: distributed.GradBucket) -> torch.futures.Future[torch.Tensor]:
        """Return the future mean of a bucket over workers: ``register_comm_hook`` calls this."""
        tensor = bucket.buffer()
        found: torch.futures.Future[torch.Tensor] = torch.futures.Future()
        self._thread.submit(self._reduce, tensor, found)
        return found

    def _reduce(self, tensor: torch.Tensor, found: torch.futures.Future[torch.Tensor]) -> None:
        try:
            width = self._width or ("int16" if tensor.dtype in _HALF else "int32")
            array = np.array(tensor.detach().to("cpu", torch.float32).numpy())
            report = self._group.allreduce(array, width=width)
            array /= report.ranks
            tensor.copy_(torch.from_numpy(array))
        except Exception as error:  # noqa: BLE001 - backward must not wait for ever
            found.set_exception(error)
        else:
            found.set_result(tensor)

    def close(self) -> None:
        """End the thread once it is idle."""
        self._thread.shutdown()

"""Jobs that somebody forged: a right one, of which one field is wrong."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import msgspec

from fared.extensions.ina.control.advert import JobAdvert, encode_job
from fared.extensions.ina.messages import JobEpoch, MemberAddress
from fared.extensions.ina.slots.setup import JobSetup, TreeSetup

Plain = dict[str, Any]

NODE, OTHER = 5, 6
TREE = TreeSetup(0, NODE, 1, 4, {-1: NODE, -2: NODE})
MEMBERS = {
    -1: MemberAddress("10.0.1.2", 54201),
    -2: MemberAddress("10.0.2.2", 54201),
    NODE: MemberAddress("10.255.0.5", 54200),
}


def right(number: int = 7, name: str = "job") -> JobAdvert:
    """Two workers at routers 5 and 6, whose values router 5 adds."""
    setup = JobSetup(number, 1, 64, 64, (1, 2), (TREE,))
    return JobAdvert(JobEpoch(name, setup, MEMBERS), {1: NODE, 2: OTHER}, 64, 4)


def _setup(**fields: object) -> Callable[[Plain], None]:
    return lambda job: job["setup"].update(fields)


def _tree(**fields: object) -> Callable[[Plain], None]:
    return lambda job: job["setup"]["trees"][0].update(fields)


def _worker(address: object = "10.0.1.2", port: object = 54201) -> Callable[[Plain], None]:
    return lambda job: job["members"].update({-1: [address, port]})


def _elastic(job: Plain) -> None:
    job["setup"]["elastic"] = True
    job["lost"] = [3]


ABSURD: dict[str, Callable[[Plain], None]] = {
    "a bit string of 63 bits": _setup(length=63),
    "a bit string of 0 bits, without trees": _setup(length=0, trees=[]),
    "a lost worker without an address": _elastic,
    "port 99999": _worker(port=99999),
    "port -1": _worker(port=-1),
    "the port of a service": _worker(port=53),
    "an address with NUL": _worker("10.0.1.2\0"),
    "a host name": _worker("localhost"),
    "the broadcast address": _worker("255.255.255.255"),
    "Python's name of it": _worker("<broadcast>"),
    "a group": _worker("239.1.2.3"),
    "the loopback": _worker("127.0.0.1"),
    "epoch 99999": _setup(epoch=99999),
    "epoch -1": _setup(epoch=-1),
    "job -5": _setup(job_id=-5),
    "job 0": _setup(job_id=0),
    "set 256": _setup(set_id=256),
    "sub-domain -1": _setup(sub_domain=-1),
    "worker 0": _setup(workers=[0, 1]),
    "a payload of 12 bytes": _setup(payload=12),
    "a payload that no packet holds": _setup(payload=0xFFF8),
    "tree 70000": _tree(tree_id=70000),
    "weight 0": _tree(weight=0),
    "a window of 5000": _tree(window=5000),
    "a router below 0": _tree(root=-1, parents={-2: -1}),
    "a router of 70 bits": _tree(root=1 << 63, parents={-1: 1 << 63, -2: 1 << 63}),
    "a worker that sums": _tree(above={-2: -1, -1: NODE}),
    "trees without end": _tree(parents={-1: NODE, -2: 8, 8: 9, 9: 8}),
    "a name that steers terminals": lambda job: job.update(name="\x1b]0;x\x07"),
    "a name of two lines": lambda job: job.update(name="job\n"),
    "a name from right to left": lambda job: job.update(name="job\u202e"),
    "a reason without end": lambda job: job.update(reason="x" * 10_000),
}


def plain(job: JobEpoch, change: Callable[[Plain], None]) -> Plain:
    """A job as dictionaries and lists, changed."""
    found = msgspec.to_builtins(job, builtin_types=(bytes,))
    assert isinstance(found, dict)
    change(found)
    return found


def forged(change: Callable[[Plain], None], number: int = 7) -> bytes:
    """The value that a router floods of a changed job."""
    advert = right(number)
    whole = list(msgspec.to_builtins(advert))
    whole[0] = plain(advert.job, change)
    return encode_job(advert)[:1] + zlib.compress(msgspec.msgpack.encode(whole))

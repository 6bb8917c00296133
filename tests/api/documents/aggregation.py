"""Documents about in-network aggregation."""

from typing import Any

from fared.extensions.ina import document as ina
from tests.api.documents.common import Json
from tests.api.sample import sample


def _direction(tail: str, head: str) -> Json:
    return sample(ina.InaDirection, tail="", tail_hostname=tail, head="", head_hostname=head)


def _tree(spine: int, weight: int, seen: float, **more: Any) -> Json:
    node = sample(
        ina.InaNode,
        router=f"10.255.0.{spine}",
        hostname=f"spine{spine}",
        ranks=[0, 1, 2],
        bits=f"{7:016x}",
    )
    return sample(
        ina.InaTree,
        tree=spine - 1,
        root=f"10.255.0.{spine}",
        hostname=f"spine{spine}",
        kind="star",
        weight=weight,
        window=4 * weight,
        planned=weight * 12.5e6 / 8,
        seen=seen,
        nodes=[node],
        **more,
    )


def _worker(rank: int, **more: Any) -> Json:
    return sample(
        ina.InaWorker,
        rank=rank,
        address=f"10.0.{rank + 1}.2",
        port=54201,
        router=f"10.255.0.{rank + 5}",
        hostname=f"leaf{rank + 1}",
        **more,
    )


INA = sample(
    ina.InaJobs,
    enabled=True,
    process=sample(
        ina.InaProcessFacts,
        address="10.255.0.5",
        port=54200,
        memory=297_000,
        memory_limit=64 << 20,
        job_limit=16,
    ),
    routers=[
        sample(
            ina.SummingRouter,
            router=f"10.255.0.{n}",
            hostname=f"spine{n}",
            address=f"10.255.0.{n}",
            memory=64 << 20,
        )
        for n in (1, 2)
    ],
    jobs=[
        sample(
            ina.InaJob,
            name="train",
            epoch=2,
            reason="no link to 10.255.0.3",
            head="10.255.0.5",
            head_hostname="leaf1",
            payload=8192,
            elastic=True,
            share=2.0,
            results=ina.UNICAST,
            unicast="spine2 does not run BIER",
            planned=62.5e6 / 8,
            seen=58.1e6 / 8,
            waits_for=[1],
            repeated=12,
            wrong=2,
            workers=[_worker(0, state="joined", repeated=12), _worker(1), _worker(2)],
            trees=[
                _tree(1, 1, 11.8e6 / 8, limits=[_direction("leaf2", "spine1")]),
                _tree(
                    2,
                    4,
                    46.3e6 / 8,
                    limits=[_direction("spine2", f"leaf{n}") for n in (1, 2, 3)],
                    here=sample(
                        ina.InaTreeSlots, slots=33, open=5, waits_for=[1], sums=40210, repeated=3
                    ),
                ),
            ],
            others=[
                sample(
                    ina.InaNoRoot,
                    router="10.255.0.3",
                    hostname="spine3",
                    reason="has no link to leaf2",
                ),
                sample(ina.InaNoRoot, router="10.255.0.4", reason="does not sum"),
            ],
            here=sample(
                ina.InaHere,
                epoch=2,
                trees=1,
                memory=297_000,
                slots=33,
                open_slots=5,
                waits_for=[1],
                wait=1.25,
                counters={"added": 120_630, "duplicate": 3},
                workers={"0": "joined", "1": "absent", "2": "absent"},
            ),
        )
    ],
)

INA_JOB = {**INA, "what": "job", "name": "train"}

INA_JOBS = {**INA, "what": "jobs"}

INA_SLOTS = {**INA, "what": "slots"}

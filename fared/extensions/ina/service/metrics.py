"""Metrics of in-network aggregation, from the document of ``show ina``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from prometheus_client.core import Metric

from fared.extensions.ina.counted import COUNTED, type_of
from fared.extensions.ina.document import InaHere, InaJobs
from fared.management.api.metrics import counter, gauge

Labels = tuple[str, ...]


def aggregation(document: InaJobs) -> Iterator[Metric]:
    """All of ``show ina``, without planned rates."""
    jobs = document.jobs
    up = int(document.process is not None)
    yield gauge("ina_process_up", "1 while fared-ina answers", {(): up}, ())
    yield gauge("ina_jobs", "Jobs of aggregation that are flooded", {(): len(jobs)}, ())
    epochs = {(job.name,): job.epoch for job in jobs}
    yield gauge("ina_epoch", "Epoch of a job", epochs, ("job",))
    repeated = {(job.name,): job.repeated for job in jobs}
    text = "Packets that workers of this router sent again"
    yield counter("ina_repeated", text, repeated, ("job",))
    wrong = {(job.name,): job.wrong for job in jobs}
    text = "Results that workers of this router refused: their control sum was wrong"
    yield counter("ina_wrong_sums", text, wrong, ("job",))
    rates = {
        (job.name, str(tree.tree), tree.root): tree.seen
        for job in jobs
        for tree in job.trees
        if tree.seen is not None
    }
    text = "Array bytes/s through a tree in the last seconds, as seen here"
    yield gauge("ina_tree_rate", text, rates, ("job", "tree", "root"))
    yield from _slots({(job.name,): job.here for job in jobs if job.here is not None})


def _slots(here: Mapping[Labels, InaHere]) -> Iterator[Metric]:
    """The slots of this router, by job."""
    waiting = {job: len(found.waits_for) for job, found in here.items()}
    yield gauge("ina_waits_for", "Workers that open slots here lack", waiting, ("job",))
    text = "Seconds for which the oldest open slot of a job here has waited"
    waits = {job: found.wait for job, found in here.items()}
    yield gauge("ina_wait_seconds", text, waits, ("job",))
    slots: dict[Labels, int] = {}
    packets: dict[Labels, int] = {}
    duplicates: dict[Labels, int] = {}
    for job, found in here.items():
        slots[(*job, "open")] = found.open_slots
        slots[(*job, "other")] = found.slots - found.open_slots
        packets.update({(*job, type_of(what), what): 0 for what in COUNTED})
        packets.update({(*job, type_of(what), what): n for what, n in found.counters.items()})
        duplicates[job] = found.counters.get("duplicate", 0)
    yield gauge("ina_slots", "Slots of a job in this router", slots, ("job", "state"))
    text = "Packets of a job in this router, by type and what was done with them"
    yield counter("ina_packets", text, packets, ("job", "type", "result"))
    text = (
        "Packets of a job that were in the sum already: repeated for others, or doubled on the way"
    )
    yield counter("ina_duplicates", text, duplicates, ("job",))

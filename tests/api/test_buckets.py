"""Weights of resilient groups are shown as they stand in the kernel."""

from types import SimpleNamespace

from fared.management.documents.views.routes import quantization_error, written_weights
from fared.paths.fib.planner import FibPlanner
from fared.paths.fib.settings import FibSettings
from fared.paths.rib.model import NextHop, NextHopSet

CAPACITIES = (333e6, 400e6, 123e6, 398e6)


def context(**settings):
    fib = FibSettings(**settings)
    router = SimpleNamespace(settings=SimpleNamespace(fib=fib), planner=FibPlanner({}, fib))
    return SimpleNamespace(router=router, flows=None)


def hops(*weights: int) -> NextHopSet:
    return NextHopSet(
        tuple(
            NextHop(n, f"e{n}", 4, n, 1, None, capacity, weight)
            for n, (capacity, weight) in enumerate(zip(CAPACITIES, weights, strict=False), 1)
        )
    )


def test_hash_threshold_groups_have_the_computed_weights():
    assert written_weights(context(), hops(213, 256, 78, 254)) == (213, 256, 78, 254)


def test_resilient_groups_have_whole_buckets():
    resilient = context(resilient=True, buckets=128)
    assert written_weights(resilient, hops(213, 256, 78, 254)) == (34, 41, 12, 41)
    assert written_weights(resilient, hops(7, 7, 7, 7)) == (1, 1, 1, 1)
    assert written_weights(resilient, hops(7)) == (7,)
    assert written_weights(resilient, NextHopSet(())) == ()


def test_the_loss_by_buckets_is_included_in_the_loss_by_integer_weights():
    wanted = hops(213, 256, 78, 254)
    assert quantization_error(context(), wanted) < 0.005
    lost = quantization_error(context(resilient=True, buckets=128), wanted)
    assert 0.005 < lost < 4 / (128 + 4)
    assert quantization_error(context(resilient=True, buckets=4096), wanted) < 0.005

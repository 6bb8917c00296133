"""Helpers of planner tests: routes by interface and weight, and a planner with its kernel.

A link number stands for the neighbor's IPv4 address there, ``six(number)`` for its link-local
IPv6 address on the same link.
"""

from fared.core.ids import FAMILY_IPV6, Prefix, ipv4_prefix
from fared.paths.fib.model import FibOperation
from fared.paths.fib.planner import FibPlanner
from fared.paths.fib.settings import FibSettings
from fared.paths.fib.simulated import SimulatedFib
from fared.paths.rib.model import HopKey, NextHop, NextHopSet, Route, RouteDelta
from fared.paths.ted.model import PathType

_SIX = 1000


def six(ifindex: int) -> int:
    """The IPv6 next hop through a link."""
    return _SIX + ifindex


def hop_key(number: int) -> HopKey:
    if number >= _SIX:
        return (number - _SIX, 6, (0xFE80 << 112) + number - _SIX, False)
    return (number, 4, 0x0A000000 + number, False)


def hops(weights: dict[int, int]) -> NextHopSet:
    """``{number: weight}`` as a next-hop set."""
    keyed = sorted((hop_key(number), weight) for number, weight in weights.items())
    return NextHopSet(
        tuple(
            NextHop(ifindex, f"e{ifindex}", family, gateway, 1, None, None, weight)
            for (ifindex, family, gateway, _), weight in keyed
        )
    )


def prefix(number: int) -> Prefix:
    return ipv4_prefix(0xC0000000 + (number << 8), 24)


def prefix6(number: int) -> Prefix:
    return Prefix(FAMILY_IPV6, (0x20010DB8 << 96) + (number << 64), 64)


def route(number: int, nexthops: NextHopSet) -> Route:
    return Route(10, PathType.INTRA_AREA, 0, nexthops, (1,))


def routes(numbers, weights: dict[int, int]) -> dict[Prefix, Route | None]:
    shared = hops(weights)
    return {prefix(n): route(n, shared) for n in numbers}


class PlannerOfRoutes(FibPlanner):
    """A planner with a table of its own, to which it applies each change."""

    def __init__(self, settings: FibSettings | None = None) -> None:
        self.routes: dict[Prefix, Route] = {}
        super().__init__(lambda: self.routes, settings)

    def update(self, changed: RouteDelta, now: float) -> list[FibOperation]:
        for prefix, route in changed.items():
            if route is None:
                self.routes.pop(prefix, None)
            else:
                self.routes[prefix] = route
        return super().update(changed, now)


class Bench:
    """A planner whose operations are applied to a simulated kernel, and a clock."""

    def __init__(self, kernel: SimulatedFib | None = None, **settings) -> None:
        self.kernel = kernel or SimulatedFib()
        self.planner = PlannerOfRoutes(FibSettings(**settings))
        self.planner.adopt(self.kernel.dump())
        self.now = 0.0

    def carry_out(self, operations: list[FibOperation]) -> list[FibOperation]:
        """Apply operations and all that follow from them; return those that were applied."""
        done = list(operations)
        for _ in range(50):
            if not operations:
                return done
            results = self.kernel.apply(operations)
            operations = self.planner.results(results, self.now)
            done += operations
        raise AssertionError("follow-ups do not come to an end")

    def update(self, changed) -> list[FibOperation]:
        return self.carry_out(self.planner.update(changed, self.now))

    def put(self, numbers, weights: dict[int, int]) -> list[FibOperation]:
        return self.update(routes(numbers, weights))

    def remove(self, numbers) -> list[FibOperation]:
        return self.update({prefix(n): None for n in numbers})

    def wait(self, seconds: float) -> list[FibOperation]:
        """Advance the clock, with a tick at each deadline."""
        end, done = self.now + seconds, []
        for _ in range(1000):
            deadline = self.planner.next_deadline()
            if deadline is None or deadline > end:
                self.now = end
                return done
            self.now = max(self.now, deadline)
            done += self.carry_out(self.planner.tick(self.now))
        raise AssertionError("deadlines do not come to an end")

    def lose(self, ifindex: int) -> list[FibOperation]:
        self.kernel.link_down(ifindex)
        return self.carry_out(self.planner.link_lost(ifindex, self.now))

    def restore(self, ifindex: int) -> list[FibOperation]:
        self.kernel.link_up(ifindex)
        return self.carry_out(self.planner.link_restored(ifindex, self.now))

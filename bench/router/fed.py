"""A router fed with LSAs, without packets: from the database to the operations for the kernel.

``Fed`` is a ``Router`` whose engine is the TED builder of OSPF alone. Its local links are those of
leaf 0 of a described fabric; its kernel executes everything at once.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterable

from msgspec.structs import replace

from bench.neighbors.fabric import COST, RATE, Fabric, Link
from fared.core.ids import AreaId, NodeId
from fared.paths.fib.model import OperationResult
from fared.paths.rib.settings import SolverSettings
from fared.paths.te.attributes import TeAttributes
from fared.paths.ted.events import LocalLinksChanged
from fared.paths.ted.model import LocalLink
from fared.paths.weights.path_capacity import WeightMode
from fared.protocols.ospf.instance import Area, Instance
from fared.protocols.ospf.lsdb import LsaEntry
from fared.protocols.ospf.packet.bodies import AsExternalLsa
from fared.protocols.ospf.packet.body import encode_body
from fared.protocols.ospf.packet.lsa import Lsa, LsaKey, LsType
from fared.protocols.ospf.settings import AreaSettings, OspfSettings
from fared.protocols.ospf.ted.builder import TedBuilder
from fared.router import events
from fared.router.protocols import OSPF
from fared.router.router import Router
from fared.router.settings import RouterSettings

AREA = AreaId(0)


class BuilderEngine:
    """The database and the TED builder of OSPF, as an engine."""

    takes_routes = False
    ranges: tuple[()] = ()
    settled = restarting = False

    def __init__(self, settings: OspfSettings) -> None:
        self._instance = Instance(settings, random.Random(1))
        self._area = self._instance.areas[AREA] = Area(AreaSettings(AREA))
        self._builder = TedBuilder(self._instance)
        self.said: list[object] = []
        self.budgets: dict[str, object] = {}

    def handle(self, event: object, now: float) -> None:
        """Counts of link ends come: they limit announcements, of which there are none here."""

    def install(self, lsa: Lsa, now: float) -> None:
        """Install an LSA (RFC 2328 §13.2)."""
        self._instance.process.now = now
        external = lsa.header.ls_type == LsType.AS_EXTERNAL
        lsdb = self._instance.as_scope if external else self._area.lsdb
        entry = LsaEntry(lsdb, lsa.header.key, lsa.raw, now)
        lsdb.entries[entry.key] = entry
        self._builder.lsa_changed(entry)

    def take_outputs(self) -> list[object]:
        """What the builder has to say."""
        self._builder.flush()
        said, self.said = self.said, []
        return said + self._instance.process.take_outputs()

    def tick(self, now: float) -> None:
        """Nothing is ever due."""

    def next_deadline(self) -> None:
        """Nothing ever will be."""

    def adjacency_progress(self) -> tuple[int, int, int]:
        """All neighbors are full."""
        return 1, 1, 0

    def activity(self) -> int:
        """Not counted."""
        return 0


class Fed:
    """Leaf 0 of a fabric, and its clock."""

    def __init__(self, fabric: Fabric, mode: WeightMode = WeightMode.AVAILABLE) -> None:
        self.fabric, self.now, root = fabric, 0.0, fabric.leaf(0)
        ospf = OspfSettings(router_id=root, areas=(AreaSettings(AREA),))
        solver = SolverSettings(mode=mode, max_paths=max(fabric.spines, 1))
        settings = RouterSettings({OSPF: ospf}, solver)
        self.router = Router(settings, random.Random(1), 0.0, time.perf_counter)
        self.engine = BuilderEngine(ospf)
        self.router.instances[OSPF].engine = self.engine  # type: ignore[assignment]
        self.operations = 0
        links = []
        for number in range(fabric.spines):
            low, high = fabric.addresses((number, 0))
            far = NodeId(fabric.spine(number))
            links.append(LocalLink(number + 2, f"swp{number}", far, low, high, COST, RATE))
        self.engine.said.append(LocalLinksChanged(AREA, tuple(links), "adjacency", 0.0))
        self.router.handle(events.LinksKnown(), 0.0)
        own = [fabric.router_lsa(root)]
        if fabric.te:
            own += [fabric.te_lsa(root, link) for link, *_ in list(fabric.ends(root))]
        for lsa in own:
            self.engine.install(lsa, self.now)
        self.take_outputs()

    def take_outputs(self) -> None:
        """Process everything; the kernel executes at once."""
        while outputs := self.router.take_outputs():
            for output in outputs:
                if isinstance(output, events.ApplyFib):
                    self.operations += len(output.operations)
                    results = tuple(map(OperationResult, output.operations))
                    self.router.handle(events.FibApplied(output, results), self.now)

    def receive(self, lsas: Iterable[Lsa], seconds: float = 0.0) -> None:
        """Let time pass, then a burst of LSAs arrives."""
        self.wait(seconds)
        for lsa in lsas:
            self.engine.install(lsa, self.now)
        self.router.tick(self.now)
        self.take_outputs()

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        end = self.now + seconds
        while (due := self.router.next_deadline()) is not None and due <= end:
            self.now = max(self.now, due)
            self.router.tick(self.now)
            self.take_outputs()
        self.now = end


def by_key(fabric: Fabric) -> list[Lsa]:
    """All LSAs as FRR describes them: by type, then by link state id, so routers take turns."""
    return [lsa for key, lsa in sorted(fabric.lsas.items(), key=lambda item: item[0])]


def changed_bandwidths(fabric: Fabric, count: int, seed: int) -> list[Lsa]:
    """The next instances of TE LSAs anywhere, with another available bandwidth."""
    chance = random.Random(seed)
    return [_changed(fabric, chance) for _ in range(count)]


def _changed(fabric: Fabric, chance: random.Random) -> Lsa:
    link = chance.randrange(fabric.spines), chance.randrange(1, fabric.leaves)
    router = fabric.spine(link[0]) if chance.random() < 0.5 else fabric.leaf(link[1])
    return Loaded(fabric, chance.random()).te_lsa(router, link)


class Loaded(Fabric):
    """The same fabric; what is originated has this part of its bandwidth left."""

    def __init__(self, fabric: Fabric, left: float) -> None:
        super().__init__(fabric.spines, fabric.leaves, fabric.te, lsas=fabric.lsas)
        self._left = left

    def attributes(self, link: Link) -> TeAttributes:
        """TE attributes of a link."""
        spare = self.rates.get(link, RATE) * self._left
        known = super().attributes(link)
        return replace(known, available_bandwidth=spare, utilized_bandwidth=RATE - spare)


def lost(fabric: Fabric, link: Link) -> tuple[Lsa, Lsa]:
    """The router LSAs of both ends of a lost link."""
    fabric.cut.add(link)
    return fabric.router_lsa(fabric.spine(link[0])), fabric.router_lsa(fabric.leaf(link[1]))


def restored(fabric: Fabric, link: Link) -> tuple[Lsa, Lsa]:
    """The router LSAs of both ends of a link that is back."""
    fabric.cut.discard(link)
    return fabric.router_lsa(fabric.spine(link[0])), fabric.router_lsa(fabric.leaf(link[1]))


def costlier(fabric: Fabric, link: Link) -> tuple[Lsa, Lsa]:
    """The router LSAs of both ends of a link whose metric doubles."""
    fabric.costs[link] = 2 * COST
    return fabric.router_lsa(fabric.spine(link[0])), fabric.router_lsa(fabric.leaf(link[1]))


def external(fabric: Fabric, number: int, metric: int) -> Lsa:
    """An AS-external LSA of the last leaf: one of 2^24 /32 prefixes."""
    router = fabric.leaf(fabric.leaves - 1)
    address = (20 << 24) + number
    body = encode_body(AsExternalLsa(0xFFFFFFFF, True, metric, 0, 0))
    return fabric.issue(LsaKey(LsType.AS_EXTERNAL, address, router), body)

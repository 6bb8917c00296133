"""The ledger of fast paths: each with its plain rule, and what it gains on the same work.

A fast path is code that gives the result of a plain rule which is in use beside it: two functions
for one rule of a protocol. It needs a row here, with a test that proves both equal and work on
which it gains a fifth at least; otherwise it is removed. A cache, or an index, is none: it has one
function. Nor is a function that is called for what changed only.

The work is done with the fast path and without it, in pairs: without it a function is replaced, so
that the plain rule answers. Each row has the least CPU time of both; its ratio is the median of the
pairs. ``python -m bench fast_paths [NAME...]`` measures rows, as the benchmark runner does all of
them. ``--record`` records them all in ``bench/results/fast_paths.json``; ``make fast-paths`` writes
docs/fast-paths.md from that and from this module.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import json
import operator
import statistics
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime
from typing import Any, NamedTuple
from unittest.mock import patch

from bench import ROOT
from bench.fast_paths import work
from bench.fast_paths.work import Turn
from fared.extensions.offline.plan.fabric import PlanFabric
from fared.extensions.offline.plan.sets import Failures, double_links
from fared.paths.ted.database import Ted
from fared.protocols.bgp.rib.decision import PeerPath, choose
from fared.protocols.bgp.rib.tables import BgpRib
from fared.protocols.igp.events import each
from fared.protocols.ospf.database_summary import DatabaseSummary
from fared.protocols.ospf.packet import codec
from fared.protocols.ospf.packet.lsa import LSA_HEADER_SIZE
from fared.protocols.ospf.packet.opaque import TeLink
from fared.protocols.ospf.packet.te import decode_te
from fared.protocols.ospf.packet.te_facts import facts_of
from fared.protocols.ospf.ted.blocks import build

PAIRS = 40
LEAST = 1.2
RECORDED = ROOT / "bench" / "results" / "fast_paths.json"
Row = dict[str, Any]


class FastPath(NamedTuple):
    """A row of the ledger.

    ``fast`` and ``plain`` are dotted names below ``fared``, ``rule`` is what both compute, ``test``
    proves them equal. ``without``: by what functions are replaced, so that the plain rule answers
    in ``work``.
    """

    name: str
    fast: str
    plain: str
    rule: str
    test: str
    work: Callable[[], Turn]
    without: Mapping[str, Any]


# -- plain rules -------------------------------------------------------------------------------


def _none(*_: object, **__: object) -> None:
    """The fast path does not apply."""


def _false(*_: object, **__: object) -> bool:
    return False


def _zero(*_: object, **__: object) -> int:
    return 0


def _update(_: object, raw: bytes, *, verify: bool) -> object:
    """Decode an update, whether it is known or not."""
    return codec.decode_packet(raw, verify_checksum=verify, packed=True).body


def _te_facts(_: object, raw: bytes) -> object:
    body = decode_te(raw, LSA_HEADER_SIZE)
    return facts_of(body) if isinstance(body, TeLink) else None


_applied, _page = Ted._applied, DatabaseSummary.page  # noqa: SLF001 - called without the fast path


def _graph_anew(ted: Any) -> object:  # noqa: ANN401 - Ted
    ted._graph = None  # noqa: SLF001
    return _applied(ted)


def _page_anew(summary: DatabaseSummary, *args: Any) -> object:  # noqa: ANN401
    summary.pages.clear()
    return _page(summary, *args)


def _each_lsp(_: object, packets: Any, others: Any) -> int:  # noqa: ANN401
    for packet in each(packets):
        others(packet)
    return 0


def _stale(node: Any, _: int, rows: object) -> None:  # noqa: ANN401 - NodeFragments
    node.stale |= bool(rows)


def _choose_anew(rib: BgpRib, group: int) -> tuple[PeerPath, ...]:
    return choose(rib.table.candidates(group), rib.settings)


def _all_pairs(fabric: PlanFabric, _: object) -> Failures:
    return double_links(fabric, None, 0)


# -- the ledger --------------------------------------------------------------------------------

_PATHS, _OSPF, _ISIS = "fared.paths", "fared.protocols.ospf", "fared.protocols.isis"
LEDGER = (
    FastPath(
        "graph of a lost link",
        "paths.ted.graph_update.updated_graph",
        "paths.ted.assemble.assemble",
        "two-way check, RFC 2328 §16.1 (2)(b)",
        "tests/ted/test_changes.py::test_any_history_of_routers_with_known_capacities",
        work.lost_link,
        {f"{_PATHS}.ted.database.updated_graph": lambda *_: (None, None)},
    ),
    FastPath(
        "graph of a lost link, capacities unknown",
        "paths.ted.partners.without_links",
        "paths.ted.assemble.assemble",
        "two-way check, RFC 2328 §16.1 (2)(b); the far end stands in for a capacity",
        "tests/ted/test_changes.py::test_any_history_of_routers_with_unknown_capacities",
        work.lost_unknown,
        {f"{_PATHS}.ted.database.without_links": _none},
    ),
    FastPath(
        "graph with other bandwidths",
        "paths.ted.assemble.refresh",
        "paths.ted.assemble.assemble",
        "the capacity of an edge is the sum of its parallel links",
        "tests/ted/test_database.py::test_an_update_in_place_equals_a_new_graph",
        work.bandwidth,
        {f"{_PATHS}.ted.database.Ted._applied": _graph_anew},
    ),
    FastPath(
        "block of a lost link",
        "protocols.ospf.ted.lost_links.shrunk",
        "protocols.ospf.ted.blocks.build",
        "RFC 2328 §16.1 (2), RFC 3630 §2.5.3",
        "tests/ospf/test_builder.py::test_any_history_of_lsas_of_a_router",
        work.lost_link,
        {f"{_OSPF}.ted.builder.shrunk": _none},
    ),
    FastPath(
        "plan of a lost link",
        "paths.spf.patch.cut_plan",
        "paths.spf.plan.build_plan",
        "shortest paths, RFC 2328 §16.1",
        "tests/spf/test_patch.py"
        "::test_a_plan_patched_after_any_changes_equals_one_built_from_scratch",
        work.lost_link,
        {f"{_PATHS}.spf.patch.cut_plan": _none},
    ),
    FastPath(
        "capacities of a lost link",
        "paths.weights.lost_link.after_loss",
        "paths.weights.path_capacity.propagate",
        "path capacity (docs/path-capacity.md)",
        "tests/spf/test_patch.py"
        "::test_routes_after_any_losses_and_changes_of_capacity_equal_a_fresh_start",
        work.lost_routes,
        {f"{_PATHS}.rib.area.after_loss": _none},
    ),
    FastPath(
        "rows toward several leaves",
        "paths.rib.contracted.still_contracted",
        "paths.weights.path_capacity.contract",
        "path capacity toward several nodes (docs/path-capacity.md)",
        "tests/rib/test_incremental.py"
        "::test_any_changes_in_any_batches_end_with_the_routes_of_a_new_solver",
        work.anycast,
        {f"{_PATHS}.rib.area.still_contracted": lambda *_: {}},
    ),
    FastPath(
        "one changed prefix",
        "paths.rib.few.take_few",
        "paths.rib.selection.choose",
        "preference, RFC 2328 §11, §16.4.1",
        "tests/rib/test_few.py::test_few_prefixes_are_selected_as_by_arrays",
        work.lost_network,
        {f"{_PATHS}.rib.selector.take_few": _none, f"{_PATHS}.rib.routes.FEW": -1},
    ),
    FastPath(
        "withdrawn externals",
        "protocols.ospf.flooding.withdrawals.Withdrawals.process",
        "protocols.ospf.flooding.procedure.Flooding._receive",
        "RFC 2328 §13 (5)",
        "tests/ospf/test_withdrawals.py::test_together_or_one_by_one_there_is_no_difference",
        work.withdrawn,
        {f"{_OSPF}.flooding.withdrawals.Withdrawals.process": lambda _, __, lsas: lsas},
    ),
    FastPath(
        "updates decoded once",
        "protocols.ospf.packet.codec.DecodedUpdates",
        "protocols.ospf.packet.codec.decode_packet",
        "RFC 2328 §A.3.5, §D.4.1",
        "tests/ospf_packet/test_packets.py"
        "::test_updates_decoded_once_equal_those_decoded_each_time",
        work.copies,
        {f"{_OSPF}.packet.codec.DecodedUpdates.decode": _update},
    ),
    FastPath(
        "copies compared as bytes",
        "protocols.ospf.flooding.copies.find_copies",
        "protocols.ospf.flooding.procedure.Flooding._receive",
        "RFC 2328 §13 (7)",
        "tests/ospf/test_duplicates_together.py"
        "::test_packets_that_arrive_together_have_the_effect_of_each_by_itself",
        work.copies,
        {f"{_OSPF}.flooding.procedure.find_copies": lambda lsas, *_: (None, list(lsas))},
    ),
    FastPath(
        "copies of many neighbors at once",
        "protocols.ospf.flooding.duplicates.Duplicates.gather",
        "protocols.ospf.flooding.duplicates.Duplicates.received",
        "RFC 2328 §13 (7)",
        "tests/ospf/test_duplicates_together.py"
        "::test_packets_that_arrive_together_have_the_effect_of_each_by_itself",
        work.copies,
        {
            f"{_OSPF}.flooding.duplicates.Duplicates.joins": _false,
            f"{_OSPF}.flooding.duplicates.Duplicates.gather": _false,
        },
    ),
    FastPath(
        "repeated hellos",
        "protocols.ospf.adjacency.hello.HelloProtocol.repeated",
        "protocols.ospf.adjacency.hello.HelloProtocol.receive",
        "RFC 2328 §8.2, §10.5",
        "tests/igp/test_repeated_hellos.py"
        "::test_a_network_behaves_as_if_each_hello_were_processed_in_full",
        work.hellos,
        {f"{_OSPF}.adjacency.hello.HelloProtocol.repeated": _false},
    ),
    FastPath(
        "descriptions of known LSAs",
        "protocols.ospf.header_page.KnownPages.recognized",
        "protocols.ospf.adjacency.exchange.Exchange._consider",
        "RFC 2328 §10.6, §13.1",
        "tests/ospf/test_header_page.py"
        "::test_a_description_is_known_only_if_each_instance_is_the_same",
        work.rejoin,
        {f"{_OSPF}.header_page.KnownPages.recognized": _false},
    ),
    FastPath(
        "descriptions with other ages",
        "protocols.ospf.database_summary._Page.packed",
        "protocols.ospf.database_summary.DatabaseSummary._make",
        "RFC 2328 §10.8",
        "tests/ospf/test_header_page.py::test_neighbors_share_pages_with_present_ages",
        work.rejoin,
        {f"{_OSPF}.database_summary.DatabaseSummary.page": _page_anew},
    ),
    FastPath(
        "numbers of a TE LSA",
        "protocols.ospf.packet.te_facts.TeReader.read",
        "protocols.ospf.packet.te.decode_te",
        "RFC 3630 §2.4, §2.5, RFC 7471",
        "tests/ospf_packet/test_te_facts.py::test_any_links_one_after_the_other",
        work.join,
        {f"{_OSPF}.packet.te_facts.TeReader.read": _te_facts},
    ),
    FastPath(
        "block of a router with other bandwidths",
        "protocols.ospf.ted.blocks.patch",
        "protocols.ospf.ted.blocks.build",
        "RFC 3630 §2.5, RFC 7471",
        "tests/ospf/test_builder.py::test_any_history_of_lsas_of_a_router",
        work.bandwidth,
        {f"{_OSPF}.ted.builder.patch": lambda router, _: build(router, router.body)},
    ),
    FastPath(
        "IS-IS: copies of LSPs",
        "protocols.isis.update.copies.Copies.take",
        "protocols.isis.update.flooding.Flooding.receive",
        "ISO 10589 §7.3.15.1 e) 2), §7.3.16.4 b) 2)",
        "tests/isis/test_copies.py"
        "::test_packets_that_arrive_together_have_the_effect_of_one_after_another",
        work.isis_copies,
        {f"{_ISIS}.update.copies.Copies.take": _each_lsp},
    ),
    FastPath(
        "IS-IS: copies that came together",
        "protocols.isis.update.copies.Copies._run",
        "protocols.isis.update.copies.Copies._take_one",
        "ISO 10589 §7.3.15.1 e) 2)",
        "tests/isis/test_copies.py"
        "::test_packets_that_arrive_together_have_the_effect_of_one_after_another",
        work.isis_copies,
        {f"{_ISIS}.update.copies.Copies._run": _zero},
    ),
    FastPath(
        "IS-IS: repeated hellos",
        "protocols.isis.adjacency.repetitions.Repetitions.repeated",
        "protocols.isis.reception.Reception.receive",
        "ISO 10589 §8.2.5.2 e), §8.4.2.5.2",
        "tests/igp/test_repeated_hellos.py"
        "::test_a_network_behaves_as_if_each_hello_were_processed_in_full",
        work.isis_hellos,
        {f"{_ISIS}.adjacency.repetitions.Repetitions._circumstances": lambda *_: object()},
    ),
    FastPath(
        "IS-IS: fragment with other bandwidths",
        "protocols.isis.ted.fragment_patch.patched",
        "protocols.isis.ted.fragment_facts.read_fragment",
        "RFC 5305 §3",
        "tests/isis/test_fragment_patch.py"
        "::test_facts_patched_with_what_differs_equal_those_read_as_a_whole",
        work.isis_copies,
        {f"{_ISIS}.ted.builder.patched": _none},
    ),
    FastPath(
        "IS-IS: block of a router with other bandwidths",
        "protocols.isis.ted.blocks.patch",
        "protocols.isis.ted.blocks.build",
        "ISO 10589 §7.2.5, RFC 5305 §3",
        "tests/isis/test_ted.py::test_patched_blocks_equal_those_read_from_scratch",
        work.isis_bandwidth,
        {
            f"{_ISIS}.ted.builder.patched": _none,
            f"{_ISIS}.ted.node_fragments.NodeFragments.note_rows": _stale,
        },
    ),
    FastPath(
        "IS-IS: frames that are copies",
        "kernel.recent_pdus.RecentPdus",
        "kernel.isis_socket.IsisSockets._packet",
        "ISO 10589 §8.4.8",
        "tests/kernel/test_frames.py"
        "::test_frames_that_are_read_together_are_what_each_of_them_is_alone",
        work.frames,
        {"fared.kernel.isis_socket.IsisSockets._remember": _none},
    ),
    FastPath(
        "routes in a dump",
        "kernel.fibdump.FibReading._take_plain_route",
        "kernel.fibdump.FibReading._take_route",
        "rtnetlink(7), RTM_NEWROUTE",
        "tests/kernel/test_fibdump.py::test_any_route_is_read_as_by_its_attributes",
        work.dump,
        {"fared.kernel.fibdump.FibReading._take_plain_route": _false},
    ),
    FastPath(
        "BFD: repeated packets",
        "protocols.bfd.session.BfdSession.repeated",
        "protocols.bfd.session.BfdSession.receive",
        "RFC 5880 §6.8.6",
        "tests/bfd/test_session.py::test_a_repeated_packet_has_the_effect_of_one_that_is_decoded",
        work.bfd,
        {"fared.protocols.bfd.session.BfdSession.settled": property(_none, _none)},
    ),
    FastPath(
        "aggregation: packets of a train",
        "extensions.ina.slots.alike.Alike.first",
        "extensions.ina.slots.packet.decode_header",
        "draft-song-ina-00 §2.1",
        "tests/ina/test_alike.py::test_a_router_does_the_same_with_trains_as_with_single_packets",
        work.trains,
        {"fared.extensions.ina.slots.alike.Alike.first": lambda *_: (None, [])},
    ),
    FastPath(
        "plan: classes of equal pairs of links",
        "extensions.offline.plan.equal.classes_of_doubles",
        "extensions.offline.plan.sets.double_links",
        "what one failure of a class does, all of them do (docs/plan.md)",
        "tests/plan/test_equal.py::test_classes_give_the_rows_of_all_pairs_of_links",
        work.equal_pairs,
        {"fared.extensions.offline.plan.failures.classes_of_doubles": _all_pairs},
    ),
    FastPath(
        "BGP: choice among paths of known kinds",
        "protocols.bgp.rib.tables.BgpRib._choose",
        "protocols.bgp.rib.decision.choose",
        "decision, RFC 4271 §9.1",
        "tests/bgp_rib/test_choices.py::test_a_remembered_choice_is_that_of_the_decision",
        work.told_again,
        {"fared.protocols.bgp.rib.tables.BgpRib._choose": _choose_anew},
    ),
)


# -- measurement -------------------------------------------------------------------------------


class Plain(AbstractContextManager[None]):
    """Replaces functions, so that the plain rule answers."""

    def __init__(self, path: FastPath) -> None:
        self._patches = [patch(name, by, create=True) for name, by in path.without.items()]

    def __enter__(self) -> None:
        for one in self._patches:
            one.start()

    def __exit__(self, *_: object) -> None:
        for one in self._patches:
            one.stop()


def measure(path: FastPath, turn: Turn, pairs: int = PAIRS) -> Row:
    """Do the work in pairs; return a row.

    Nothing is collected between them: a collection leaves cold caches, and ``fared`` freezes what
    it has learnt.
    """
    spent: dict[bool, list[float]] = {False: [], True: []}
    gc.collect()
    gc.freeze()
    gc.disable()
    for number in range(pairs):
        for plain in (False, True) if number % 2 else (True, False):
            spent[plain].append(turn(Plain(path) if plain else nullcontext()))
    gc.enable()
    gc.unfreeze()
    ratio = statistics.median(map(operator.truediv, spent[True], spent[False]))
    return {
        "name": path.name,
        "ours": min(spent[False]),
        "other": min(spent[True]),
        "unit": "ms",
        "ratio": ratio,
        "goal": f">= {LEAST:g}x",
        "met": ratio >= LEAST,
    }


def rows(names: Collection[str] = (), pairs: int = PAIRS) -> Iterator[Row]:
    """One row for each fast path; ``names``: of these only."""
    chosen = [path for path in LEDGER if not names or path.name in names]
    chosen.sort(key=lambda path: path.work.__name__)
    for make, together in itertools.groupby(chosen, operator.attrgetter("work")):
        turn = make()
        yield from [measure(path, turn, pairs) for path in together]


def record(found: Collection[Row]) -> None:
    """Record the ratios for the page."""
    gains = {row["name"]: round(row["ratio"], 2) for row in found}
    text = json.dumps({"at": f"{datetime.now(UTC):%Y-%m-%d}", "gains": gains}, indent=1)
    RECORDED.write_text(text + "\n", "utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="fast paths; all by default")
    parser.add_argument("--pairs", type=int, default=PAIRS)
    parser.add_argument("--record", action="store_true", help="record the ratios of all")
    given = parser.parse_args()
    found = []
    for row in rows(given.names, given.pairs):
        found.append(row)
        print(
            f"{row['name']:46} {row['ours']:9.3f} {row['other']:9.3f} ms {row['ratio']:7.2f}x",
            flush=True,
        )
    if given.record and not given.names:
        record(found)

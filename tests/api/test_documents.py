"""The registry: each document has a view, the arguments of the view, and a schema."""

import inspect

import pytest

from fared.daemon.people.metrics import families
from fared.extensions.sim.levels import clos3_isis
from fared.extensions.sim.network import Network
from fared.extensions.sim.protocols import OspfBuilder
from fared.management.api.durations import Observed
from fared.management.api.metrics import Metrics
from fared.management.api.requests import REQUESTS
from fared.management.documents.declare import PROTOCOLS
from fared.management.documents.dispatch import view_of
from fared.management.documents.errors import CommandError
from fared.management.documents.registry import all_documents
from tests.api import documents, isis_documents
from tests.api.answers import run_view
from tests.api.conforms import faults
from tests.api.seen import seen_from

FIXTURES = documents.NAMED | documents.named(isis_documents)
SCHEMAS = {entry.format: entry.row for entry in all_documents()}
NEEDED = {"prefix": "10.0.2.0/24", "source": "L1", "destination": "L2"}


@pytest.mark.parametrize("entry", all_documents(), ids=lambda entry: entry.name)
def test_a_view_takes_the_arguments_of_its_entry(entry):
    parameters = list(inspect.signature(view_of(entry)).parameters.values())[1:]
    assert [p.name for p in parameters] == [argument.target for argument in entry.args]
    required = [p.name for p in parameters if p.default is p.empty]
    assert required == [argument.target for argument in entry.args if argument.required]


def test_names_are_unique():
    names = [entry.name for entry in all_documents()] + list(REQUESTS)
    assert len(set(names)) == len(names)
    assert not set(names) & set(PROTOCOLS)


@pytest.mark.parametrize("name", sorted(FIXTURES))
def test_the_fixture_documents_are_in_the_registry(name):
    found = FIXTURES[name]
    if found["format"] in SCHEMAS:
        assert not list(faults(found, SCHEMAS[found["format"]]))


@pytest.fixture(scope="module")
def context():
    """A leaf that runs both protocols."""
    fabric = clos3_isis(2, 2, network=Network(seed=1), beside=[OspfBuilder()])
    fabric.network.start_all()
    fabric.network.run_until_quiet(60)
    return seen_from(fabric, "L1")


@pytest.mark.parametrize("entry", all_documents(), ids=lambda entry: entry.name)
def test_the_document_of_a_view_conforms_to_its_schema(context, entry):
    if entry.proto not in ("", "ospf", "isis"):
        with pytest.raises(CommandError, match="does not run"):
            run_view(context, entry.command, {})
        return
    flags = [{}] + [{argument.name: True} for argument in entry.args if argument.kind == "flag"]
    for given in flags:
        document = run_view(context, entry.command, NEEDED | given)
        assert document["format"] == entry.format
        assert not list(faults(document, SCHEMAS[entry.format]))


def test_memory_tells_the_sizes_of_tables(context):
    """They equal the counts of other documents; with a protocol, they are of that protocol."""
    found = run_view(context, "show memory", {})
    assert 0 < found["resident"] <= found["peak_resident"]
    assert 0 < found["descriptors"] < found["client_descriptors"]
    sizes = {(t["table"], t["proto"], t["area"]): t["entries"] for t in found["tables"]}
    status = run_view(context, "show status", {})
    (area,), (level,) = status["ospf"]["areas"], status["isis"]["levels"]
    assert sizes["lsdb", "ospf", "0.0.0.0"] == area["lsas"]
    assert sizes["lsdb", "isis", "level-2"] == level["lsps"]
    assert sizes["ted", "isis", "level-2"] == 4
    assert sizes["routes", None, None] == status["fib"]["routes"]
    narrowed = run_view(context, "show memory", {"proto": "isis"})["tables"]
    assert {t["proto"] for t in narrowed} == {"isis"}


@pytest.mark.parametrize(
    ("command", "args", "message"),
    [
        ("explain", {}, "prefix must be text"),
        ("show routes", {"prefix": 7}, "prefix must be text"),
        ("show log", {"lines": "many"}, "lines must be a number"),
        ("show neighbors", {"proto": ["ospf"]}, "proto must be text"),
        ("show neighbors", {"proto": "rip"}, "is not a protocol"),
        ("show config", {"running": True, "saved": True}, "exclude each other"),
    ],
)
def test_arguments_are_checked_before_the_view_is_called(context, command, args, message):
    with pytest.raises(CommandError, match=message) as refusal:
        run_view(context, command, args)
    assert refusal.value.code == "bad-argument"


def test_every_metric_that_is_promised_is_exported(context):
    text = Metrics(lambda: families(context, {}), "0.2.0", Observed()).render().decode()
    promised = """build_info ready init_stage_seconds neighbors neighbor_transitions_total
        packets_total packet_errors_total lsdb_entries lsdb_checksum spf_runs_total
        spf_duration_seconds convergence_seconds routes fib_operations_total fib_drift_routes
        fib_resyncs_total link_capacity_bytes_per_second link_available_bytes_per_second
        link_utilization_ratio weight_changes_total weight_quantization_error_ratio
        announce_budget announce_share announce_threshold_ratio announce_averaging_seconds
        announce_deferred announcements_total
        granularity_routes spray_problem sprayed_packets_total sprayed_bytes_total
        adjacencies_ended_total weighted_routes weight_share_ratio fib_drift_total
        event_loop_lag_seconds config_last_reload_success config_unconfirmed_seconds""".split()  # noqa: SIM905
    for name in promised:
        assert f"# TYPE fared_{name} " in text, name
    assert 'fared_neighbors{area="0.0.0.0",proto="ospf",state="Full"} 2.0' in text
    assert "NaN" not in text

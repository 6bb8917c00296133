"""Whatever Redis answers, there are facts or none: nothing raises, and nothing grows."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fared.sonic.databases import NAMES, parse_databases
from fared.sonic.facts import read_facts, wanted_rows
from fared.sonic.inventory import MOST, Inventory, InventoryReader
from fared.sonic.traffic import FIELDS, QUIET, PortTraffic
from fared.sonic.values import MBIT, Values
from tests.sonic.redis_server import DATABASES

FILE = {"INSTANCES": {"redis": {"unix_socket_path": "/r.sock"}}, "DATABASES": DATABASES}
WORDS = st.one_of(
    st.none(),
    st.binary(max_size=80),
    st.sampled_from([b"enabled", b"disabled", b"up", b"down", b"N/A", b"100000", b"-1", b"9" * 31]),
)
INVENTORY = Inventory(
    ("Ethernet0", "Ethernet4"),
    {"PortChannel1": ("Ethernet0", "Ethernet4"), "PortChannel2": ("Ethernet8",)},
    (("Ethernet0", "INTERFACE"),),
)
DATA = parse_databases(json.dumps(FILE).encode())
ROWS = len(wanted_rows(INVENTORY, DATA))


def inventory_of(keys, values):
    reader = InventoryReader("|", values)
    reader.take(keys)
    return reader.inventory()


def facts_of(inventory, words):
    found = {}
    read_facts(inventory, [(word,) for word in words], Values(), found)
    return found


def read(traffic, rows, now, lags=None):
    traffic.take(rows, now, Values())
    traffic.settle(rows.keys(), lags or {})


def test_the_file_of_databases_is_read_and_its_socket_may_be_replaced():
    assert DATA["STATE_DB"].key("PORT_TABLE", "Ethernet0") == "PORT_TABLE|Ethernet0"
    assert (DATA["COUNTERS_DB"].number, DATA["COUNTERS_DB"].separator) == (2, ":")
    found = parse_databases(json.dumps(FILE).encode(), "/other.sock")
    assert {found[name].socket for name in NAMES} == {"/other.sock"}


@given(st.one_of(st.binary(max_size=200), st.text(max_size=200).map(str.encode)))
def test_any_file_of_databases_is_read_or_refused_with_a_reason(raw):
    with pytest.raises(ValueError, match=r"."):
        parse_databases(raw)


@given(
    st.lists(
        st.one_of(
            st.binary(max_size=80),
            st.builds(
                b"|".join,
                st.lists(
                    st.sampled_from([b"PORT", b"PORTCHANNEL_MEMBER", b"INTERFACE", b"x", b""])
                ),
            ),
        )
    )
)
def test_any_keys_give_an_inventory(keys):
    found = inventory_of(keys, Values())
    names = [*found.ports, *found.lags, *(m for some in found.lags.values() for m in some)]
    assert all(name and name.isprintable() for name in names)


def test_too_many_ports_are_left_out_and_counted():
    values = Values()
    keys = [b"PORT|Ethernet%d" % i for i in range(MOST + 7)]
    assert len(inventory_of(keys, values).ports) == MOST
    assert values.wrong == {"too-many": 7}


@given(st.lists(WORDS, min_size=ROWS, max_size=ROWS), st.integers(0, ROWS))
def test_any_values_give_facts(words, end):
    facts = facts_of(INVENTORY, words[:end])
    assert facts.keys() == {"Ethernet0", "Ethernet4", "PortChannel1", "PortChannel2"}
    for one in facts.values():
        assert one.speed is None or 0 < one.speed <= 2 * 1e8 * MBIT
        assert one.members is None or 0 <= one.members[0] <= one.members[1]


@given(st.integers(0, 2), st.sampled_from([b"0", b"1", b"2", None]))
def test_a_lag_has_the_capacity_of_its_enabled_members_and_is_down_below_min_links(on, least):
    status = [b"enabled" if i < on else b"disabled" for i in range(2)]
    rows = [*[b"100000", None, b"up"] * 2, least, b"up", *status]
    inventory = Inventory(("a", "b"), {"L": ("a", "b")})
    lag = facts_of(inventory, rows)["L"]
    assert lag.speed == (on * 1e5 * MBIT or None)
    assert lag.down is (on < max(1, int(least or 0)))
    assert lag.members == (on, 2)


def row(octets):
    return [str(octets).encode(), *[b"0"] * (len(FIELDS) - 1)]


@given(
    st.lists(st.floats(0.9, 1.1), min_size=3, max_size=40),
    st.floats(0.0, 0.99),
)
def test_a_constant_rate_is_measured_whenever_redis_was_written(steps, phase):
    """The counters are written once a second; a reading may see one twice, or miss none."""
    traffic, now, rates = PortTraffic(), 10.0, []
    for step in steps:
        now += step
        read(traffic, {"p": row(1000 * int(now + phase))}, now)
        if load := traffic.load("p"):
            rates.append(load.rate)
    assert all(0 < rate <= 2 * 1000 / 0.9 for rate in rates)


def test_a_port_that_sends_nothing_has_no_load_after_a_while():
    traffic = PortTraffic()
    for now in (0.0, 1.0, 2.0):
        read(traffic, {"p": row(5)}, now)
        assert traffic.load("p") is None
    read(traffic, {"p": row(5)}, QUIET + 1)
    assert traffic.load("p").rate == 0


def test_counters_that_were_set_back_have_no_load():
    traffic = PortTraffic()
    for now, octets in ((0.0, 5000), (1.0, 6000), (2.0, 10)):
        read(traffic, {"p": row(octets)}, now)
    assert traffic.load("p") is None


@given(st.lists(WORDS, max_size=len(FIELDS) + 1))
def test_any_counters_are_taken(words):
    traffic = PortTraffic()
    for now in (1.0, 2.0):
        read(traffic, {"p": words}, now, {"L": ("p", "q"), "M": ()})
    assert traffic.load("L") is traffic.load("M") is None
    assert not traffic.counts("L")

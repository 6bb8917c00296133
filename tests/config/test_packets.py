"""The settings that say which packets leave the path of their flow."""

import pytest

from fared.config import ConfigErrors, load_text
from fared.core.ids import parse_prefix

BASE = "ospf: {areas: {0: {interfaces: {lo: {passive: true}}}}}\n"


def adaptive(text: str) -> str:
    return f"{BASE}adaptive: {{{text}}}\n"


def test_by_default_packets_follow_their_flow():
    found = load_text(BASE).adaptive
    assert (found.granularity, found.packet_prefixes, found.flowlet_gap) == ("flow", [], 0.02)


def test_packets_are_selected_by_destination_dscp_and_ports():
    found = load_text(
        adaptive(
            "granularity: packet, packet-prefixes: [10.0.0.0/8, 2001:db8::/32],"
            " packet-match: {dscp: [26], udp-ports: [4791], tcp-ports: [5001, 5002]}"
        )
    ).adaptive
    assert found.packet_prefixes == [parse_prefix("10.0.0.0/8"), parse_prefix("2001:db8::/32")]
    match = found.packet_match
    assert (match.dscp, match.udp_ports, match.tcp_ports) == ([26], [4791], [5001, 5002])


@pytest.mark.parametrize(
    ("text", "path", "wanted"),
    [
        ("granularity: packets", "adaptive.granularity", "'flow', 'flowlet' or 'packet'"),
        ("flowlet-gap: 1ms", "adaptive.flowlet-gap", "10ms to 1h"),
        ("packet-prefixes: [10.0.0.0/33]", "adaptive.packet-prefixes[0]", "a prefix"),
        ("packet-match: {dscp: [64]}", "adaptive.packet-match.dscp[0]", "0..63"),
        ("packet-match: {udp-ports: [0]}", "adaptive.packet-match.udp-ports[0]", "1..65535"),
        ("packet-match: {tcp-ports: 80}", "adaptive.packet-match.tcp-ports", "a list"),
        ("packet-match: {ports: [80]}", "adaptive.packet-match.ports", "unknown key"),
    ],
)
def test_a_wrong_value_is_refused_with_its_path(text: str, path: str, wanted: str):
    with pytest.raises(ConfigErrors) as refused:
        load_text(adaptive(text))
    assert f"{path}: " in str(refused.value)
    assert wanted in str(refused.value)


def test_packets_are_sprayed_over_the_main_table_only():
    with pytest.raises(ConfigErrors, match="table: main, since packets are sprayed"):
        load_text(adaptive("granularity: flowlet") + "fib: {table: 100}\n")

"""The configuration file: what is accepted, and how everything else is refused."""

import itertools
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fared.config import Config, ConfigError, ConfigErrors, json_schema, load, load_text

GBIT = 1e9 / 8


def errors_of(text: str) -> list[ConfigError]:
    with pytest.raises(ConfigErrors) as caught:
        load_text(text, file="fared.yaml")
    return list(caught.value.errors)


def outcome(text: str) -> tuple[ConfigError, ...]:
    try:
        load_text(text)
    except ConfigErrors as refused:
        return refused.errors
    return ()


def only_error(text: str) -> ConfigError:
    errors = errors_of(text)
    assert len(errors) == 1, errors
    return errors[0]


def test_an_empty_file_is_all_defaults():
    """A file need not say anything; each default is the documented one."""
    config = load_text("# nothing\n")
    assert config == Config()
    assert config.router_id is None
    assert config.hostname is None
    assert config.ospf is None
    assert (config.fib.protocol, config.fib.metric, config.fib.table) == (201, 20, 254)
    assert config.fib.on_exit == "withdraw"
    assert config.api.socket == "/run/fared/fared.sock"
    assert str(config.api.http) == "127.0.0.1:9547"
    assert config.adaptive.metric == "capacity"
    assert config.adaptive.announce_threshold == 0.03


def test_values_are_converted_to_the_units_of_the_engines():
    """Bits/s become bytes/s, durations seconds, percentages ratios, ids integers."""
    config = load_text("""
router-id: 10.255.0.1
interfaces:
  swp1: {bandwidth: 400G}
  swp2: {bandwidth: 25000000}
  swp3: {bandwidth: auto}
ospf:
  areas: {1: {}}
  spf: {short-delay: 75ms, holddown: 3s}
adaptive: {time-constant: 1m, dead-band: 7.5%}
api: {http: off}
""")
    assert config.router_id == 0x0AFF0001
    assert config.interface_bandwidth("swp1") == 400 * GBIT
    assert config.interface_bandwidth("swp2") == 25e6 / 8
    assert config.interface_bandwidth("swp3") is None
    assert config.ospf is not None
    assert list(config.ospf.areas) == [1]
    assert (config.ospf.spf.short_delay, config.ospf.spf.holddown) == (0.075, 3.0)
    assert config.adaptive.time_constant == 60
    assert config.adaptive.dead_band == 0.075
    assert config.api.http is None


def test_the_most_specific_interface_entry_applies_alone():
    """An exact name wins over globs, a longer glob over a shorter; nothing is merged."""
    config = load_text("""
interfaces:
  "*": {bandwidth: 10G}
  "swp*": {bandwidth: 100G}
  "swp1?": {bandwidth: 200G}
  swp12: {}
ospf:
  areas:
    0: {interfaces: {"swp*": {cost: 20, hello-interval: 2}, swp3: {cost: 30}}}
    1: {interfaces: {swp4: , lo: {passive: true}}}
""")
    bandwidths = [config.interface_bandwidth(name) for name in ("eth0", "swp2", "swp11", "swp12")]
    assert bandwidths == [10 * GBIT, 100 * GBIT, 200 * GBIT, None]
    area, swp3 = config.ospf_interface("swp3")
    assert (area, swp3.cost, swp3.hello_interval) == (0, 30, 1)
    assert config.ospf_interface("swp4")[0] == 1
    assert config.ospf_interface("lo")[1].passive
    assert config.ospf_interface("eth0") is None


def test_the_dead_interval_follows_the_hello_interval():
    """Only the hello interval given: a neighbor is dead after four."""
    config = load_text("ospf: {areas: {0: {interfaces: {a: {hello-interval: 5s}, b: {}}}}}")
    assert config.ospf_interface("a")[1].dead_interval == 20
    assert config.ospf_interface("b")[1].dead_interval == 4


def test_json_is_accepted_with_tabs_and_exponents():
    """JSON is valid YAML here, however it was written."""
    document = {"interfaces": {"swp1": {"bandwidth": 4e11}}, "fib": {"metric": 7}}
    text = json.dumps(document, indent="\t").replace("400000000000.0", "4e+11")
    config = load_text(text)
    assert config.interface_bandwidth("swp1") == 400 * GBIT
    assert config.fib.metric == 7


def test_anchors_and_merges_work():
    """One set of interface settings can be used in many places."""
    config = load_text("""
ospf:
  areas:
    0:
      interfaces:
        swp1: &fabric {cost: 7, hello-interval: 2}
        swp2: *fabric
        swp3: {<<: *fabric, cost: 9}
""")
    assert config.ospf_interface("swp2")[1].cost == 7
    assert config.ospf_interface("swp3")[1].cost == 9
    assert config.ospf_interface("swp3")[1].dead_interval == 8


def test_a_printed_configuration_is_a_configuration():
    """What the daemon shows can be loaded again and means the same."""
    config = load_text("""
router-id: 10.0.0.1
interfaces: {swp1: {bandwidth: 123456789}, swp2: {bandwidth: 2.5G}}
ospf: {areas: {0: {interfaces: {lo: {passive: true}, "e*": {retransmit-interval: 2.5}}},
  5: {type: stub}}}
adaptive: {floor: 0.5%, time-constant: 1500us}
fib: {table: 100}
api: {http: "[::1]:80"}
""")
    assert load_text(json.dumps(config.document())) == config


def test_every_error_is_reported_at_once_with_its_place():
    """An operator repairs a file in one round: each error has line, column, path and advice."""
    text = """\
router-id: 10.255.0
hostnam: leaf1
ospf:
  areas:
    0.0.0.0:
      interfaces:
        swp1: {hello-intervall: 1, cost: 0}
        swp2: {hello-interval: 5, dead-interval: 5}
adaptive: {metric: speed, floor: 200%}
"""
    found = errors_of(text)
    places = [(e.line, e.column, e.path) for e in found]
    assert places == [
        (1, 12, "router-id"),
        (2, 1, "hostnam"),
        (7, 16, "ospf.areas[0.0.0.0].interfaces.swp1.hello-intervall"),
        (7, 42, "ospf.areas[0.0.0.0].interfaces.swp1.cost"),
        (8, 50, "ospf.areas[0.0.0.0].interfaces.swp2.dead-interval"),
        (9, 20, "adaptive.metric"),
        (9, 34, "adaptive.floor"),
    ]
    assert found[1].nearest == "hostname"
    assert found[2].nearest == "hello-interval"
    assert (found[3].expected, found[3].got) == ("an integer 1..65535", "0")
    assert found[4].expected == "more than hello-interval (5)"
    assert str(found[1]).startswith("fared.yaml:2:1: hostnam: unknown key ")
    assert str(found[1]).endswith("did you mean 'hostname'?")


@pytest.mark.parametrize(
    ("text", "path", "word"),
    [
        ("isis:", "isis.net", "49.0001.0102.5500.0001.00"),
        ("isis: {level: level-2}", "isis.net", "49.0001.0102.5500.0001.00"),
        ("isis: {net: 49.0001}", "isis.net[0]", "49.0001.0102.5500.0001.00"),
        ("isis: {net: 49.0001.0102.5500.0001.01}", "isis.net[0]", "49.0001"),
        (
            "isis: {net: [49.0001.0102.5500.0001.00, 49.0002.0102.5500.0002.00]}",
            "isis.net",
            "same system id",
        ),
        ("isis: {net: 49.0102.5500.0001.00, level: level-3}", "isis.level", "level-1-2"),
        ("isis: {net: 49.0102.5500.0001.00, lsp-refresh: 1300}", "isis.lsp-refresh", "lifetime"),
        (
            "isis: {net: 49.0102.5500.0001.00, address-families: [ipv4], multi-topology: true}",
            "isis.multi-topology",
            "both families",
        ),
        (
            "isis: {net: 49.0102.5500.0001.00, interfaces: {a: {metric: 16777215}}}",
            "isis.interfaces.a.metric",
            "16777214",
        ),
        (
            "isis: {net: 49.0102.5500.0001.00, level-2: {authentication: {algorithm: md5}}}",
            "isis.level-2.authentication.algorithm",
            "hmac-md5",
        ),
        (
            "ospf: {areas: {0: {interfaces: {a: {network-type: nbma}}}}}",
            "ospf.areas[0].interfaces.a.network-type",
            "broadcast",
        ),
        (
            "ospf: {areas: {0: {interfaces: {a: {priority: 256}}}}}",
            "ospf.areas[0].interfaces.a.priority",
            "0..255",
        ),
        (
            "ospf: {areas: {0: {interfaces: {a: {authentication: {key-id: 1}}}}}}",
            "ospf.areas[0].interfaces.a.authentication.algorithm",
            "hmac-sha-256",
        ),
        ("ospf: {areas: {0.0.0.0: {type: stub}}}", "ospf.areas[0.0.0.0].type", "backbone"),
        ("ospf: {areas: {1.2.3: {}}}", "ospf.areas[1.2.3]", "area id"),
        ("ospf: {areas: {-1: {}}}", "ospf.areas[-1]", "area id"),
        ("ospf: {areas: {0: , 0.0.0.0: }}", "ospf.areas[0.0.0.0]", "each area once"),
        ("ospf: {max-paths: 0}", "ospf.max-paths", "1..1024"),
        ("ospf: {spf: {holddown: 100ms}}", "ospf.spf.holddown", "time-to-learn"),
        ("ospf: {spf: {long-delay: 1ms}}", "ospf.spf.long-delay", "short-delay"),
        ("ospf: {flooding: {reduction: spine}}", "ospf.flooding.reduction", "none"),
        ("ospf: {flooding: {delay: 2s}}", "ospf.flooding.delay", "10ms to 1s"),
        ("ospf: {stub-router: 1}", "ospf.stub-router", "true or false"),
        ("interfaces: {averyveryverylongname: {}}", "interfaces.averyveryverylongname", "15"),
        ("interfaces: {swp1: {bandwidth: 0}}", "interfaces.swp1.bandwidth", "bits/s"),
        ("interfaces: {swp1: {bandwidth: true}}", "interfaces.swp1.bandwidth", "bits/s"),
        ("interfaces: {swp1: {bandwidth: .nan}}", "interfaces.swp1.bandwidth", "bits/s"),
        ("interfaces: [swp1]", "interfaces", "a mapping"),
        ("fib: {protocol: 2}", "fib.protocol", "5..255"),
        ("fib: {protocol: '201'}", "fib.protocol", "5..255"),
        ("fib: {table: local}", "fib.table", "main"),
        ("ospf: {areas: {1: {summary: false}}}", "ospf.areas[1].summary", "type stub"),
        ("ospf: {areas: {1: {ranges: {10.1: {}}}}}", "ospf.areas[1].ranges[10.1]", "prefix"),
        ("ospf: {redistribute: static}", "ospf.redistribute", "a mapping"),
        (
            "ospf: {redistribute: {rip: {}}}",
            "ospf.redistribute.rip",
            "bgp, connected, default, isis",
        ),
        (
            "ospf: {redistribute: {static: {metric-type: 3}}}",
            "ospf.redistribute.static.metric-type",
            "1..2",
        ),
        (
            "ospf: {redistribute: {connected: {metric: 16777215}}}",
            "ospf.redistribute.connected.metric",
            "0..16777214",
        ),
        (
            "ospf: {redistribute: {static: {prefixes: 10.0.0.0/8}}}",
            "ospf.redistribute.static.prefixes",
            "a list",
        ),
        (
            "ospf: {redistribute: {static: {prefixes: [10.0.0.0/8, 10]}}}",
            "ospf.redistribute.static.prefixes[1]",
            "an IPv4 prefix",
        ),
        (
            "ospf: {redistribute: {default: {prefixes: []}}}",
            "ospf.redistribute.default.prefixes",
            "always",
        ),
        ("api: {http: 9547}", "api.http", "127.0.0.1:9547"),
        ("api: {socket: ''}", "api.socket", "not empty"),
        ("router-id: 0.0.0.0", "router-id", "a router id"),
        ("hostname: 5", "hostname", "text"),
        ("state-directory: state", "state-directory", "absolute path"),
        ("adaptive: {announce-threshold: 3}", "adaptive.announce-threshold", "3%"),
        ("adaptive: {announce-budget: 0}", "adaptive.announce-budget", "500/s"),
        ("adaptive: {announce-budget: 500/min}", "adaptive.announce-budget", "500/s"),
        ("adaptive: 5", "adaptive", "a mapping"),
        ("- 1", "", "a mapping"),
        ("fib: {5: 1}", "fib[5]", "one of buckets, fpm, group-type"),
        ("ospf: {areas: {true: {}}}", "ospf.areas[True]", "an area id"),
    ],
)
def test_invalid_values_are_refused_with_their_place(text, path, word):
    """Each refusal names the place in the document and what belongs there."""
    error = only_error(text)
    assert error.path == path
    assert word in str(error)


@pytest.mark.parametrize(
    ("text", "line", "word"),
    [
        ("a: [", 2, "broken YAML"),
        ("hostname: a\nhostname: b", 2, "only once"),
        ("ospf: {}\n---\nospf: {}", 2, "broken YAML"),
        ("? [1]\n: 2", 1, "broken YAML"),
        ("fib: !!python/object:os.system {}", 1, "broken YAML"),
        ("hostname: \x07", 1, "printable"),
        ("[" * 100_000, 1, "at most 32 levels"),
        ("ospf: &a {areas: *a}", 1, "finite document"),
        ("\n".join(["fib: &a0 {}", *(f"a{i}: &a{i} [{f'*a{i - 1},' * 9}]" for i in range(1, 9))]),
         7, "at most 500,000 entries"),
        ("a: &a {x: {<<: *a}}", 1, "finite document"),
        ("a: {<<: 5}", 1, "broken YAML"),
        ("a: *b", 1, "broken YAML"),
        ("a: !!set {b}", 1, "broken YAML"),
    ],
)  # fmt: skip
def test_yaml_syntax_errors_are_reported_with_their_line(text, line, word):
    """Broken, repeated, endless and hostile documents are refused without harm."""
    error = errors_of(text)[0]
    assert word in str(error)
    assert error.line == line


def test_overlapping_globs_of_different_areas_are_refused():
    """Where two areas could claim one interface by a glob, neither reading is guessed."""
    for first, second in [("swp*", "s*1"), ("swp[1-4]", "swp[4-9]"), ("e?h0", "e*"), ("*", "*")]:
        one, other = (f'{{interfaces: {{"{name}": }}}}' for name in (first, second))
        text = f"ospf: {{areas: {{0: {one},\n 1: {other}}}}}"
        error = only_error(text)
        assert error.line == 2
        assert error.path == f"ospf.areas[1].interfaces[{second}]"
        assert "overlaps" in str(error)
    for first, second in [
        ("swp*", "eth*"),
        ("swp[1-4]", "swp[!1-4]"),
        ("swp?", "swp??"),
        ("swp*", "swp1"),
    ]:
        one, other = (f'{{interfaces: {{"{name}": }}}}' for name in (first, second))
        load_text(f"ospf: {{areas: {{0: {one}, 1: {other}}}}}")


def test_an_interface_is_in_one_area():
    """The same name in two areas is refused at its second place."""
    error = only_error("ospf: {areas: {0: {interfaces: {a: }},\n 1: {interfaces: {a: }}}}")
    assert (error.line, error.path) == (2, "ospf.areas[1].interfaces.a")
    assert "area 0.0.0.0" in error.got


def test_a_file_that_cannot_be_read_is_an_error_of_the_file(tmp_path: Path):
    """Missing and binary files are reported like any other mistake."""
    with pytest.raises(ConfigErrors, match=r"missing\.yaml:1:1: expected a readable file"):
        load(tmp_path / "missing.yaml")
    binary = tmp_path / "binary.yaml"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigErrors, match="expected a readable file"):
        load(binary)


_SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
_KEYS = st.sampled_from(
    ["ospf", "areas", "0", "interfaces", "swp*", "fib", "api", "http", "spf", "adaptive", "cost"]
) | st.text(max_size=5)


@given(
    st.recursive(
        _SCALARS,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=4),
    )
)
def test_no_document_breaks_the_loader(document):
    """Whatever is in the file, the answer is a Config or ConfigErrors."""
    errors = outcome(json.dumps(document))
    assert all(e.line >= 1 and e.column >= 1 and e.expected for e in errors)


@given(st.text(max_size=40))
def test_no_text_breaks_the_loader(text):
    """Nor does text that is no document."""
    outcome(text)


def test_the_schema_describes_the_file_as_written():
    """Editors get kebab-case keys, no additional ones, and defaults in the form of the file."""
    schema = json_schema()
    assert schema["additionalProperties"] is False
    assert schema["$defs"]["Api"]["properties"]["http"]["default"] == "127.0.0.1:9547"
    assert schema["$defs"]["SpfDelays"]["properties"]["short-delay"]["default"] == "50ms"
    names = itertools.chain.from_iterable(d["properties"] for d in schema["$defs"].values())
    assert not [name for name in names if "_" in name]


@pytest.mark.parametrize(
    ("written", "seconds"), [("100ms", 0.1), ("10ms", 0.01), ("1h", 3600.0), (2, 2.0)]
)
def test_the_measuring_period_comes_from_the_file(written, seconds):
    adaptive = load_text(f"adaptive: {{measure-period: {written}}}").adaptive
    assert adaptive.measure_period == seconds
    assert load_text("{}").adaptive.measure_period == 1.0


@pytest.mark.parametrize("written", ["0s", "9ms", "2h", "often", "-1"])
def test_an_invalid_measuring_period_is_refused(written):
    (error,) = errors_of(f"adaptive: {{measure-period: {written}}}")
    assert (error.path, error.expected) == ("adaptive.measure-period", "10ms to 1h")

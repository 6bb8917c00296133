"""Accepted entries that are probably not meant, and what errors advise."""

import socket

import pytest

from fared.config import ConfigErrors, load, load_runnable
from fared.config.here import absent, compared, has_address
from fared.core.links import Link

ONE = "ospf: {areas: {0: {interfaces: {swp1: {}}}}}\n"


def interface(settings: str) -> str:
    return f"ospf: {{areas: {{0: {{interfaces: {{swp1: {{{settings}}}}}}}}}}}\n"


def into_ospf(source: str) -> str:
    return ONE.replace("}}}}}", f"}}}}}}}}, redistribute: {{{source}}}}}")


ISIS_TOO = (
    "isis: {net: 49.0001.0102.5500.0001.00, redistribute: {ospf: }, interfaces: {swp2: {}}}\n"
)


def warned(tmp_path, text: str, **how) -> list[str]:
    file = tmp_path / "fared.yaml"
    file.write_text(f"router-id: 127.0.0.1\n{text}")
    found = load_runnable(file, **how).warnings
    return [f"{each.line}: {each.path}: {each.message}" for each in found]


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        (interface("bfd: {multiplier: 3}"), "BFD is off here: add 'enabled: true'"),
        (
            interface("bfd: {enabled: true, min-tx: 100}"),
            "these are 100 seconds: 100ms are milliseconds",
        ),
        (
            ONE + "isis: {net: 49.0001.0102.5500.0001.00}\n",
            "no interface: IS-IS runs on none",
        ),
        ("ospf: {areas: {0: {interfaces: {swp1: {}}}, 1: {}}}\n", "OSPF does not run in this area"),
        (
            ONE.replace("}}}}}", "}}}}, redistribute: {static: {prefixes: [10.0.0.1/24]}}}"),
            "bits of a host are ignored: 10.0.0.0/24 is used",
        ),
        (into_ospf("isis: {}"), "isis does not run here: nothing is redistributed"),
        (
            into_ospf("isis: {tag: 0}") + ISIS_TOO,
            "without a tag no border recognizes routes of isis",
        ),
        (
            into_ospf("isis: {tag: 7}, static: {tag: 7}") + ISIS_TOO,
            "static has this tag, too: borders take its routes for those of isis",
        ),
        (ONE + "api: {http: '0.0.0.0:9547'}\n", "everybody who reaches this machine"),
        (ONE + "api: {http: '[::]:9547'}\n", "everybody who reaches this machine"),
    ],
)
def test_a_trap_is_accepted_with_a_warning(tmp_path, text, warning):
    (found,) = warned(tmp_path, text)
    assert warning in found


@pytest.mark.parametrize(
    "text",
    [
        ONE,
        interface("bfd: {enabled: false, multiplier: 3}"),
        interface("bfd: {enabled: true, min-tx: 100ms}"),
        interface("bfd: {enabled: true, min-tx: 1}"),
        ONE.replace("}}}}}", "}}}}, redistribute: {static: {prefixes: [10.0.0.0/24]}}}"),
        into_ospf("isis: {}") + ISIS_TOO,
        into_ospf("isis: {tag: 7}, static: {tag: 8}") + ISIS_TOO,
        into_ospf("isis: {filter: f}") + ISIS_TOO + "filters: {f: [deny tag 7, permit any]}\n",
        ONE + "api: {http: '192.0.2.1:9547'}\n",
        ONE + "bfd: {profiles: {fast: {min-tx: 50ms}}}\n",
    ],
)
def test_what_is_meant_is_not_warned_of(tmp_path, text):
    assert warned(tmp_path, text) == []


@pytest.fixture
def machine(monkeypatch):
    """A machine with a loopback, two ports and one address."""
    names = [(1, "lo"), (2, "swp1"), (3, "swp2")]
    monkeypatch.setattr(socket, "if_nameindex", lambda: names)
    monkeypatch.setattr("fared.config.here.has_address", lambda address: address == "127.0.0.1")


@pytest.mark.usefixtures("machine")
@pytest.mark.parametrize(
    ("names", "warnings"),
    [
        ("swp1: {}, 'swp*': {}", []),
        ("swp1: {}, swp9: {}", ["no such interface: it has lo, swp1, swp2"]),
        ("swp1: {}, 'eth*': {}", ["no interface of this machine matches: it has lo, swp1, swp2"]),
        (
            "lo: {}, eth0: {}, 'et*': {}",
            ["this machine has none of the interfaces of the file: it has lo, swp1, swp2"],
        ),
    ],
)
def test_a_check_names_interfaces_that_this_machine_does_not_have(tmp_path, names, warnings):
    """If it has none of them, the file is another machine's: that is said once."""
    text = f"ospf: {{areas: {{0: {{interfaces: {{{names}}}}}}}}}\n"
    found = warned(tmp_path, text, compare=absent)
    assert len(found) == len(warnings)
    assert all(line.endswith(warning) for line, warning in zip(found, warnings, strict=True))


@pytest.mark.usefixtures("machine")
def test_a_check_names_a_router_id_that_no_interface_has(tmp_path):
    file = tmp_path / "fared.yaml"
    file.write_text("router-id: 10.255.0.77\n" + ONE)
    (warning,) = load_runnable(file, compare=absent).warnings
    assert (warning.line, warning.path) == (1, "router-id")
    assert "no interface of this machine has this address" in warning.message


def test_the_kernel_knows_which_addresses_are_its_own():
    assert has_address("127.0.0.1")
    assert not has_address("192.0.2.77")


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("ospf:\n\tareas: {}\n", "a tab: indent with spaces"),
        ("ospf:\n  areas:\n    0:\n      interfaces:\n        *: {}\n", 'needs quotes: "*"'),
        ("ospf: {interfaces: {swp1: {}}}\n", "it is a key of ospf.areas.AREA"),
        ("ospf: {hello-interval: 3}\n", "it is a key of ospf.areas.AREA.interfaces.INTERFACE"),
        (interface("helo_interval: 3"), "helo_interval\"; did you mean 'hello-interval'?"),
        (interface("network-type: p2p"), "did you mean 'point-to-point'?"),
        (
            interface("authentication: {algorithm: sha256, key-id: 1, key: abc}"),
            "got \"sha256\"; did you mean 'hmac-sha-256'?",
        ),
        (ONE.replace("}}}}}", "}}}}, redistribute: [static]}"), "(write {static: {}})"),
        (
            ONE.replace("}}}}}", "}}}}, redistribute: {static: {prefixes: [0.0.0.0/0]}}}"),
            "a default route needs filter:, or default: of ospf and isis",
        ),
    ],
)
def test_an_error_says_what_to_do(tmp_path, text, advice):
    file = tmp_path / "fared.yaml"
    file.write_text(f"router-id: 10.255.0.1\n{text}")
    with pytest.raises(ConfigErrors) as refused:
        load_runnable(file)
    assert advice in str(refused.value)


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("frr version 8.4\n!\ninterface swp1\n ip ospf area 0\nrouter ospf\n", "FRR"),
        ("router id 10.0.0.1;\nprotocol ospf v2 {\n area 0 { };\n}\n", "BIRD"),
        ("set protocols ospf area 0 interface et-0/0/0\n", "Junos"),
    ],
)
def test_the_configuration_of_another_router_is_recognized(tmp_path, text, other):
    file = tmp_path / "other.conf"
    file.write_text(text)
    with pytest.raises(
        ConfigErrors, match=f"a configuration of fared, in YAML, got one of {other}"
    ):
        load_runnable(file)


def test_a_key_in_the_place_of_an_algorithm_is_not_shown(tmp_path):
    file = tmp_path / "fared.yaml"
    file.write_text("router-id: 10.255.0.1\n" + interface("authentication: {algorithm: s3cret}"))
    with pytest.raises(ConfigErrors) as refused:
        load_runnable(file)
    assert "s3cret" not in str(refused.value)


def test_a_section_without_contents_is_no_fault_of_the_check(tmp_path):
    """YAML reads ``areas:`` with nothing below it as null."""
    assert warned(tmp_path, "ospf:\n  areas:\n") == []


@pytest.mark.usefixtures("machine")
@pytest.mark.parametrize(
    ("names", "place"),
    [
        ("'swp*': {}", "ospf.areas[0].interfaces[swp*]"),
        ("lo: {passive: true}, '*1': {}, 'swp[2-9]': {}", "ospf.areas[0].interfaces[*1]"),
        ("'swp*': {passive: true}", None),
        ("'swp*': {}, swp1: {}", None),
        ("'swp[2-9]': {}", None),
    ],
)
def test_a_pattern_that_takes_in_the_management_network_is_told(tmp_path, names, place):
    """It is the one with a default route of people or DHCP; who enters its name means it."""
    text = f"ospf: {{areas: {{0: {{interfaces: {{{names}}}}}}}}}\n"
    found = warned(tmp_path, text, compare=compared({"swp1"}, here=False))
    assert [line.split(": ")[1] for line in found] == ([] if place is None else [place])
    assert all("matches swp1, which has the default route" in line for line in found)


@pytest.mark.parametrize(
    ("names", "kind", "told"),
    [
        ("'e*': {}", "sonic", {"eth0"}),
        ("'*': {}", "sonic", {"eth0", "docker0"}),
        ("'*': {}, eth0: {}", "sonic", {"docker0"}),
        ("'*': {}", "kernel", set()),
        ("'Ethernet*': {}", "sonic", set()),
    ],
)
def test_a_pattern_that_matches_a_management_port_of_sonic_is_told(
    tmp_path, monkeypatch, names, kind, told
):
    here = [(1, "lo"), (2, "eth0"), (3, "docker0"), (4, "Ethernet0")]
    monkeypatch.setattr(socket, "if_nameindex", lambda: here)
    text = f"platform: {{kind: {kind}}}\nospf: {{areas: {{0: {{interfaces: {{{names}}}}}}}}}\n"
    found = warned(tmp_path, text, compare=compared((), here=False))
    assert all("a management port of SONiC: no protocol runs there" in line for line in found)
    assert {line.split(" matches ")[1].split(",")[0] for line in found} == told


@pytest.mark.parametrize(
    "section",
    [
        "ospf: {areas: {0: {interfaces: {KEY: {}}}}}",
        "isis: {net: 49.0001.0102.5500.0001.00, interfaces: {KEY: {}}}",
        "bgp: {as: 65001, neighbors: {KEY: {remote-as: external}}}",
        "bgp: {as: 65001, networks: [KEY]}",
    ],
)
@pytest.mark.parametrize(("key", "runs"), [("'eth*'", [False, True]), ("eth0", [True, True])])
def test_no_glob_takes_in_a_management_port(section, key, runs):
    config = load(section.replace("KEY", key))
    (protocol,) = config.protocols.values()
    found = [
        protocol.on(Link(2, "eth0", True, 1500, management=is_one)) for is_one in (True, False)
    ]
    assert [one is not None for one in found] == runs

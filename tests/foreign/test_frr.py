"""``frr.conf`` becomes a configuration of fared; each line that is not taken is named."""

from __future__ import annotations

from ipaddress import ip_interface

import pytest

from fared.config import load_text
from fared.config.model import Config
from fared.core.ids import dotted
from fared.extensions.foreign.draft import Draft
from fared.extensions.foreign.frr.lines import interface_addresses, read_statements
from fared.extensions.foreign.frr.read import read_frr
from fared.extensions.foreign.machine import Machine, MachineLink
from fared.extensions.foreign.write import write_draft

LINK = """
interface swp1
 ip ospf area 0
 ip ospf cost 10
"""


def imported(text: str, machine: Machine | None = None) -> tuple[Config, Draft]:
    draft = read_frr(text, machine or {})
    return load_text(draft.settle(lambda: write_draft(draft, "frr.conf", "FRR"))), draft


def document(text: str, machine: Machine | None = None) -> dict:
    draft = read_frr(text, machine or {})
    draft.settle(lambda: write_draft(draft, "frr.conf", "FRR"))
    return draft.tree


def port(text: str, name: str = "swp1") -> dict:
    found: dict = document(text)["ospf"]["areas"]["0.0.0.0"]["interfaces"][name]
    return found


def left(draft: Draft) -> dict[int, str]:
    return {remark.source.number: remark.reason for remark in draft.left}


def test_what_frr_and_fared_have_different_defaults_of_is_written():
    assert port(f"{LINK}router ospf\n") == {
        "cost": 10,
        "network-type": "broadcast",
        "hello-interval": 10,
    }
    isis = "interface swp1\n ip router isis F\nrouter isis F\n net 49.0001.0102.5500.0001.00\n"
    found = document(isis)["isis"]
    assert found["level"] == "level-1-2"
    assert found["address-families"] == ["ipv4"]
    assert found["interfaces"]["swp1"] == {
        "network-type": "broadcast",
        "hello-interval": 3,
        "hello-multiplier": 10,
    }


def test_the_dead_interval_follows_the_hello_interval_unless_it_is_given():
    config, _ = imported(f"{LINK} ip ospf hello-interval 2\nrouter ospf\n")
    assert config.ospf_interface("swp1")[1].dead_interval == 8
    config, _ = imported(f"{LINK} ip ospf dead-interval 60\nrouter ospf\n")
    assert config.ospf_interface("swp1")[1].dead_interval == 60


def test_both_spellings_of_an_area():
    """``network`` selects interfaces by their addresses, also by those of this machine."""
    text = """
interface swp1
 ip address 10.0.0.1/31
interface swp2
 ip address 10.1.0.1/31
router ospf
 network 10.0.0.0/8 area 0
 network 10.1.0.0/16 area 1
 network 172.16.0.0/12 area 2
"""
    areas = document(text)["ospf"]["areas"]
    assert {area: list(found["interfaces"]) for area, found in areas.items()} == {
        "0.0.0.0": ["swp1"],
        "0.0.0.1": ["swp2"],
    }
    _, draft = imported(text)
    assert "has an address in it" in left(draft)[9]
    here = {"eth7": MachineLink((ip_interface("172.16.0.1/24"),), None)}
    assert list(document(text, here)["ospf"]["areas"]["0.0.0.2"]["interfaces"]) == ["eth7"]


@pytest.mark.parametrize(
    ("bandwidth", "speed", "cost"),
    [(" bandwidth 25000\n", None, 4), ("", 400e9, 1), ("", 10e9, 10), ("", None, None)],
)
def test_a_cost_that_is_not_given_is_computed_from_the_speed_as_frr_does(bandwidth, speed, cost):
    text = f"interface swp1\n ip ospf area 0\n{bandwidth}router ospf\n"
    here = {"swp1": MachineLink((), speed)}
    draft = read_frr(text, here)
    assert draft.get(("ospf", "areas", "0.0.0.0", "interfaces", "swp1", "cost")) == cost
    assert bool(draft.differs) == (cost is None)


def test_passive_interfaces_of_the_router_and_of_the_interface():
    text = """
interface lo
 ip ospf area 0
interface swp1
 ip ospf area 0
interface swp2
 ip ospf area 0
interface swp3
 ip ospf area 0
 no ip ospf passive
router ospf
 passive-interface default
 no passive-interface swp1
"""
    interfaces = document(text)["ospf"]["areas"]["0.0.0.0"]["interfaces"]
    passive = {name for name, found in interfaces.items() if found.get("passive")}
    assert passive == {"lo", "swp2"}


def test_frr_signs_with_its_last_key_and_fared_with_its_first():
    keys = " ip ospf message-digest-key 1 md5 old\n ip ospf message-digest-key 2 md5 new\n"
    text = f"{LINK}{keys}router ospf\n area 0 authentication message-digest\n"
    assert port(text)["authentication"] == {
        "keys": [
            {"algorithm": "md5", "key-id": 2, "key": "new"},
            {"algorithm": "md5", "key-id": 1, "key": "old"},
        ]
    }
    _, draft = imported(f"{LINK}{keys}router ospf\n")
    assert left(draft) == {6: "FRR does not use the key: no 'authentication'"}


def test_key_chains_have_algorithms_and_times():
    text = f"""
key chain K
 key 7
  key-string s3cret
  cryptographic-algorithm hmac-sha-256
  send-lifetime 00:00:00 Jan 1 2026 duration 3600
{LINK} ip ospf authentication key-chain K
router ospf
"""
    config, draft = imported(text)
    (key,) = config.ospf_interface("swp1")[1].authentication.keyring()
    assert (key.key.algorithm.value, key.key.key_id) == ("hmac-sha-256", 7)
    assert key.send_end - key.send_start == 3600
    assert [remark.source.number for remark in draft.differs] == [6]


def test_no_secret_is_named():
    """Lines that are left may have keys, of OSPF and of protocols that fared does not have."""
    text = """
password s3cret
enable password s3cret
key chain K
 key 1
  key-string s3cret
  frob s3
router bgp 65000
 neighbor 10.0.0.1 password s3cret
interface swp1
 ip ospf message-digest-key 1 md5 s3cret
 ip ospf authentication-key s3cret 10.0.0.1
 isis password clear s3cret
router isis F
 area-password md5 s3cret
"""
    draft = read_frr(text, {})
    assert {remark.source.number for remark in draft.left} >= {2, 3, 7, 9, 11, 12, 13, 14}
    assert "s3cret" not in "".join(map(str, draft.left))


def test_areas_ranges_stubs_and_what_is_no_area_of_fared():
    text = f"""{LINK}router ospf
 area 1 stub no-summary
 area 1 default-cost 5
 area 0 range 10.1.0.0/16 cost 20
 area 0 range 10.2.0.0/16 not-advertise
 area 3 nssa
 area 4 virtual-link 10.0.0.1
"""
    draft = read_frr(text, {})
    areas = draft.tree["ospf"]["areas"]
    assert areas["0.0.0.1"] == {"type": "stub", "summary": False, "default-cost": 5}
    assert areas["0.0.0.0"]["ranges"] == {
        "10.1.0.0/16": {"cost": 20},
        "10.2.0.0/16": {"advertise": False},
    }
    assert "no NSSA" in left(draft)[10]
    assert "virtual links" in left(draft)[11]


REDISTRIBUTED = """
ip prefix-list OWN seq 5 permit 198.51.100.0/24 le 32
ip prefix-list ONE seq 5 permit 203.0.113.0/25
ip prefix-list NOT seq 5 deny 203.0.113.0/25
ip prefix-list NOT seq 10 permit any
route-map OUT permit 10
 match ip address prefix-list {list}
 set metric-type type-1
router ospf
 redistribute kernel metric 5 route-map OUT
 redistribute rip
 default-information originate always
"""


def test_redistribution_with_a_prefix_list():
    found = document(REDISTRIBUTED.format(list="OWN"))["ospf"]["redistribute"]
    assert found["static"] == {"metric": 5, "metric-type": 1, "filter": "OWN"}
    assert found["default"] == {"always": True, "metric": 1}


def test_a_prefix_list_is_a_filter_that_means_the_same():
    found = document(REDISTRIBUTED.format(list="OWN"))["filters"]
    assert found == {"OWN": ["permit 198.51.100.0/24 le 32"]}
    _, draft = imported(REDISTRIBUTED.format(list="NOT"))
    assert draft.tree["filters"]["NOT"] == ["deny 203.0.113.0/25", "permit 0.0.0.0/0 le 32"]
    assert "redistributes no rip" in left(draft)[11]


def test_routes_of_other_protocols_are_sources():
    text = f"{LINK}router ospf\n redistribute bgp metric 7\n redistribute isis\n"
    assert document(text)["ospf"]["redistribute"] == {"bgp": {"metric": 7}, "isis": {}}


def test_the_filter_of_an_area():
    text = f"""
ip prefix-list OUT seq 5 permit 10.1.0.0/16 ge 24
{LINK}router ospf
 area 0 filter-list prefix OUT out
 area 0 filter-list prefix NONE in
"""
    config, draft = imported(text)
    (area,) = config.ospf.areas.values()
    assert (area.filter.in_, area.filter.out) == (None, "OUT")
    assert draft.tree["filters"] == {"OUT": ["permit 10.1.0.0/16 ge 24"]}
    assert left(draft) == {9: "the file has no prefix-list NONE of ipv4"}


LISTS = """
ip prefix-list OWN seq 20 permit 10.0.0.0/8 ge 24
ip prefix-list OWN seq 10 deny 10.9.0.0/16 le 32
ip prefix-list MORE permit 10.9.1.0/24
ip prefix-list MORE permit 192.0.2.0/24
ipv6 prefix-list OWN6 permit 2001:db8::/32 le 64
access-list NET seq 5 deny 10.1.2.0/24 exact-match
access-list NET seq 10 permit 10.0.0.0/8
access-list OLD permit 10.0.0.0 0.255.255.255
"""


def filters(routemap: str, redistributed: str = "redistribute kernel route-map M") -> dict:
    draft = read_frr(f"{LISTS}{routemap}{LINK}router ospf\n {redistributed}\n", {})
    draft.settle(lambda: write_draft(draft, "frr.conf", "FRR"))
    static = draft.tree["ospf"].get("redistribute", {}).get("static")
    assert static is None or static.get("filter") in (None, *draft.tree.get("filters", {}))
    assert static is not None or draft.left
    found: dict = draft.tree.get("filters", {})
    return found


def test_a_prefix_list_is_read_in_the_order_of_its_numbers():
    text = "route-map M permit 10\n match ip address prefix-list OWN\n"
    assert filters(text) == {"OWN": ["deny 10.9.0.0/16 le 32", "permit 10.0.0.0/8 ge 24"]}


def test_entries_of_a_route_map_are_one_filter():
    """What the list of an entry denies goes on to the next entry."""
    text = (
        "route-map M permit 20\n match ip address prefix-list MORE\n"
        "route-map M permit 10\n match ip address prefix-list OWN\n"
    )
    assert filters(text) == {
        "M": [
            "permit 10.9.1.0/24",
            "deny 10.9.0.0/16 le 32",
            "permit 10.0.0.0/8 ge 24",
            "permit 192.0.2.0/24",
        ]
    }
    assert filters(
        "route-map M deny 5\n match ip address prefix-list MORE\nroute-map M permit 10\n"
    ) == {"M": ["deny 10.9.1.0/24", "deny 192.0.2.0/24", "permit 0.0.0.0/0 le 32"]}
    assert filters("route-map M permit 10\n") == {}


def test_a_distribute_list_is_a_filter_too():
    """Access lists match all lengths inside a prefix; a route map must permit as well."""
    only = "redistribute kernel\n distribute-list NET out kernel"
    assert filters("", only) == {"NET": ["deny 10.1.2.0/24", "permit 10.0.0.0/8 le 32"]}
    both = "redistribute kernel route-map M\n distribute-list NET out kernel"
    text = "route-map M permit 10\n match ip address prefix-list MORE\n"
    assert filters(text, both) == {"MORE-NET": ["permit 10.9.1.0/24"]}


@pytest.mark.parametrize(
    ("routemap", "redistributed", "words"),
    [
        ("route-map M permit 10\n match tag 7\n", "", "'match tag' of route-map M (line 11)"),
        ("route-map M permit 10\n match ip address prefix-list NONE\n", "", "no prefix-list NONE"),
        (
            "route-map M permit 5\n set metric 5\nroute-map M permit 10\n",
            "",
            "different values for different prefixes",
        ),
        ("route-map M deny 10\n", "", "permits nothing"),
        ("", "redistribute kernel\n distribute-list OLD out kernel", "access-list OLD (line 9)"),
        ("", "distribute-list NET out connected", "connected is not redistributed"),
    ],
)
def test_filters_that_prefixes_do_not_express_are_left(routemap, redistributed, words):
    redistributed = redistributed or "redistribute kernel route-map M"
    draft = read_frr(f"{LISTS}{routemap}{LINK}router ospf\n {redistributed}\n", {})
    assert words in " ".join(left(draft).values())
    assert "redistribute" not in draft.tree["ospf"]


def test_filters_of_both_families_of_a_source_are_one():
    text = f"""{LISTS}route-map M permit 10
 match ip address prefix-list MORE
route-map M6 permit 10
 match ipv6 address prefix-list OWN6
interface swp1
 ip router isis F
router isis F
 net 49.0001.0102.5500.0001.00
 redistribute ipv4 connected level-2 route-map M
 redistribute ipv6 connected level-2 route-map M6
 redistribute ipv6 kernel level-2 route-map M6
"""
    found = document(text)
    assert found["isis"]["redistribute"] == {
        "connected": {"level": "level-2", "filter": "MORE-OWN6"},
        "static": {"level": "level-2", "filter": "OWN6"},
    }
    assert found["filters"]["MORE-OWN6"] == [
        *found["filters"]["MORE"],
        "permit 2001:db8::/32 le 64",
    ]


def test_routers_of_isis():
    text = """
interface swp1
 ip router isis F
 ipv6 router isis F
 isis network point-to-point
 isis circuit-type level-2-only
 isis metric 7
 isis password md5 hello
 isis bfd profile fast
interface lo
 ip router isis F
 isis passive
router isis F
 net 49.0001.0102.5500.0001.00
 is-type level-1-2
 domain-password md5 lsp authenticate snp validate
 set-overload-bit on-startup 30
 spf-delay-ietf init-delay 0 short-delay 50 long-delay 500 holddown 1000 time-to-learn 400
 redistribute ipv6 connected level-2 metric 3
 topology ipv6-unicast
bfd
 profile fast
  detect-multiplier 4
  transmit-interval 50
"""
    config, draft = imported(text)
    isis, settings = config.isis, config.isis_interface("swp1")
    assert (settings.level, settings.metric, settings.network_type) == (
        "level-2",
        7,
        "point-to-point",
    )
    assert settings.authentication.keyring()[0].key.key == b"hello"
    assert isis.level_2.authentication.keyring()[0].key.key == b"lsp"
    assert settings.bfd.settings(config.bfd).session.multiplier == 4
    assert (isis.overload_on_startup, isis.spf.long_delay, isis.multi_topology) == (30, 0.5, True)
    assert draft.tree["isis"]["redistribute"]["connected"]["prefixes"] == ["::/1", "8000::/1"]
    assert left(draft) == {}
    assert [remark.source.number for remark in draft.differs] == [11]  # lo routes IPv4 only


def test_vrfs_and_further_instances_are_left():
    text = f"""
interface swp9 vrf RED
 ip ospf area 0
{LINK}router ospf
 ospf router-id 10.255.0.1
router ospf vrf RED
 ospf router-id 10.255.0.9
vrf RED
 ip route 10.0.0.0/8 null0
exit-vrf
"""
    config, draft = imported(text)
    assert dotted(config.router_id) == "10.255.0.1"
    assert sorted(left(draft)) == [2, 10, 12]
    assert "swp9" not in draft.tree["ospf"]["areas"]["0.0.0.0"]["interfaces"]


def test_what_the_configuration_refuses_is_left_and_the_rest_is_valid():
    config, draft = imported(f"{LINK} ip ospf priority 300\nrouter ospf\n maximum-paths 5000\n")
    assert config.ospf.max_paths == 64
    assert "expected an integer 0..255, got 300" in left(draft)[5]
    assert "max-paths" in left(draft)[7]


def test_all_settings_that_are_refused_are_taken_out_at_once():
    """Of thousands, too: each round writes and loads the whole file."""
    lines = "".join(
        f"interface swp{i}\n ip ospf area 0\n ip ospf priority 300\n" for i in range(60)
    )
    draft = read_frr(f"{lines}router ospf\n", {})
    rounds: list[str] = []

    def render() -> str:
        rounds.append("round")
        return write_draft(draft, "frr.conf", "FRR")

    draft.settle(render)
    assert (len(draft.left), len(rounds)) == (60, 2)


def test_lines_need_no_indentation():
    """FRR reads them so: a line belongs to the block that is open."""
    plain = f"{LINK}key chain K\n key 1\n  key-string a\n key 2\n  key-string b\nrouter ospf\n"
    flat = "\n".join(line.strip() for line in plain.splitlines())
    assert document(flat) == document(plain) != {}
    chain = next(each for each in read_statements(flat) if each.words[0] == "key")
    assert [key.text for key in chain.inside] == ["key 1", "key 2"]


def test_addresses_are_listed_without_the_rest_of_the_file():
    text = "interface swp1\n ip address 10.0.0.1/31\n ipv6 address fd00::1/64\n ip address x\n"
    found = [(name, str(a)) for name, a, _ in interface_addresses(read_statements(text))]
    assert found == [("swp1", "10.0.0.1/31"), ("swp1", "fd00::1/64")]


def test_addresses_that_the_machine_lacks_are_named():
    here = {"swp1": MachineLink((ip_interface("10.0.0.1/31"),), None)}
    text = f"{LINK} ip address 10.0.0.1/31\n ip address 10.0.0.7/31\nrouter ospf\n"
    _, draft = imported(text, here)
    assert [remark.source.number for remark in draft.differs] == [6]


def test_a_protocol_whose_title_is_refused_does_not_run():
    config, draft = imported(
        f"{LINK}router ospf\ninterface swp1\n ip router isis F\nrouter isis F\n net frob\n"
    )
    assert (config.ospf is not None, config.isis) == (True, None)
    assert any("net frob: fared refuses it" in str(remark) for remark in draft.left)

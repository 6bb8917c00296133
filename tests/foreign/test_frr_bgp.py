"""``router bgp`` of FRR becomes the bgp section; each line that is not taken is named."""

from __future__ import annotations

import pytest

from fared.config import load_text
from fared.config.model import Config
from fared.extensions.foreign.draft import Draft
from fared.extensions.foreign.frr.read import read_frr
from fared.extensions.foreign.write import write_draft

LEAF = """frr version 8.4
frr defaults datacenter
interface lo
 ip address 10.255.0.11/32
ip prefix-list PODS seq 5 permit 10.0.0.0/8 le 24
router bgp 65011
 bgp router-id 10.255.0.11
 bgp bestpath as-path multipath-relax
 neighbor SPINES peer-group
 neighbor SPINES remote-as external
 neighbor SPINES password s3cret
 neighbor SPINES bfd profile fast
 neighbor swp1 interface peer-group SPINES
 neighbor swp2 interface peer-group SPINES
 neighbor swp2 shutdown message repair
 neighbor 10.9.1.2 remote-as 65100
 neighbor 10.9.1.2 timers 10 30
 neighbor 10.9.1.2 timers connect 5
 address-family ipv4 unicast
  network 10.255.0.11/32
  redistribute connected metric 5
  maximum-paths 32
  neighbor SPINES prefix-list PODS in
  neighbor 10.9.1.2 maximum-prefix 500 80 restart 10
 exit-address-family
 address-family ipv6 unicast
  neighbor SPINES activate
 exit-address-family
bfd
 profile fast
  transmit-interval 100
"""


def imported(text: str) -> tuple[Config, Draft]:
    draft = read_frr(text, {})
    return load_text(draft.settle(lambda: write_draft(draft, "frr.conf", "FRR"))), draft


def left(draft: Draft) -> dict[int, str]:
    return {remark.source.number: remark.reason for remark in draft.left}


def bgp(text: str) -> tuple[Config, Draft]:
    """A router with the defaults of a data center, and these lines in its block."""
    inside = "".join(f" {line}\n" for line in text.splitlines())
    return imported(f"frr defaults datacenter\nrouter bgp 65011\n{inside}")


def test_a_leaf_with_a_peer_group_and_unnumbered_neighbors():
    """Each neighbor has the settings of its group; FRR's ``activate`` says which families."""
    config, draft = imported(LEAF)
    section = config.bgp
    assert (section.as_, section.as_path, section.max_paths) == (65011, "relax", 32)
    spine, other, numbered = section.neighbors.values()
    assert list(section.neighbors) == ["swp1", "swp2", "10.9.1.2"]
    assert spine.authentication.secret() == b"s3cret"
    assert (spine.bfd.enabled, spine.bfd.profile) == (True, "fast")
    assert (spine.import_, spine.export, spine.filter.import_) == (("all",), ("all",), "PODS")
    assert (other.shutdown, other.description) == (True, "repair")
    assert (numbered.remote_as, numbered.hold_time, numbered.keepalive) == (65100, 30, 10)
    assert (numbered.maximum_prefixes, numbered.restart_after) == (500, 600)
    assert numbered.address_families == ("ipv4",)
    assert list(left(draft)) == [1], "frr version"


def test_a_list_of_one_family_leaves_the_other_alone():
    config, _ = imported(LEAF)
    assert [str(item) for item in config.filters["PODS"]] == [
        "permit 10.0.0.0/8 le 24",
        "permit ::/0 le 128",
    ]


def test_sources_keep_their_family_and_metric():
    config, _ = imported(LEAF)
    connected = config.bgp.redistribute.connected
    assert connected.med == 5
    assert list(map(str, connected.prefixes)) == ["0.0.0.0/1", "128.0.0.0/1"]


def test_defaults_of_the_traditional_profile_are_written():
    """Neighbors have them too. A leaf wants those of a data center."""
    config, draft = imported("router bgp 65011\n neighbor swp1 interface remote-as external\n")
    (neighbor,) = config.bgp.neighbors.values()
    assert (neighbor.hold_time, neighbor.keepalive, neighbor.connect_retry) == (180, 60, 120)
    assert config.bgp.as_path == "strict"
    assert (neighbor.import_, neighbor.export) == (None, None)
    assert "FRR exchanges nothing with it" in draft.differs[0].reason


def test_without_the_requirement_of_a_policy_everything_passes():
    text = " no bgp ebgp-requires-policy\n neighbor swp1 interface remote-as external\n"
    config, _ = imported(f"router bgp 65011\n{text}")
    assert config.bgp.neighbors["swp1"].export == ("all",)


def test_a_route_map_that_sets_path_bandwidth_is_what_fared_does():
    """With the prefixes that it matches as the filter."""
    config, draft = imported(
        LEAF.replace("neighbor SPINES prefix-list PODS in", "neighbor SPINES route-map O out")
        + "route-map O permit 10\n match ip address prefix-list PODS\n"
        " set extcommunity bandwidth num-multipaths\n"
    )
    assert config.bgp.neighbors["swp1"].filter.export == "O"
    assert [str(item) for item in config.filters["O"]] == [
        "permit 10.0.0.0/8 le 24",
        "permit ::/0 le 128",
    ]
    assert "fared sends path bandwidth by itself" in "".join(r.reason for r in draft.differs)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("neighbor swp1 ebgp-multihop 2", "no multihop"),
        ("neighbor swp1 route-reflector-client", "no route reflection"),
        ("neighbor swp1 addpath-tx-all-paths", "no such setting"),
        ("neighbor swp1 default-originate", "networks: [0.0.0.0/0]"),
        ("neighbor swp1 maximum-prefix 5 warning-only", "fared ends the session"),
        ("neighbor swp1 ttl-security hops 3", "no multihop"),
        ("bgp listen range 10.0.0.0/8 peer-group X", "neighbors by address are listed"),
        ("bgp cluster-id 1.1.1.1", "no route reflection"),
        ("bgp confederation identifier 1", "no confederations"),
        ("bgp dampening", "no route dampening"),
        ("aggregate-address 10.0.0.0/8", "no aggregates"),
        (
            "redistribute rip",
            "redistributes no rip routes: connected, static (and kernel), ospf and",
        ),
        ("address-family l2vpn evpn\n  advertise-all-vni", "IPv4 and IPv6 unicast"),
        ("neighbor swp9 description x", "swp9 has no remote-as"),
        ("neighbor swp1 route-map NONE in", "the file has no route-map NONE"),
    ],
)
def test_what_fared_does_not_have_is_named_with_its_line(line, reason):
    _, draft = bgp(f"neighbor swp1 interface remote-as external\n{line}")
    (found,) = left(draft).items()
    assert (found[0], reason in found[1]) == (4, True), found


def test_another_instance_and_vrfs_are_not_taken():
    _, draft = imported(
        "router bgp 1\nrouter bgp 2\nrouter bgp 1 vrf RED\n neighbor x remote-as 1\n"
    )
    assert "one instance of BGP" in left(draft)[2]
    assert "no VRFs (and the line inside)" in left(draft)[3]


def test_a_link_local_address_is_refused_with_what_to_do():
    _, draft = bgp("neighbor fe80::1 remote-as external")
    assert "its interface" in left(draft)[3]

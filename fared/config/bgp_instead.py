"""What other daemons have in BGP and fared has not, or elsewhere: what to do instead."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

_UNICAST: Final = "no such routes: BGP of fared has IPv4 and IPv6 unicast"
_MAPS: Final = "no route maps: import and export say what passes, filter which prefixes and tags"
_ADD_PATH: Final = "no ADD-PATH: with path-bandwidth, one path tells the bandwidth of all"
_REFLECTION: Final = "no route reflection: leaves and spines as external neighbors need none"
_GROUPS: Final = "no groups: a glob stands for many neighbors, and YAML has anchors (&name, *name)"
_TIMERS: Final = "write hold-time and keepalive"
_FIXED_HOP: Final = "no choice: the next hop that neighbors are told is this router"
_ALL_SENT: Final = "communities are always passed on; path-bandwidth: send says which are set"
_SWITCHED: Final = "address-families says which"

ROUTER: Final[Mapping[str, str]] = MappingProxyType(
    {
        "evpn": _UNICAST,
        "l2vpn": _UNICAST,
        "vpn": _UNICAST,
        "vpnv4": _UNICAST,
        "vpnv6": _UNICAST,
        "labeled-unicast": _UNICAST,
        "flowspec": _UNICAST,
        "multicast": _UNICAST,
        "vrf": "no VRFs: a daemon routes one table (fib: table)",
        "address-family": _SWITCHED,
        "ipv4": _SWITCHED,
        "ipv6": _SWITCHED,
        "route-map": _MAPS,
        "route-maps": _MAPS,
        "add-path": _ADD_PATH,
        "additional-paths": _ADD_PATH,
        "cluster-id": _REFLECTION,
        "route-reflector": _REFLECTION,
        "confederation": "no confederations (RFC 5065): give each part an AS of its own",
        "aggregate-address": "no aggregates: one would hide which links are lost inside it",
        "aggregates": "no aggregates: one would hide which links are lost inside it",
        "dampening": "no route dampening: link-health: damping holds back the links that flap",
        "listen-range": "neighbors by address are listed; those on links come by glob",
        "groups": _GROUPS,
        "peer-groups": _GROUPS,
        "peers": "they are neighbors",
        "rpki": "no origin validation",
        "bmp": "no BMP: fared-cli record keeps what comes",
        "timers": _TIMERS + " of each neighbor",
        "maximum-paths": "it is max-paths",
        "bestpath": "as-path: relax is as 'bestpath as-path multipath-relax'",
        "distance": "write preference, and internal-preference",
        "local-as": "it is as",
        "default-information": "networks: [0.0.0.0/0] announces a default route",
    }
)
"""In ``bgp``."""
NEIGHBOR: Final[Mapping[str, str]] = MappingProxyType(
    {
        "route-map": _MAPS,
        "prefix-list": "filters: at the top of the file, and filter: {import: NAME, export: NAME}",
        "filter-list": "no filters of AS paths: filter takes prefixes and tags",
        "distribute-list": "filters: at the top of the file, and filter: {import: NAME}",
        "route-reflector-client": _REFLECTION,
        "add-path": _ADD_PATH,
        "addpath": _ADD_PATH,
        "multihop": "no multihop: a neighbor is on a link; ttl-security needs that too",
        "ebgp-multihop": "no multihop: a neighbor is on a link; ttl-security needs that too",
        "allowas-in": "no: give each leaf an AS of its own (RFC 7938 §5.2)",
        "as-override": "no: give each leaf an AS of its own (RFC 7938 §5.2)",
        "local-as": "no second AS: as of the router is that of all sessions",
        "remove-private-as": "no: filters choose prefixes, AS paths pass as they are",
        "next-hop-self": _FIXED_HOP,
        "next-hop-unchanged": _FIXED_HOP,
        "soft-reconfiguration": "no: what a filter kept out is asked for again (RFC 2918)",
        "send-community": _ALL_SENT,
        "extended-link-bandwidth": "no: the community of RFC 10005 has room for any bandwidth",
        "weight": "no: weights come from path-bandwidth and the capacity of links",
        "local-preference": "no: all paths of equal length are used, by path bandwidth",
        "med": "no: redistribute: SOURCE: med has one for routes of other sources",
        "default-originate": "networks: [0.0.0.0/0] of bgp announces a default route",
        "peer-group": _GROUPS,
        "group": _GROUPS,
        "password": "authentication: {key: ...}, or {key-file: ...}",
        "tcp-ao": "no: kernels before 6.7 have TCP MD5 only",
        "update-source": "it is local-address",
        "timers": _TIMERS,
        "advertisement-interval": "no: changes go at once; those of bandwidth alone are paced by"
        " adaptive: announce-threshold and announce-budget",
        "maximum-prefix": "it is maximum-prefixes",
        "interface": "the key of the neighbor is the interface, or a glob",
        "activate": _SWITCHED,
        "address-family": _SWITCHED,
        "disable-connected-check": "no multihop: a neighbor is on a link",
        "enabled": "it is shutdown",
    }
)
"""In an entry of its ``neighbors``."""
SHARE: Final = "a share is for hosts: write it in their entry of neighbors"

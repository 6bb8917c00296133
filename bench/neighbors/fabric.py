"""A three-stage fabric as LSAs and LSPs only: the database that ``beside`` floods to each daemon.

Leaf 0 is the device under test and originates its own; this module originates those of all other
routers. Link (s, k) connects spine s and leaf k. Leaves advertise a loopback and a /24, spines a
loopback. With ``te`` each end of a link advertises the attributes of RFC 3630 and RFC 7471.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from fared.core.ids import ipv4_prefix
from fared.paths.te.attributes import NO_ATTRIBUTES, TeAttributes
from fared.protocols.isis.ids import LspId, lsp_id
from fared.protocols.isis.pdu.codec import encode_pdu, tlvs_size
from fared.protocols.isis.pdu.model import Lsp
from fared.protocols.isis.pdu.tlvs import (
    NLPID_IPV4,
    AreaAddresses,
    Hostname,
    IpReach,
    IpReachability,
    IsNeighbor,
    IsReachability,
    ProtocolsSupported,
    TeRouterId,
    Tlv,
)
from fared.protocols.ospf.packet.bodies import E_BIT, RouterLink, RouterLinkType, RouterLsa
from fared.protocols.ospf.packet.body import encode_body, opaque_link_state_id
from fared.protocols.ospf.packet.lsa import INITIAL_SEQUENCE_NUMBER, Lsa, LsaKey, LsType, encode_lsa
from fared.protocols.ospf.packet.opaque import OpaqueType, TeLink

RATE = 50e9
"""400 Gb/s in bytes/s."""
COST = 10
AREA = bytes.fromhex("490000")
_SPINES = 0x0AFE0001
_LEAVES = 0x0AFF0001
_LINKS = 0x0A800000
_HOSTS = 100 << 24
_MASK32, _MASK24 = 0xFFFFFFFF, 0xFFFFFF00
_LSP_SPACE = 1492 - 27
_E_BIT, _O_BIT = 0x02, 0x40

Link = tuple[int, int]


@dataclass
class Fabric:
    """Size of the fabric, its cut and costlier links, and the newest instance of each LSA, LSP.

    ``asbrs`` are the AS boundary routers.
    """

    spines: int
    leaves: int
    te: bool
    cut: set[Link] = field(default_factory=set)
    costs: dict[Link, int] = field(default_factory=dict)
    rates: dict[Link, float] = field(default_factory=dict)
    asbrs: set[int] = field(default_factory=set)
    lsas: dict[LsaKey, Lsa] = field(default_factory=dict)
    lsps: dict[LspId, bytes] = field(default_factory=dict)

    # Identifiers. A router is its OSPF router id, which is its loopback address too.

    def spine(self, number: int) -> int:
        """Router id of a spine: lower than that of any leaf, so that leaf 0 is always master."""
        return _SPINES + number

    def leaf(self, number: int) -> int:
        """Router id of a leaf."""
        return _LEAVES + number

    def host_network(self, number: int) -> int:
        """The /24 behind a leaf."""
        return _HOSTS + (number << 8)

    def addresses(self, link: Link) -> tuple[int, int]:
        """Addresses of a link: the spine's, then the leaf's."""
        spine, leaf = link
        first = _LINKS + 2 * (spine * self.leaves + leaf)
        return first, first + 1

    def routers(self) -> Iterator[int]:
        """All routers but leaf 0."""
        yield from (self.spine(number) for number in range(self.spines))
        yield from (self.leaf(number) for number in range(1, self.leaves))

    def ends(self, router: int) -> Iterator[tuple[Link, int, int, int]]:
        """The links of a router that are up: link, neighbor, own address, neighbor's address."""
        if router >= _LEAVES:
            links = [(number, router - _LEAVES) for number in range(self.spines)]
        else:
            links = [(router - _SPINES, number) for number in range(self.leaves)]
        for link in links:
            if link not in self.cut:
                low, high = self.addresses(link)
                if router >= _LEAVES:
                    yield link, self.spine(link[0]), high, low
                else:
                    yield link, self.leaf(link[1]), low, high

    def attributes(self, link: Link) -> TeAttributes:
        """TE attributes of a link, the same in both directions."""
        if not self.te:
            return NO_ATTRIBUTES
        rate = self.rates.get(link, RATE)
        load = rate * ((link[0] * 7919 + link[1] * 104_729) % 1000) / 5000
        return TeAttributes(
            te_metric=COST,
            max_bandwidth=rate,
            max_reservable_bandwidth=rate,
            unreserved_bandwidth=(rate,) * 8,
            residual_bandwidth=rate,
            available_bandwidth=rate - load,
            utilized_bandwidth=load,
        )

    # OSPF

    def router_lsa(self, router: int) -> Lsa:
        """The next instance of a router LSA."""
        links = [
            RouterLink(RouterLinkType.POINT_TO_POINT, far, near, self.costs.get(link, COST))
            for link, far, near, _ in self.ends(router)
        ]
        links.append(RouterLink(RouterLinkType.STUB, router, _MASK32, 0))
        if router >= _LEAVES:
            network = self.host_network(router - _LEAVES)
            links.append(RouterLink(RouterLinkType.STUB, network, _MASK24, COST))
        body = encode_body(RouterLsa(E_BIT if router in self.asbrs else 0, tuple(links)))
        return self.issue(LsaKey(LsType.ROUTER, router, router), body)

    def te_lsa(self, router: int, link: Link) -> Lsa:
        """The next instance of the TE LSA of a router's end of a link."""
        up = router >= _LEAVES
        addresses = self.addresses(link)
        body = encode_body(
            TeLink(
                link_type=1,
                link_id=self.spine(link[0]) if up else self.leaf(link[1]),
                local_addresses=(addresses[up],),
                remote_addresses=(addresses[not up],),
                attributes=self.attributes(link),
            )
        )
        instance = link[0] if up else link[1]
        number = opaque_link_state_id(OpaqueType.TRAFFIC_ENGINEERING, instance + 1)
        return self.issue(LsaKey(LsType.OPAQUE_AREA, number, router), body)

    def originate(self) -> None:
        """Originate the LSAs of all routers."""
        for router in self.routers():
            self.router_lsa(router)
            if self.te:
                for link, _, _, _ in self.ends(router):
                    self.te_lsa(router, link)

    def issue(self, key: LsaKey, body: bytes) -> Lsa:
        """The next instance of an LSA."""
        before = self.lsas.get(key)
        number = before.header.ls_sequence_number + 1 if before else INITIAL_SEQUENCE_NUMBER
        opaque = key.ls_type == LsType.OPAQUE_AREA
        lsa = self.lsas[key] = encode_lsa(
            ls_age=1,
            options=_E_BIT | (_O_BIT if opaque else 0),
            ls_type=key.ls_type,
            link_state_id=key.link_state_id,
            advertising_router=key.advertising_router,
            ls_sequence_number=number,
            body=body,
        )
        return lsa

    # IS-IS

    def system(self, router: int) -> int:
        """System id of a router: the decimal digits of its address, as operators derive it."""
        digits = "".join(f"{router >> shift & 255:03d}" for shift in (24, 16, 8, 0))
        return int(digits, 16)

    def fragments(self, router: int) -> list[list[Tlv]]:
        """Return the TLVs of a router, split into fragments.

        The fragment of a link does not depend on the state of other links, so no TLV moves.
        """
        system = self.system(router)
        prefixes = [IpReach(ipv4_prefix(router, 32), 0)]
        if router >= _LEAVES:
            prefixes.append(IpReach(ipv4_prefix(self.host_network(router - _LEAVES), 24), COST))
        fragments: list[list[Tlv]] = [
            [
                AreaAddresses((AREA,)),
                ProtocolsSupported((NLPID_IPV4,)),
                Hostname(f"r{system:x}"),
                TeRouterId(router),
                IpReachability(4, tuple(prefixes)),
            ]
        ]
        size = tlvs_size(fragments[0])
        cut, self.cut = self.cut, set()
        ends = list(self.ends(router))
        self.cut, step = cut, 0
        for link, far, near, remote in ends:
            attributes = self.attributes(link)
            entry = IsNeighbor(
                self.system(far) << 8,
                self.costs.get(link, COST),
                attributes,
                local_addresses=(near,) if self.te else (),
                remote_addresses=(remote,) if self.te else (),
            )
            tlv = IsReachability((entry,))
            step = step or tlvs_size([tlv])  # all links have the same sub-TLVs
            if size + step > _LSP_SPACE:
                fragments.append([])
                size = 0
            size += step
            if link not in cut:
                fragments[-1].append(tlv)
        return fragments

    def issue_lsps(self, router: int) -> list[bytes]:
        """The next instances of those LSPs of a router whose content has changed."""
        issued = []
        system = self.system(router)
        for number, tlvs in enumerate(self.fragments(router)):
            identifier = lsp_id(system, 0, number)
            before = self.lsps.get(identifier)
            sequence = int.from_bytes(before[20:24], "big") if before else 0
            if before is not None and before == _encode(identifier, sequence, tlvs):
                continue
            raw = self.lsps[identifier] = _encode(identifier, sequence + 1, tlvs)
            issued.append(raw)
        return issued

    def describe(self) -> None:
        """Originate the LSPs of all routers."""
        for router in self.routers():
            self.issue_lsps(router)


def _encode(identifier: LspId, sequence: int, tlvs: list[Tlv]) -> bytes:
    lsp = Lsp(2, identifier, sequence, 1200, tlvs=tuple(_merged(tlvs)), is_type=3)
    return encode_pdu(lsp)


def _merged(tlvs: list[Tlv]) -> Iterator[Tlv]:
    """Merge neighbors without attributes into shared TLVs, as implementations do."""
    plain: list[IsNeighbor] = []
    for tlv in tlvs:
        if isinstance(tlv, IsReachability) and tlv.neighbors[0].attributes is NO_ATTRIBUTES:
            plain += tlv.neighbors
        else:
            yield tlv
    for at in range(0, len(plain), 23):
        yield IsReachability(tuple(plain[at : at + 23]))

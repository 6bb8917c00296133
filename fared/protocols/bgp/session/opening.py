"""OPEN: what this router offers, whether it accepts the neighbor's, and what both agree on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from fared.protocols.bgp.packet.capabilities import (
    ExtendedMessage,
    ExtendedNextHop,
    FourOctetAs,
    GracefulRestartCapability,
    KeptFamily,
    NextHopEncoding,
    OpenCapability,
    OwnMinimum,
    RestartFlags,
    RouteRefreshCapability,
    families_of,
    hostname_capability,
    hostname_of,
    multiprotocol,
)
from fared.protocols.bgp.packet.coded import AS_TRANS, MAX_TWO_OCTET_AS, Coding
from fared.protocols.bgp.packet.framing import MAX_EXTENDED, MAX_LENGTH
from fared.protocols.bgp.packet.messages import OpenMessage
from fared.protocols.bgp.packet.nlri import AFIS, UNICAST
from fared.protocols.bgp.packet.notification import Fault, MessageError
from fared.protocols.bgp.session.events import Agreed, NeighborSettings
from fared.protocols.bgp.settings import EXTERNAL, INTERNAL

_LEAST_HOLD_TIME: Final = 3
_FAMILY_NAMES: Final = {4: "IPv4", 6: "IPv6"}


def make_open(settings: NeighborSettings) -> OpenMessage:
    """Return the OPEN for a neighbor."""
    my_as = settings.local_as if settings.local_as <= MAX_TWO_OCTET_AS else AS_TRANS
    return OpenMessage(
        my_as, settings.hold_time, settings.identifier, tuple(_capabilities(settings))
    )


def _capabilities(settings: NeighborSettings) -> Iterator[OpenCapability]:
    yield from map(multiprotocol, settings.families)
    yield RouteRefreshCapability()
    yield FourOctetAs(settings.local_as)
    yield ExtendedMessage()
    if settings.extended_next_hop:
        yield ExtendedNextHop((NextHopEncoding(AFIS[4], UNICAST, AFIS[6]),))
    if settings.restart_time is not None:
        families = settings.families if settings.keeps else ()
        restarted = settings.restarting
        kept = tuple(KeptFamily(AFIS[family], UNICAST, restarted) for family in families)
        flags = RestartFlags.NOTIFICATION | (RestartFlags.RESTARTED if restarted else 0)
        yield GracefulRestartCapability(settings.restart_time, kept, flags)
    if settings.own_minimum:
        yield OwnMinimum()
    if settings.hostname:
        yield hostname_capability(settings.hostname)


def agree(settings: NeighborSettings, theirs: OpenMessage) -> Agreed:
    """Check the OPEN of a neighbor (RFC 4271 §6.2), and return what both sides agree on.

    Raises MessageError, whose words are for the operator.
    """
    number = theirs.number
    internal = number == settings.local_as
    _check_as(settings, number)
    if not theirs.identifier:
        raise MessageError(Fault.BAD_BGP_IDENTIFIER, "its identifier is 0.0.0.0")
    # RFC 6286 §2.2: unique in an AS, so that an external neighbor may have ours
    if internal and theirs.identifier == settings.identifier:
        raise MessageError(Fault.BAD_BGP_IDENTIFIER, "its identifier is ours")
    if 0 < theirs.hold_time < _LEAST_HOLD_TIME:
        what = f"its hold time is {theirs.hold_time} s, which is less than {_LEAST_HOLD_TIME} s"
        raise MessageError(Fault.UNACCEPTABLE_HOLD_TIME, what)
    told = families_of(theirs.capabilities)
    families = tuple(family for family in settings.families if family in told)
    if not families:
        names = " and ".join(_FAMILY_NAMES[family] for family in settings.families)
        # RFC 5492 §5: the data are the capabilities that are required
        data = b"".join(bytes((1, 4, 0, AFIS[one], 0, UNICAST)) for one in settings.families)
        raise MessageError(Fault.UNSUPPORTED_CAPABILITY, f"it has no routes of {names}", data)
    hold_time = min(settings.hold_time, theirs.hold_time)
    restart = [one for one in theirs.capabilities if isinstance(one, GracefulRestartCapability)]
    wide = theirs.has(ExtendedMessage)
    return Agreed(
        number=number,
        identifier=theirs.identifier,
        internal=internal,
        families=families,
        hold_time=hold_time,
        # RFC 4271 §10: a third of the hold time
        keepalive=min(settings.keepalive, hold_time / 3),
        four_octet_as=theirs.has(FourOctetAs),
        limit=MAX_EXTENDED if wide else MAX_LENGTH,
        refresh=theirs.has(RouteRefreshCapability),
        extended_next_hop=settings.extended_next_hop and theirs.has(ExtendedNextHop),
        restart=restart[0] if restart and settings.restart_time is not None else None,
        hostname=hostname_of(theirs.capabilities),
        own_minimum=theirs.has(OwnMinimum),
    )


def _check_as(settings: NeighborSettings, number: int) -> None:
    expected, own = settings.remote_as, settings.local_as
    if expected == EXTERNAL:
        wrong = f"its AS is {number}, as ours, expected another" if number == own else ""
    else:
        wanted = own if expected == INTERNAL else expected
        wrong = f"its AS is {number}, expected {wanted}" if number != wanted else ""
    if number in (0, AS_TRANS):  # RFC 7607 §2, RFC 6793 §9
        wrong = f"its AS is {number}, which is reserved"
    if wrong:
        raise MessageError(Fault.BAD_PEER_AS, wrong)


def coding_of(settings: NeighborSettings, agreed: Agreed) -> Coding:
    """Return how messages of the session are encoded."""
    first_as = agreed.number if settings.enforce_first_as and not agreed.internal else 0
    return Coding(agreed.four_octet_as, agreed.internal, first_as, agreed.families, agreed.limit)

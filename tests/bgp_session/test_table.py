"""Every row of RFC 4271 §8.2.2, on one session and a scripted neighbor."""

import pytest

from fared.core.ids import parse_dotted
from fared.core.streams import (
    CloseStream,
    Connect,
    SendStream,
    StreamClosed,
    StreamId,
    StreamOpened,
    StreamReceived,
)
from fared.protocols.bgp.packet.capabilities import FourOctetAs, multiprotocol
from fared.protocols.bgp.packet.codec import KEEPALIVE, decode_message, encode_message, encode_open
from fared.protocols.bgp.packet.framing import check_header
from fared.protocols.bgp.packet.messages import OpenMessage, RouteRefresh, Update
from fared.protocols.bgp.packet.notification import Notification
from fared.protocols.bgp.session.fsm import SESSION_TABLE, BgpState, SessionEvent
from tests.bgp_session.net import PEER, Speaker, settings

S, E = BgpState, SessionEvent
pytestmark = pytest.mark.rfc("RFC 4271 §8.2.2")
THEIRS = encode_open(
    OpenMessage(65002, 9, parse_dotted("10.9.1.2"), (multiprotocol(4), FourOctetAs(65002)))
)
UPDATE = next(encode_message(Update(end_of_rib=4)))
REFRESH = next(encode_message(RouteRefresh(1, 1)))
CEASE = next(encode_message(Notification(6, 2)))
STREAM = StreamId(PEER, passive=False, number=1)


def speaker(state):
    """A session in a state."""
    made = Speaker(settings())
    if state is S.IDLE:
        return made
    made.session.start()
    made.outputs()
    if state is S.ACTIVE:
        made.tell(StreamClosed(STREAM, "connection refused"))
    if state < S.OPEN_SENT:
        return made
    made.tell(StreamOpened(STREAM, "", ""))
    for step in (THEIRS, KEEPALIVE)[: state - S.OPEN_SENT]:
        made.tell(StreamReceived(STREAM, step))
    assert made.state is state
    return made


def quiet(made):
    """Let the neighbor send nothing, and then the hold time pass."""
    seconds = made.session._main._hold_time
    # first what may have come is read
    made.tick(made.process.now + seconds - 0.5)
    made.tick(made.process.now + 0.6)


def unread(made):
    """Let the neighbor read nothing for eight minutes."""
    made.process.now += 480.1
    made.session._main._send_hold_due()


CAUSES = {
    E.START: lambda made: made.session.start(),
    E.PASSIVE_START: lambda made: made.session._main.fire(E.PASSIVE_START),
    E.STOP: lambda made: made.session.stop("bye"),
    E.CONNECT_RETRY: lambda made: made.tick(made.process.now + 1.1),
    E.STREAM_OPENED: lambda made: made.tell(
        StreamOpened(STREAM if made.state is S.CONNECT else STREAM._replace(passive=True), "", "")
    ),
    E.STREAM_CLOSED: lambda made: made.tell(StreamClosed(STREAM, "connection reset by peer")),
    E.HOLD_EXPIRED: quiet,
    E.SEND_HOLD_EXPIRED: unread,
    E.KEEPALIVE_DUE: lambda made: made.tick(made.process.now + 3.1),
    E.OPEN: lambda made: made.tell(StreamReceived(STREAM, THEIRS)),
    E.KEEPALIVE: lambda made: made.tell(StreamReceived(STREAM, KEEPALIVE)),
    E.UPDATE: lambda made: made.tell(StreamReceived(STREAM, UPDATE)),
    E.REFRESH: lambda made: made.tell(StreamReceived(STREAM, REFRESH)),
    E.NOTIFICATION: lambda made: made.tell(StreamReceived(STREAM, CEASE)),
    E.BAD_MESSAGE: lambda made: made.tell(StreamReceived(STREAM, bytes(19))),
    E.COLLISION: lambda made: made.session._dump(made.session._main),
}
NOTIFIED = {
    E.STOP: (6, 2),
    E.HOLD_EXPIRED: (4, 0),
    E.SEND_HOLD_EXPIRED: (8, 0),
    E.BAD_MESSAGE: (1, 1),
    E.COLLISION: (6, 7),
}
OUT_OF_TURN = (E.OPEN, E.KEEPALIVE, E.UPDATE, E.REFRESH)


@pytest.mark.rfc("RFC 6608 §3", "RFC 9687")
@pytest.mark.parametrize(("state", "event"), list(SESSION_TABLE), ids=str)
def test_every_row(state, event):
    made = speaker(state)
    emitted = []
    emit = made.process.emit
    made.process.emit = lambda output: (emitted.append(output), emit(output))
    CAUSES[event](made)
    target = SESSION_TABLE.find(state, event).target
    assert made.state is target
    sent = b"".join(one.data for one in emitted if isinstance(one, SendStream))
    if target is S.IDLE and state >= S.OPEN_SENT:
        assert bool([one for one in emitted if isinstance(one, CloseStream)]) is (
            event is not E.STREAM_CLOSED
        )
        kind = NOTIFIED.get(event) or (
            (5, state - S.OPEN_SENT + 1) if event in OUT_OF_TURN else None
        )
        assert notified(sent) == kind
    if target is S.CONNECT:
        assert any(isinstance(one, Connect) for one in emitted)
    if target is S.OPEN_SENT:
        assert decode_message(sent).number == 65001


def notified(sent):
    """Code and subcode of the NOTIFICATION at the end of what was sent; None without one."""
    kind = None
    while sent:
        message_kind, length = check_header(sent[:19], 4096)
        kind = decode_message(sent[:length]).kind if message_kind == 3 else None
        sent = sent[length:]
    return kind


def test_what_no_row_names_is_ignored():
    rows = set(SESSION_TABLE)
    for state in S:
        for event in E:
            if (state, event) not in rows:
                made = speaker(state)
                made.session._main.fire(event)
                assert made.state is state

"""An engine to which only copies of LSPs came acknowledges them, and settles nothing else."""

from __future__ import annotations

from msgspec.structs import replace

from fared.protocols.igp.engine import ProcessEngine
from fared.protocols.igp.events import LinkChanged, PacketReceived, SendPacket
from fared.protocols.isis.engine import IsisEngine
from fared.protocols.isis.ids import Level, lsp_id
from fared.protocols.isis.origination.originate import Originator
from fared.protocols.isis.pdu.codec import encode_pdu
from fared.protocols.isis.pdu.model import Lsp
from tests.igp.engines import all_outputs
from tests.isis.net import Network, mac, system

SPINES, LEAVES = (1, 2), (11, 12, 13, 14)
_PSNP = 27


class Together(Network):
    """Engines whose packets come through ``receive``, as from a socket."""

    def deliver(self, end, frame) -> None:
        node = self.nodes[end[0]]
        if not node.stopped:
            node.engine.receive(iter((self.received(end, frame),)), self.now)
            self.transmit(node)


def fabric() -> Together:
    net = Together()
    for leaf in LEAVES:
        for spine in SPINES:
            net.join(leaf, spine)
    net.run(8)
    return net


def busy() -> tuple[list[object], list[dict]]:
    """Links come and go, a router restarts and one begins: all that is sent, and the databases."""
    net = fabric()
    net.set_up(net.cables[0], up=False)
    net.run(3)
    net.set_up(net.cables[0], up=True)
    net.restart(12)
    net.run(8)
    net.join(15, 1)
    net.join(15, 2)
    net.run(8)
    return net.trace, [net.database(number) for number in net.live()]


def test_everything_is_sent_as_by_engines_that_settle_each_time(monkeypatch):
    alone: list[bool] = []
    send_alone = IsisEngine._send_alone

    def counted(self):
        alone.append(send_alone(self))
        return alone[-1]

    monkeypatch.setattr(IsisEngine, "_send_alone", counted)
    found = busy()
    assert sum(alone) > 20
    monkeypatch.setattr(IsisEngine, "_send_alone", ProcessEngine._send_alone)
    assert busy() == found


class Copied:
    """A leaf that is settled, a copy of an LSP from a spine, and how often the leaf settles."""

    def __init__(self, monkeypatch) -> None:
        self.net = fabric()
        self.leaf = self.net.nodes[LEAVES[0]].engine
        (_, self.ifindex), (spine, far) = sorted(self.net.cables[0].ends, reverse=True)
        known = self.leaf.instance.databases[Level.TWO].get(lsp_id(system(LEAVES[1]), 0, 0))
        self.copy = PacketReceived(self.ifindex, mac(spine, far), 0x0180C2000015, known.raw)
        self.settled = 0
        settle = Originator.settle

        def counted(originator: Originator) -> None:
            self.settled += 1
            settle(originator)

        monkeypatch.setattr(Originator, "settle", counted)

    def receive(self) -> list:
        """Receive the copy; return what is sent at once."""
        self.leaf.receive(iter((self.copy,)), self.net.now)
        return list(all_outputs(self.leaf))


def test_a_copy_is_acknowledged_and_nothing_is_originated(monkeypatch):
    copied = Copied(monkeypatch)
    leaf = copied.leaf
    assert copied.receive() == []
    assert (copied.settled, leaf.settled) == (0, True)
    leaf.tick(leaf.next_deadline() + 1.0)
    sent = [output for output in all_outputs(leaf) if isinstance(output, SendPacket)]
    acknowledged = [one for one in sent if one.payload[4] & 0x1F == _PSNP]
    assert [one.ifindex for one in acknowledged] == [copied.ifindex]


def test_what_came_before_a_copy_or_with_it_is_settled(monkeypatch):
    copied = Copied(monkeypatch)
    link, settings = copied.net.nodes[LEAVES[0]].links[copied.ifindex]
    copied.leaf.handle(LinkChanged(link, replace(settings, metric=77)), copied.net.now)
    copied.receive()
    assert copied.settled > 0
    before = copied.settled
    newer = encode_pdu(Lsp(2, lsp_id(system(LEAVES[1]), 0, 0), 99, 1200, is_type=3))
    packets = copied.copy, replace(copied.copy, payload=newer)
    copied.leaf.receive(iter(packets), copied.net.now)
    list(all_outputs(copied.leaf))
    assert copied.settled > before


def test_a_router_that_starts_sees_with_each_copy_whether_it_is_complete(monkeypatch):
    copied = Copied(monkeypatch)
    copied.leaf.instance.starting = True
    copied.receive()
    assert copied.settled > 0
    assert not copied.leaf.instance.starting

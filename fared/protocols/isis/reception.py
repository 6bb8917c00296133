"""Received PDUs: checked, authenticated, decoded, and given to the part they are for.

A PDU that fails a check is counted and dropped (ISO 10589 §7.3.15); nothing of it is processed.
"""

from __future__ import annotations

from fared.core.wire import DecodeError
from fared.protocols.igp.counters import OTHER
from fared.protocols.igp.events import PacketReceived
from fared.protocols.igp.keys import Keyring
from fared.protocols.isis.adjacency.hello import HelloProtocol
from fared.protocols.isis.circuit import Circuit
from fared.protocols.isis.instance import Instance
from fared.protocols.isis.pdu.auth import verify
from fared.protocols.isis.pdu.codec import LSPS, decode_raw, peek_type, read_pdu
from fared.protocols.isis.pdu.model import Csnp, LanHello, P2pHello, PduType, Psnp
from fared.protocols.isis.update.flooding import Flooding

_HELLOS = (PduType.L1_LAN_HELLO, PduType.L2_LAN_HELLO, PduType.P2P_HELLO)


class Reception:
    """The way of a PDU from a circuit to the protocol."""

    def __init__(self, instance: Instance, hello: HelloProtocol, flooding: Flooding) -> None:
        self._instance = instance
        self._hello = hello
        self._flooding = flooding

    def receive(self, event: PacketReceived) -> None:
        """Take a PDU, or discard it (ISO 10589 §7.3.15, §8.2.5, §8.4.2)."""
        instance = self._instance
        circuit = instance.circuits.get(event.ifindex)
        if circuit is None or not circuit.is_active:
            return
        # our own multicast
        if event.source and event.source == circuit.link.hardware_address:
            return
        try:
            kind = self._take(circuit, event)
        except DecodeError as error:
            process, source = instance.process, event.source
            known = peek_type(event.payload)
            if known in _HELLOS:
                process.refusals.add(circuit, source, (error.code, None), process.now)
            label = OTHER if known is None else known.label
            process.reject(error.code, source, interface=circuit, kind=label, what=str(error))
        else:
            circuit.counters.received[kind.label] += 1

    def _take(self, circuit: Circuit, event: PacketReceived) -> PduType:
        """Decode, verify and dispatch; return the type. Raises DecodeError.

        LSPs go to the update process undecoded: it recognizes most of them as copies.
        """
        source, data = event.source, event.payload
        # §7.3.15.1: LSPs
        kind = peek_type(data)
        if kind in LSPS:
            self._flooding.receive(circuit, source, kind, data)
            return kind
        raw = read_pdu(data)
        pdu = decode_raw(raw, packed=True)
        # RFC 5304 §2, RFC 5310 §3.5: before anything of the PDU is used
        verify(raw, pdu, self._keys(circuit, raw.kind), self._instance.process.wall)
        match pdu:
            case P2pHello():
                self._hello.receive_p2p(circuit, event, pdu)
            case LanHello():
                self._hello.receive_lan(circuit, event, pdu)
            case Csnp():
                self._flooding.receive_csnp(circuit, source, pdu)
                self._hello.reacquirer.described(circuit, pdu)
            case Psnp():
                self._flooding.receive_psnp(circuit, source, pdu)
        return raw.kind

    def _keys(self, circuit: Circuit, kind: PduType) -> Keyring:
        # RFC 5304 §2: hellos under the keys of the link, SNPs under those of the level's LSPs
        if kind in _HELLOS:
            return circuit.settings.authentication
        return self._instance.settings.lsp_keys(kind.level)

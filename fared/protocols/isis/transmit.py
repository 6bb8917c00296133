"""Sending PDUs: the key that signs them, their destination, the counters.

They leave in the order of the calls. LSPs are sent as received or generated, except for the
remaining lifetime (ISO 10589 §7.3.14). Their originators have signed them; hellos and sequence
numbers PDUs are signed here.
"""

from __future__ import annotations

from fared.protocols.igp.events import SendPacket
from fared.protocols.igp.keys import AuthKey, Keyring, send_key
from fared.protocols.isis.circuit import Circuit
from fared.protocols.isis.ids import ALL_ISS, ALL_L1_ISS, ALL_L2_ISS, Level, format_lsp_id
from fared.protocols.isis.instance import Instance
from fared.protocols.isis.lsdb import StoredLsp
from fared.protocols.isis.pdu.auth import authentication_size
from fared.protocols.isis.pdu.codec import encode_pdu, peek_type, with_lifetime
from fared.protocols.isis.pdu.model import Csnp, LanHello, P2pHello, Psnp

LLC_SIZE = 3
"""Bytes of the 802.2 header, which count in the MTU of the link."""


def pdu_space(circuit: Circuit) -> int:
    """Bytes of the largest PDU that fits into a frame of this circuit."""
    return circuit.link.mtu - LLC_SIZE


class Transmitter:
    """Turns PDUs into SendPacket outputs; an inactive circuit sends nothing."""

    def __init__(self, instance: Instance) -> None:
        self._instance = instance
        self._process = instance.process
        self._too_large: set[tuple[int, int]] = set()
        self._hellos: dict[tuple[int, Level | None], tuple[LanHello | P2pHello, bytes]] = {}
        """The last unsigned hello of each circuit and level, and its bytes."""

    def hello_key(self, circuit: Circuit) -> AuthKey | None:
        """The key that signs the hellos of a circuit now; None: they are not authenticated."""
        return self._key(circuit.settings.authentication)

    def level_key(self, level: Level) -> AuthKey | None:
        """The key that signs LSPs and sequence number PDUs of a level now."""
        return self._key(self._instance.settings.lsp_keys(level))

    @property
    def lsp_mtu(self) -> int:
        """Bytes of the largest LSP of this router."""
        return self._instance.settings.lsp_mtu

    def authentication_size(self, level: Level) -> int:
        """Bytes that the authentication TLV takes in PDUs of a level, 0 without."""
        return authentication_size(self.level_key(level))

    def send_hello(self, circuit: Circuit, pdu: LanHello | P2pHello) -> None:
        """Sign and send a hello. The caller pads it: leave room for the authentication TLV."""
        keys = circuit.settings.authentication
        level = Level(pdu.level) if isinstance(pdu, LanHello) else None
        if not circuit.is_active or self._unsigned(circuit, keys):
            return
        if keys:
            self.send_signed(circuit, level, encode_pdu(pdu, self._key(keys)))
            return
        last = self._hellos.get((circuit.ifindex, level))
        if last is None or last[0] != pdu:
            last = self._hellos[circuit.ifindex, level] = pdu, encode_pdu(pdu)
        self.send_signed(circuit, level, last[1])

    def send(self, circuit: Circuit, level: Level, pdu: Csnp | Psnp) -> None:
        """Sign and send a sequence numbers PDU."""
        if self.is_open(circuit, level):
            self.send_signed(circuit, level, self.signed(level, pdu))

    def is_open(self, circuit: Circuit, level: Level) -> bool:
        """Whether sequence numbers PDUs can be sent; it is counted if they cannot be signed."""
        keys = self._instance.settings.lsp_keys(level)
        return circuit.is_active and not self._unsigned(circuit, keys)

    def signed(self, level: Level, pdu: Csnp | Psnp) -> bytes:
        """Encode and sign a sequence numbers PDU, which any circuit may carry."""
        return encode_pdu(pdu, self.level_key(level))

    def send_signed(self, circuit: Circuit, level: Level | None, payload: bytes) -> None:
        """Send a PDU that is encoded and signed."""
        kind = peek_type(payload)
        assert kind is not None
        circuit.counters.sent[kind.label] += 1
        self._process.emit(SendPacket(circuit.ifindex, _destination(circuit, level), payload))

    def send_lsp(self, circuit: Circuit, level: Level, entry: StoredLsp) -> bool:
        """Send an LSP, unchanged except for its remaining lifetime.

        Returns False, and counts it, if the circuit cannot carry a PDU of this size: the originator
        is configured for LSPs that not all links of the domain can carry (RFC 3719 §5).
        """
        if not circuit.is_active:
            return False
        if len(entry.raw) > pdu_space(circuit):
            self._refuse(circuit, entry)
            return False
        # ISO 10589 §7.3.16.3: one second less for each hop, but not zero, which would be a purge
        lifetime = entry.remaining_lifetime(self._process.now)
        lifetime = lifetime if entry.purged else max(1, lifetime - 1)
        self.send_signed(circuit, level, with_lifetime(entry.raw, lifetime))
        return True

    def forget(self, circuit: Circuit) -> None:
        """The circuit was removed, or its MTU changed: log refused LSPs again."""
        self._too_large = {item for item in self._too_large if item[0] != circuit.ifindex}
        for level in (None, *Level):
            self._hellos.pop((circuit.ifindex, level), None)

    def _key(self, keys: Keyring) -> AuthKey | None:
        timed = send_key(keys, self._process.wall)
        return None if timed is None else timed.key

    def _unsigned(self, circuit: Circuit, keys: Keyring) -> bool:
        """Whether a PDU would be sent without the configured authentication."""
        # RFC 5310 §3.4: without an active key the PDU is discarded
        if not keys or self._key(keys) is not None:
            return False
        self._process.reject("no-send-key", 0, interface=circuit)
        return True

    def _refuse(self, circuit: Circuit, entry: StoredLsp) -> None:
        self._process.counters.lsdb["too-large"] += 1
        mark = (circuit.ifindex, int(entry.lsp_id))
        if mark in self._too_large:
            return
        self._too_large.add(mark)
        self._process.log(
            "warning",
            "isis-lsp-too-large",
            interface=circuit.name,
            mtu=circuit.link.mtu,
            lsp=format_lsp_id(entry.lsp_id),
            size=len(entry.raw),
        )


def _destination(circuit: Circuit, level: Level | None) -> int:
    """RFC 5309 §4.1 for point-to-point circuits, ISO 10589 §8.4.8 for LANs."""
    if not circuit.broadcast or level is None:
        return ALL_ISS
    return ALL_L1_ISS if level is Level.ONE else ALL_L2_ISS

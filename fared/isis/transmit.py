"""PDUs on their way out: the key that signs them, the address they go to, the counters.

What is emitted here leaves in the order of the calls. LSPs go out as they came in or as they
were generated, with nothing but the remaining lifetime rewritten; they were signed by whoever
made them, so only hellos and sequence number PDUs are signed here.
"""

from __future__ import annotations

from fared.core.keys import AuthKey, Keyring, send_key
from fared.isis.auth import authentication_size
from fared.isis.circuit import Circuit
from fared.isis.events import SendPdu
from fared.isis.ids import ALL_ISS, ALL_L1_ISS, ALL_L2_ISS, Level, format_lsp_id
from fared.isis.instance import Instance
from fared.isis.lsdb import StoredLsp
from fared.isis.pdu.codec import encode_pdu, with_lifetime
from fared.isis.pdu.model import Csnp, LanHello, P2pHello, PduType, Psnp

LLC_SIZE = 3
"""Bytes of the 802.2 header, which count in the MTU of the link."""
_LABELS = {int(kind): kind.label for kind in PduType}
_TYPE_OFFSET = 4
_TYPE_MASK = 0x1F


def pdu_space(circuit: Circuit) -> int:
    """Bytes of the largest PDU that fits into a frame of this circuit."""
    return circuit.link.mtu - LLC_SIZE


class Transmitter:
    """Turns PDUs into SendPdu outputs; a circuit that does not speak sends nothing."""

    def __init__(self, instance: Instance) -> None:
        self._instance = instance
        self._too_large: set[tuple[int, int]] = set()

    def hello_key(self, circuit: Circuit) -> AuthKey | None:
        """The key that signs the hellos of a circuit now; None: they are not authenticated."""
        return self._key(circuit.settings.authentication)

    def level_key(self, level: Level) -> AuthKey | None:
        """The key that signs LSPs and sequence number PDUs of a level now."""
        return self._key(self._instance.settings.lsp_keys(level))

    def authentication_size(self, level: Level) -> int:
        """Bytes that the authentication TLV takes in PDUs of a level, 0 without."""
        return authentication_size(self.level_key(level))

    def send_hello(self, circuit: Circuit, pdu: LanHello | P2pHello) -> None:
        """Sign and send a hello. Padding is the caller's: leave room for the authentication TLV."""
        keys = circuit.settings.authentication
        level = Level(pdu.level) if isinstance(pdu, LanHello) else None
        if circuit.speaks and not self._unsigned(circuit, keys):
            self._emit(circuit, level, encode_pdu(pdu, self._key(keys)))

    def send(self, circuit: Circuit, level: Level, pdu: Csnp | Psnp) -> None:
        """Sign and send a sequence numbers PDU."""
        keys = self._instance.settings.lsp_keys(level)
        if circuit.speaks and not self._unsigned(circuit, keys):
            self._emit(circuit, level, encode_pdu(pdu, self._key(keys)))

    def send_lsp(self, circuit: Circuit, level: Level, entry: StoredLsp) -> bool:
        """Send an LSP as it is but for its remaining lifetime.

        Returns False, and counts it, if the circuit cannot carry a PDU of this size: its
        originator ignores that all links of the domain must carry its LSPs (ISO 10589 §7.3.4.2).
        """
        if not circuit.speaks:
            return False
        if len(entry.raw) > pdu_space(circuit):
            self._refuse(circuit, entry)
            return False
        # ISO 10589 §7.3.16.3: one second less at least for each hop; but zero is a purge.
        lifetime = entry.remaining_lifetime(self._instance.now)
        lifetime = lifetime if entry.purged else max(1, lifetime - 1)
        self._emit(circuit, level, with_lifetime(entry.raw, lifetime))
        return True

    def forget(self, circuit: Circuit) -> None:
        """The circuit is gone, or its MTU differs: what was said about it may be said again."""
        self._too_large = {item for item in self._too_large if item[0] != circuit.ifindex}

    def _key(self, keys: Keyring) -> AuthKey | None:
        timed = send_key(keys, self._instance.wall)
        return None if timed is None else timed.key

    def _unsigned(self, circuit: Circuit, keys: Keyring) -> bool:
        """Whether a PDU would have to leave without the authentication that is configured."""
        if not keys or self._key(keys) is not None:
            return False
        self._instance.reject("no-send-key", 0, interface=circuit.name)
        return True

    def _refuse(self, circuit: Circuit, entry: StoredLsp) -> None:
        self._instance.counters.lsps["too-large"] += 1
        mark = (circuit.ifindex, int(entry.lsp_id))
        if mark in self._too_large:
            return
        self._too_large.add(mark)
        self._instance.log(
            "warning",
            "isis-lsp-too-large",
            interface=circuit.name,
            mtu=circuit.link.mtu,
            lsp=format_lsp_id(entry.lsp_id),
            size=len(entry.raw),
        )

    def _emit(self, circuit: Circuit, level: Level | None, payload: bytes) -> None:
        label = _LABELS[payload[_TYPE_OFFSET] & _TYPE_MASK]
        self._instance.counters.pdus["sent", label] += 1
        self._instance.emit(SendPdu(circuit.ifindex, _destination(circuit, level), payload))


def _destination(circuit: Circuit, level: Level | None) -> int:
    """RFC 5309 §4.1 for point-to-point circuits, ISO 10589 §8.4.8 for LANs."""
    if not circuit.broadcast or level is None:
        return ALL_ISS
    return ALL_L1_ISS if level is Level.ONE else ALL_L2_ISS

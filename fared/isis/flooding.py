"""The update process (ISO 10589 §7.3): LSPs and sequence number PDUs in, flags and answers out.

Receiving decides and sets flags; ``flush`` sends. Order of business for a received LSP: the
engine asks ``wants`` before it decodes and verifies the body, since in a dense fabric most
LSPs arrive many times over; what is wanted comes back through ``receive_lsp``.
"""

from __future__ import annotations

import math

from fared.isis.circuit import Circuit
from fared.isis.database import Database, DatabaseWatcher
from fared.isis.ids import Level, LspId, format_lsp_id, lsp_id, system_of
from fared.isis.instance import Instance
from fared.isis.lsdb import Order, StoredLsp, compare
from fared.isis.outlet import OutletLevel
from fared.isis.pdu.codec import Former, exact, peek_lsp
from fared.isis.pdu.model import Csnp, Lsp, LspEntry, PduType, Psnp
from fared.isis.sender import Sender
from fared.isis.sequence import OwnSequences
from fared.isis.settings import IsisSettings
from fared.isis.snp import EarlyCsnps, SnpReader
from fared.isis.transmit import Transmitter

__all__ = ["DatabaseWatcher", "Flooding"]

SYNC_HOLD = 0.25
"""Seconds for which a new adjacency waits for the neighbor's CSNP before everything is sent."""
_SYNC_SOON = 0.05
_NEW_ON_LAN = 0.3
_HURRIED_SETS = 2
_CONTENTS = 12
"""Where the contents of an LSP begin, behind its remaining lifetime."""
_LIFETIME = 10
_SEQUENCE = 20
_FIXED = 27
_NONE_LEFT = bytes(2)
_TYPE = 4
_TYPE_MASK = 0x1F
_LEVELS = {int(PduType.L1_LSP): Level.ONE, int(PduType.L2_LSP): Level.TWO}


class Flooding:
    """Keeps the databases equal with those of the neighbors."""

    def __init__(
        self, instance: Instance, transmitter: Transmitter, watcher: DatabaseWatcher
    ) -> None:
        self._instance = instance
        self._sender = Sender(instance, transmitter)
        self._transmitter = transmitter
        self._database = Database(instance, transmitter, self._sender, watcher)
        self._sequences = OwnSequences(instance, self._database, watcher)
        self._early = EarlyCsnps(instance)
        self._snps = SnpReader(instance, self._sender, self._sequences)
        self._read_alike = -math.inf
        """Engine time up to which LSPs were decoded in another way."""

    # Received PDUs

    def wants(self, circuit: Circuit, source: int, raw: bytes) -> bool:
        """Whether a received LSP must be decoded, verified and handed to ``receive_lsp``.

        False: it has been dealt with, as nobody's business here (no adjacency) or as the copy
        byte for byte of the one we have, which needs no second look at its checksum and
        authentication: it was acknowledged, and is not sent back. ``raw`` may have bytes behind
        the PDU. Raises DecodeError if the fixed header is wrong.
        """
        entry = self._known(raw)
        level = entry[0] if entry is not None else Level(peek_lsp(raw).level)
        state = self._listening(circuit, level, source)
        if state is None:
            return False
        if entry is None:
            return True
        self._instance.counters.lsps["received"] += 1
        self._same(state, entry[1])
        return False

    def _known(self, raw: bytes) -> tuple[Level, StoredLsp] | None:
        """The LSP that we have of which this is a copy: a look-up, and two comparisons of bytes.

        In a dense fabric that is what happens most, so nothing is parsed for it.
        """
        level, entry = self._stored(raw)
        if (
            level is None
            or entry is None
            or raw[_CONTENTS : len(entry.raw)] != entry.raw[_CONTENTS:]
            or raw[:_LIFETIME] != entry.raw[:_LIFETIME]
            or (raw[_LIFETIME:_CONTENTS] == _NONE_LEFT) != entry.purged
        ):
            return None
        return level, entry

    def _stored(self, raw: bytes) -> tuple[Level | None, StoredLsp | None]:
        """The level of an LSP, None if it is not ours to keep, and what we have by its id."""
        if len(raw) < _FIXED:
            return None, None
        level = _LEVELS.get(raw[_TYPE] & _TYPE_MASK)
        database = None if level is None else self._instance.databases.get(level)
        if database is None:
            return None, None
        return level, database.get(LspId(int.from_bytes(raw[_CONTENTS:_SEQUENCE], "big")))

    def former(self, raw: bytes) -> Former | None:
        """The LSP that a received one may replace, if it was decoded as one is now.

        Of the fragments of a router with many links one TLV changes at a time.
        """
        _, entry = self._stored(raw)
        if entry is None or entry.own or entry.purged or entry.since <= self._read_alike:
            return None
        return Former(entry.raw, entry.lsp.tlvs)

    def receive_lsp(self, circuit: Circuit, source: int, lsp: Lsp, raw: bytes) -> None:
        """Process an LSP (§7.3.15.1) that was decoded, with a look at its checksum, and verified.

        ``raw`` may have bytes behind the PDU. Neither decoder nor verifier let an LSP come here
        that is garbled, or a purge that anybody could have made: such are counted and dropped,
        and nothing else, whatever ISO 10589 §7.3.14.2 e) says of purging them.
        """
        instance = self._instance
        level = Level(lsp.level)
        state = self._listening(circuit, level, source)
        if state is None:
            return
        if lsp.sequence_number == 0:
            shown = format_lsp_id(lsp.lsp_id)
            instance.reject("lsp-sequence", source, interface=circuit.name, lsp=shown)
            return
        instance.counters.lsps["received"] += 1
        entry = state.database.get(lsp.lsp_id)
        order = compare(entry, lsp)
        if entry is None or order is Order.NEWER:
            self._newer(state, entry, lsp, raw)
        elif order is Order.SAME:
            self._same(state, entry)
        elif order is Order.OLDER:
            instance.counters.lsps["older"] += 1
            state.repeat(entry, instance.now)
        else:
            self._confused(state, entry)
        self._sender.touch(state)

    def receive_csnp(self, circuit: Circuit, source: int, csnp: Csnp) -> None:
        """Learn what the neighbor has (§7.3.15.2)."""
        level = Level(csnp.level)
        if self._sender.find(circuit, level) is None and self._early.keep(circuit, csnp):
            return
        state = self._listening(circuit, level, source)
        if state is not None and self._is_neighbor(circuit, csnp):
            self._snps.read(state, csnp)

    def receive_psnp(self, circuit: Circuit, source: int, psnp: Psnp) -> None:
        """Take acknowledgments and requests; on a LAN they are for the designated IS alone."""
        level = Level(psnp.level)
        state = self._listening(circuit, level, source)
        if state is None or not self._is_neighbor(circuit, psnp):
            return
        if state.reliable or circuit.lan[level].is_dis:
            self._snps.read(state, psnp)

    # Circuits

    def adjacency_up(self, circuit: Circuit, level: Level) -> None:
        """Begin to synchronize with a neighbor (ISO 10589 §7.3.17).

        On a point-to-point circuit a set of CSNPs is sent, and SRM is set for the whole
        database; the LSPs themselves wait a moment for the CSNPs of the other side, which make
        most of them unnecessary. On a LAN the designated IS sends its CSNPs soon, others their
        own LSPs, since it may be ten seconds until somebody misses them.
        """
        state = self._sender.open(circuit, level)
        now = self._instance.now
        if state.reliable:
            for entry in state.database.ordered():
                state.set_srm(entry)
            state.begin_csnp()
            state.held_until = now + SYNC_HOLD
            for csnp in self._early.take(circuit, level):
                self._snps.read(state, csnp)
        elif circuit.lan[level].is_dis:
            state.csnp_hurry = _HURRIED_SETS
            state.csnp_due = min(state.csnp_due, now + _NEW_ON_LAN)
        else:
            mine = self._instance.system_id
            for entry in state.database.between(lsp_id(mine), lsp_id(mine, 0xFF, 0xFF)):
                state.set_srm(entry)
        self._sender.touch(state)

    def adjacency_down(self, circuit: Circuit, level: Level) -> None:
        """Forget what was to be sent, unless somebody is left on the circuit."""
        self._early.take(circuit, level)
        if not circuit.broadcast or not circuit.adjacencies(level):
            self._sender.close(circuit, level)

    def dis_changed(self, circuit: Circuit, level: Level) -> None:
        """Begin or end to send CSNPs on a LAN (§8.4.5)."""
        state = self._sender.find(circuit, level)
        if state is None or state.reliable:
            return
        if circuit.lan[level].is_dis:
            state.csnp_due = self._instance.now
            state.csnp_hurry = _HURRIED_SETS
            self._sender.touch(state)
        else:
            state.end_csnp()

    def circuit_removed(self, circuit: Circuit) -> None:
        """The circuit is gone or down."""
        for level in Level:
            self._early.take(circuit, level)
            self._sender.close(circuit, level)
        self._transmitter.forget(circuit)

    # Our own LSPs

    def next_sequence(self, level: Level, identifier: LspId) -> int | None:
        """The sequence number that the next issue of an LSP of ours must carry.

        One more than the highest ever used or heard. None: numbers are used up; the LSP has
        been purged and ``own_lsp_refresh`` tells when it may exist again.
        """
        return self._sequences.next(level, identifier)

    def install_own(self, level: Level, lsp: Lsp) -> StoredLsp:
        """Encode, sign, store and flood an LSP of ours.

        Its sequence number is that of ``next_sequence``, its checksum is filled in. Raises
        ValueError if the number does not fit into 32 bits or the LSP cannot be encoded.
        """
        self._sequences.used(level, lsp.lsp_id, lsp.sequence_number)
        self._instance.counters.lsps["originated"] += 1
        return self._database.install_generated(level, lsp)

    def purge_own(self, level: Level, identifier: LspId) -> StoredLsp | None:
        """Take back an LSP of ours, or one that only others still have; None: there is none."""
        entry = self._instance.databases[level].get(identifier)
        highest = self._sequences.highest(level, identifier)
        done = entry is not None and entry.purged and entry.sequence_number >= highest
        if highest == 0 or done:
            return None
        return self._database.purge(level, identifier, highest)

    def settings_changed(self, before: IsisSettings) -> None:
        """New settings are in force: other keys or lifetimes ask for other LSPs of ours."""
        after = self._instance.settings
        if before.path_capacity_code != after.path_capacity_code:
            self._read_alike = self._instance.now
        if (before.lsp_authentication, before.lsp_lifetime, before.lsp_refresh_interval) != (
            after.lsp_authentication,
            after.lsp_lifetime,
            after.lsp_refresh_interval,
        ):
            self._database.refresh_own()

    def awaited(self) -> int:
        """How many LSPs neighbors have newer than we, summed over circuits: start-up waits."""
        outlets = self._sender.outlets.values()
        return sum(len(state.requests) for o in outlets for state in o.levels.values())

    def flush(self, *, force: bool = False) -> None:
        """Send what is due; ``force``: and everything that waits for its turn, on shutdown."""
        self._sender.flush(force=force)

    # Decisions

    def _listening(self, circuit: Circuit, level: Level, source: int) -> OutletLevel | None:
        """The outlet of whom it came from; None, and counted, without an adjacency."""
        state = self._sender.find(circuit, level)
        if state is not None and circuit.broadcast:
            lan = circuit.lan.get(level)
            adjacency = None if lan is None else lan.adjacencies.get(source)
            if adjacency is None or not adjacency.up:
                state = None
        if state is None:
            self._instance.counters.errors["no-adjacency"] += 1
        elif state.reliable:
            # He speaks: his CSNPs came before, were lost, or are close behind.
            state.held_until = min(state.held_until, self._instance.now + _SYNC_SOON)
        return state

    def _is_neighbor(self, circuit: Circuit, snp: Csnp | Psnp) -> bool:
        """Whether an SNP on a point-to-point circuit is from the neighbor there."""
        adjacency = circuit.adjacency
        if circuit.broadcast or (
            adjacency is not None and adjacency.system_id == snp.source_id >> 8
        ):
            return True
        self._instance.counters.errors["no-adjacency"] += 1
        return False

    def _newer(self, state: OutletLevel, entry: StoredLsp | None, lsp: Lsp, raw: bytes) -> None:
        purge = lsp.remaining_lifetime == 0
        counters = self._instance.counters.lsps
        if system_of(lsp.lsp_id) == self._instance.system_id:
            if not purge or (entry is not None and not entry.purged):
                # §7.3.15.1 b), c): nobody but us says what our LSPs are
                self._sequences.heard(state.level, lsp.lsp_id, lsp.sequence_number)
                return
            self._sequences.note(state.level, lsp.lsp_id, lsp.sequence_number)
        if entry is None and purge:
            # §7.3.16.4 a): acknowledged, not kept, not passed on
            counters["purges-of-unknown"] += 1
            if state.reliable:
                header = LspEntry(lsp.lsp_id, lsp.sequence_number, 0, lsp.checksum)
                state.set_ssn(lsp.lsp_id, None, header)
            return
        counters["purged" if purge else "installed"] += 1
        self._database.install_received(state, lsp, exact(raw))

    def _same(self, state: OutletLevel, entry: StoredLsp) -> None:
        """§7.3.15.1 e) 2)."""
        self._instance.counters.lsps["duplicates"] += 1
        sent = state.clear_srm(entry)
        state.requests.pop(entry.lsp_id, None)
        # Copies that cross acknowledge each other: the neighbor clears its SRM for ours.
        if state.reliable and not sent:
            state.set_ssn(entry.lsp_id, entry)
            self._sender.touch(state)

    def _confused(self, state: OutletLevel, entry: StoredLsp) -> None:
        """§7.3.16.2: same number, other contents. Ours gets a new number, others' are purged."""
        self._instance.counters.lsps["confused"] += 1
        if entry.own:
            self._sequences.heard(state.level, entry.lsp_id, entry.sequence_number)
        else:
            self._database.purge(state.level, entry.lsp_id, entry.sequence_number)

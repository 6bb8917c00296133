"""The last PDUs that arrived, to recognize copies of them in the slots of ``Frames``.

An LSP comes from all neighbors, and most of them pass LSPs on in the order in which they received
them. So the PDUs are kept as ``Frames`` has them, in the order of their first arrival: if all
frames that were read hold copies in this order, they are compared at once.

A fast path beside ``IsisSockets._packet``: tests/kernel/test_frames.py proves them equal; row
``IS-IS: frames that are copies``.
"""

from __future__ import annotations

from fared.kernel.frames import Frames


class RecentPdus:
    """At most ``most`` PDUs, each with a key that begins its slot; equal ones are one object."""

    def __init__(self, frames: Frames, most: int) -> None:
        self._frames = frames
        self._kept = memoryview(bytearray(most * frames.size))
        self.places: dict[bytes, int] = {}
        """The places of PDUs in this order, by their keys."""
        self._slots: list[memoryview] = []
        """What is kept of each."""
        self._lengths: list[int] = []
        self._payloads: list[bytes] = []

    def clear(self) -> None:
        """Forget all PDUs."""
        self.places.clear()
        self._slots.clear()
        self._lengths.clear()
        self._payloads.clear()

    def __len__(self) -> int:
        return len(self._payloads)

    def add(self, key: bytes, slot: int, length: int, payload: bytes) -> None:
        """Remember a PDU, which came in this slot in a frame of this length."""
        size, place = self._frames.size, len(self._payloads)
        memory = memoryview(self._frames.memory)
        kept = self._kept[place * size : (place + 1) * size]
        kept[:] = memory[slot * size : (slot + 1) * size]
        self.places[key] = place
        self._slots.append(kept)
        self._lengths.append(length)
        self._payloads.append(payload)

    def in_order(self, place: int, lengths: list[int]) -> list[bytes]:
        """The PDUs from a place on, if all slots hold copies of them in this order; else nothing.

        ``lengths`` are those of the frames.
        """
        end, size = place + len(lengths), self._frames.size
        same = lengths == self._lengths[place:end] and self._frames.memory.startswith(
            self._kept[place * size : end * size]
        )
        return self._payloads[place:end] if same else []

    def copy(self, place: int, slot: int, length: int) -> bytes | None:
        """The PDU at a place, if a slot with a frame of this length holds a copy of it."""
        if place >= len(self._lengths) or self._lengths[place] != length:
            return None
        frames = self._frames
        same = frames.memory.startswith(self._slots[place], slot * frames.size)
        return self._payloads[place] if same else None

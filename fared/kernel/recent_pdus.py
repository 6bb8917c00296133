"""The last PDUs that arrived, to recognize copies of them in the slots of ``Frames``.

An LSP comes from all neighbors, and most of them pass LSPs on in the order in which they received
them. So the PDUs are kept as ``Frames`` has them, in the order of their first arrival: of frames
that hold copies of some that followed each other, all are compared at once. Copies in any other
order are found one by one.
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
        self._lengths: list[int] = []
        self._payloads: list[bytes] = []

    def clear(self) -> None:
        """Forget all PDUs."""
        self.places.clear()
        self._lengths.clear()
        self._payloads.clear()

    def __len__(self) -> int:
        return len(self._payloads)

    def add(self, key: bytes, slot: int, length: int, payload: bytes) -> None:
        """Remember a PDU, which came in this slot in a frame of this length."""
        size, place = self._frames.size, len(self._payloads)
        memory = memoryview(self._frames.memory)
        self._kept[place * size : (place + 1) * size] = memory[slot * size : (slot + 1) * size]
        self.places[key] = place
        self._lengths.append(length)
        self._payloads.append(payload)

    def copies(self, place: int, slot: int, lengths: list[int]) -> tuple[bytes, ...]:
        """The PDUs from ``place`` on that frames from ``slot`` on are copies of, from one sender.

        All that are, or half of them; none, if the first frame is not a copy. ``lengths`` are
        those of the frames.
        """
        frames, size = self._frames, self._frames.size
        count = min(len(self._payloads) - place, len(lengths) - slot)
        while count:
            end = place + count
            if (
                lengths[slot : slot + count] == self._lengths[place:end]
                and frames.memory.startswith(self._kept[place * size : end * size], slot * size)
                and frames.alike(slot, count)
            ):
                return tuple(self._payloads[place:end])
            count //= 2
        return ()

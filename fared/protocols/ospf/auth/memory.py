"""Authentication state of an interface: sequence numbers received, and keys in use."""

from __future__ import annotations

from fared.protocols.igp.keys import AuthKey

Slot = tuple[int, int, int]
"""Key of a sequence number: router id, key id, packet type."""


class InterfaceAuthentication:
    """The highest sequence numbers received, the neighbors' keys, and the key that signs here.

    ``logged`` is the last key that was logged, and whether it was valid.
    """

    __slots__ = ("current", "highest", "logged", "received")

    def __init__(self) -> None:
        self.highest: dict[Slot, int] = {}
        self.received: dict[int, tuple[AuthKey, float]] = {}
        """By router id: the key of its last packet, and the time of the first packet with it."""
        self.current: AuthKey | None = None
        self.logged: tuple[AuthKey | None, bool] | None = None

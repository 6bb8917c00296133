"""Grace LSA (RFC 3623 appendix A): a link-local opaque LSA that announces a graceful restart."""

# Annotations are evaluated here, not text: TLVs are read from them when a body is decoded.
import enum
from typing import Annotated, Any, Self

from fared.core.ids import dotted
from fared.core.json_text import unknown_document
from fared.core.text import type_name
from fared.core.wire import U8, U32, DecodeError
from fared.protocols.ospf.packet.tlv import Json, TlvBody, fixed


class RestartReason(enum.IntEnum):
    """Why a router restarts (RFC 3623 appendix A)."""

    UNKNOWN = 0
    SOFTWARE_RESTART = 1
    SOFTWARE_UPGRADE = 2
    SWITCH_TO_REDUNDANT = 3

    @property
    def planned(self) -> bool:
        """Whether the router sent its grace LSA before the restart."""
        return self in (RestartReason.SOFTWARE_RESTART, RestartReason.SOFTWARE_UPGRADE)


def restart_reason(value: int) -> str:
    """``software-restart``, or ``type-42`` for a reason without a name here."""
    return type_name(RestartReason, value)


class GraceLsa(TlvBody, frozen=True):
    """The body: ``period`` in seconds from the origination, ``reason`` as received.

    ``address`` is that of the restarting router's interface, on broadcast networks.
    """

    period: Annotated[int, fixed(1, U32)]
    reason: Annotated[int, fixed(2, U8)] = int(RestartReason.UNKNOWN)
    address: Annotated[int | None, fixed(3, U32)] = None

    @classmethod
    def _made(
        cls, found: dict[str, Any], unknown: tuple[tuple[int, bytes], ...], start: int
    ) -> Self:
        if "period" not in found:
            raise DecodeError("tlv", start, "grace LSA without a grace period")
        return super()._made(found, unknown, start)

    def document(self) -> Json:
        """Return the fields, and the name of the reason."""
        return {
            "grace_period": self.period,
            "reason": self.reason,
            "reason_name": restart_reason(self.reason),
            "address": None if self.address is None else dotted(self.address),
            "unknown": unknown_document(self.unknown),
        }

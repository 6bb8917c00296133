"""Inputs and outputs of a whole router, in addition to those of its engines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from fared.core.bfd import BfdChanged, BfdWanted
from fared.core.streams import StreamInput, StreamOutput
from fared.paths.fib.model import FibOperation, FibState, ForeignChanges, OperationResult
from fared.protocols.igp import events as igp
from fared.router.convergence import ConvergenceRecord, SpfRecord, StageTimes
from fared.router.lost import LostLink
from fared.router.settings import RouterSettings

if TYPE_CHECKING:
    from fared.paths.fib.bier import BierFib
    from fared.paths.fib.spray import SprayOperation, SprayState


class FibAdopted(msgspec.Struct, frozen=True):
    """The state of the kernel before this process computed anything."""

    state: FibState


class FibAudited(msgspec.Struct, frozen=True):
    """The present state of the kernel: the router repairs every difference."""

    state: FibState


class FibDamaged(msgspec.Struct, frozen=True):
    """Other programs deleted or changed objects of ours: the router writes them again."""

    changes: ForeignChanges


class PlannedChange(msgspec.Struct, frozen=True):
    """A computed change on its way to the kernel, for ``show convergence``."""

    record: SpfRecord
    since: float
    planned: float
    stages: StageTimes

    def done(self, operations: int, programmed: float, now: float) -> ConvergenceRecord:
        """Complete the record after the kernel has executed ``operations``."""
        record = self.record
        return ConvergenceRecord(
            at=record.at,
            causes=record.causes,
            spf_ran=record.spf_ran,
            routes=record.routes,
            operations=operations,
            detected=self.stages.detected,
            originated=self.stages.originated,
            flooded=self.stages.flooded,
            waited=max(0.0, record.at - self.since),
            computed=record.computed,
            spf=record.spf,
            weighed=record.computed - record.spf,
            planned=self.planned,
            programmed=programmed,
            total=max(0.0, now - self.since),
        )


class ApplyFib(msgspec.Struct, frozen=True):
    """Output: apply these operations in order and answer with FibApplied."""

    operations: tuple[FibOperation, ...]
    cause: str
    change: PlannedChange | None = None


class FibApplied(msgspec.Struct, frozen=True):
    """The kernel's answers to an ``ApplyFib``, and the seconds they took."""

    request: ApplyFib
    results: tuple[OperationResult, ...]
    seconds: float = 0.0


class ApplySpray(msgspec.Struct, frozen=True):
    """Output: apply these operations as one change and answer with SprayApplied."""

    operations: tuple[SprayOperation, ...]


class SprayApplied(msgspec.Struct, frozen=True):
    """The answer to an ``ApplySpray``. After an ``error`` the state of the kernel, if known."""

    error: str = ""
    state: SprayState | None = None


class SprayAdopted(msgspec.Struct, frozen=True):
    """What a former process left of sprayed packets, before this one changed anything."""

    state: SprayState


class SprayAudited(msgspec.Struct, frozen=True):
    """What the kernel holds of sprayed packets: the router repairs every difference."""

    state: SprayState


class ApplyBier(msgspec.Struct, frozen=True):
    """Output: write this state of BIER as one change and answer with BierApplied."""

    fib: BierFib


class BierApplied(msgspec.Struct, frozen=True):
    """The answer to an ``ApplyBier``; ``error``: why nothing has changed."""

    error: str = ""


class BierAdopted(msgspec.Struct, frozen=True):
    """The kernel was read; ``highest`` is the highest mark of a former process, or 0."""

    highest: int = 0


class BierAudited(msgspec.Struct, frozen=True):
    """The kernel was read again; ``intact``: it holds what this process has written."""

    intact: bool


class LinksKnown(msgspec.Struct, frozen=True):
    """LinkChanged has been sent for every link that exists at start."""


class LostLinksKnown(msgspec.Struct, frozen=True):
    """The links that a former process knew to be lost, the earliest first."""

    links: tuple[LostLink, ...]


class RouterSettingsApplied(msgspec.Struct, frozen=True):
    """New settings after a reload; interfaces whose own settings changed come separately."""

    settings: RouterSettings


class WithdrawRequested(msgspec.Struct, frozen=True):
    """Remove every route, group and next hop of ours: the last act of a clean exit."""


class To(msgspec.Struct, frozen=True):
    """Input for the engine of one protocol."""

    proto: str
    event: (
        igp.PacketReceived | igp.LinkChanged[Any] | BfdChanged | igp.NeighborCleared | StreamInput
    )


ToAll = (
    igp.LinkRemoved
    | igp.LoadsMeasured
    | igp.ShutdownRequested
    | igp.GracefulRestartRequested
    | igp.GracefulRestartBegun
    | igp.LimitsReset
    | igp.ExternalRoutes
    | igp.InformationOffered
)
"""Inputs that concern every engine."""

BierInput = BierAdopted | BierAudited | BierApplied
SprayInput = SprayAdopted | SprayAudited | SprayApplied

Input = (
    To
    | ToAll
    | FibAdopted
    | FibAudited
    | FibDamaged
    | FibApplied
    | SprayInput
    | BierInput
    | LinksKnown
    | LostLinksKnown
    | RouterSettingsApplied
    | WithdrawRequested
)


class From(msgspec.Struct, frozen=True):
    """Output of the engine of one protocol."""

    proto: str
    event: (
        igp.SendPacket
        | igp.OpenInterface
        | igp.CloseInterface
        | igp.AdjacencyChanged
        | igp.InformationUpdated
        | BfdWanted
        | StreamOutput
    )


class StageReached(msgspec.Struct, frozen=True):
    """A start-up stage was reached, ``seconds`` after the router began."""

    stage: str
    seconds: float


class Computed(msgspec.Struct, frozen=True):
    """The solver ran."""

    record: SpfRecord


class Converged(msgspec.Struct, frozen=True):
    """A change has reached the kernel."""

    record: ConvergenceRecord


Output = (
    From | igp.LogRecord | ApplyFib | ApplySpray | ApplyBier | StageReached | Computed | Converged
)

"""Inputs and outputs of a whole router, on top of those of its engine."""

from __future__ import annotations

from dataclasses import dataclass

from fared.fib.model import FibOperation, FibState, OperationResult
from fared.isis import events as isis
from fared.ospf import events as ospf
from fared.router.convergence import ConvergenceRecord, Lead, SpfRecord
from fared.router.settings import RouterSettings


@dataclass(frozen=True, slots=True)
class FibAdopted:
    """What the kernel held of ours before this process computed anything."""

    state: FibState


@dataclass(frozen=True, slots=True)
class FibAudited:
    """What the kernel holds now: the router repairs every difference."""

    state: FibState


@dataclass(frozen=True, slots=True)
class Change:
    """A computed change on its way to the kernel: what ``show convergence`` will tell of it."""

    record: SpfRecord
    since: float
    planned: float
    lead: Lead

    def done(self, operations: int, programmed: float, now: float) -> ConvergenceRecord:
        """What it took in all, now that the kernel has answered ``operations`` of it."""
        record = self.record
        return ConvergenceRecord(
            at=record.at,
            causes=record.causes,
            spf_ran=record.spf_ran,
            routes=record.routes,
            operations=operations,
            detected=self.lead.detected,
            originated=self.lead.originated,
            flooded=self.lead.flooded,
            waited=max(0.0, record.at - self.since),
            computed=record.computed,
            spf=record.spf,
            weighed=record.computed - record.spf,
            planned=self.planned,
            programmed=programmed,
            total=max(0.0, now - self.since),
        )


@dataclass(frozen=True, slots=True)
class ApplyFib:
    """Output: apply these operations in order and answer with FibApplied."""

    operations: tuple[FibOperation, ...]
    cause: str
    change: Change | None = None


@dataclass(frozen=True, slots=True)
class FibApplied:
    """The kernel's answers to an ``ApplyFib``, and the seconds it took."""

    request: ApplyFib
    results: tuple[OperationResult, ...]
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class LinksKnown:
    """Every link that exists at start has been announced with LinkChanged."""


@dataclass(frozen=True, slots=True)
class RouterSettingsApplied:
    """New settings after a reload; interfaces whose own settings changed come separately."""

    settings: RouterSettings


@dataclass(frozen=True, slots=True)
class WithdrawRequested:
    """Remove every route, group and next hop of ours: the last act of a clean exit."""


EngineInput = (
    ospf.PacketReceived
    | ospf.LinkChanged
    | isis.PduReceived
    | isis.CircuitChanged
    | ospf.LinkRemoved
    | ospf.LoadMeasured
    | ospf.ShutdownRequested
    | ospf.ExternalRoutes
)

Input = (
    EngineInput
    | FibAdopted
    | FibAudited
    | FibApplied
    | LinksKnown
    | RouterSettingsApplied
    | WithdrawRequested
)


@dataclass(frozen=True, slots=True)
class StageReached:
    """A start-up stage was reached, ``seconds`` after the router began."""

    stage: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Computed:
    """The solver ran."""

    record: SpfRecord


@dataclass(frozen=True, slots=True)
class Converged:
    """A change has arrived in the kernel."""

    record: ConvergenceRecord


Output = (
    ospf.SendPacket
    | ospf.JoinGroup
    | ospf.LeaveGroup
    | ospf.NeighborChanged
    | isis.SendPdu
    | isis.OpenCircuit
    | isis.CloseCircuit
    | isis.AdjacencyChanged
    | ospf.LogRecord
    | ApplyFib
    | StageReached
    | Computed
    | Converged
)

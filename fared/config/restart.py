"""The ``graceful-restart`` sections of the protocols."""

from __future__ import annotations

from fared.config import quantities
from fared.config.section import Section
from fared.protocols.igp.restart import ISIS_GRACE_PERIOD, OSPF_GRACE_PERIOD


class IsisGracefulRestart(Section, frozen=True):
    """Graceful restart of IS-IS (RFC 8706). ``enabled``: of this router, ``helper``: of neighbors.

    ``grace_period``: seconds that a restart of this router takes at most. ``suppress_adjacency``:
    neighbors are not to advertise this router, when it starts, before it has their databases.
    """

    enabled: bool = False
    grace_period: quantities.WholeSeconds = ISIS_GRACE_PERIOD
    helper: bool = False
    strict_lsp_checking: bool = True
    suppress_adjacency: bool = False


class OspfGracefulRestart(Section, frozen=True):
    """Graceful restart of OSPF (RFC 3623). ``enabled``: of this router, ``helper``: of neighbors.

    ``grace_period``: seconds that a restart of this router takes at most,
    ``supported_grace_time``: seconds for which this router helps a neighbor at most,
    however often that announces another restart.
    """

    enabled: bool = False
    grace_period: quantities.WholeSeconds = OSPF_GRACE_PERIOD
    helper: bool = False
    strict_lsa_checking: bool = True
    planned_only: bool = False
    supported_grace_time: quantities.WholeSeconds = OSPF_GRACE_PERIOD

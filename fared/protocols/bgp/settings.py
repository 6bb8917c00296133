"""Settings of the BGP engine, resolved and typed.

Neighbors of numbered links are settings of the engine: each is reached over the link whose network
has its address. The neighbor of an unnumbered link comes with the settings of that link. This
module imports nothing else of BGP, so that the configuration can read its defaults.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal

import msgspec
from msgspec.structs import replace

from fared.core.bfd import BfdSettings
from fared.core.filters import Filter
from fared.core.ids import Prefix, RouterId
from fared.core.routes import ORIGIN_TAGS, RouteSource
from fared.core.streams import BGP_PORT, StreamKey
from fared.paths.te.advertise import DEFAULT_ADVERTISE, AdvertiseSettings

EXTERNAL: Final = "external"
INTERNAL: Final = "internal"
PREFERENCE: Final = 20
INTERNAL_PREFERENCE: Final = 200
"""Of routes that internal neighbors told; both as in other daemons."""
SendTypes = Literal["transitive", "non-transitive", "both", "none"]
Missing = Literal["link", "ecmp"]
Value = Literal["path", "share"]
ImportWord = Literal["all"]
ExportWord = Literal["own", "igp", "bgp", "all"]


class PathBandwidthSettings(msgspec.Struct, frozen=True):
    """What a session says, and hears, of path bandwidth (RFC 10005).

    ``send``: types of the Link Bandwidth communities (§3.1). ``receive`` False: theirs are ignored.
    ``missing``: a path without one weighs as its link, or all paths of the prefix weigh equally
    (§4). ``value`` share: a host is told its part of what all hosts find here.
    """

    send: SendTypes = "transitive"
    receive: bool = True
    missing: Missing = "link"
    value: Value = "path"


class BgpNeighborSettings(msgspec.Struct, frozen=True):
    """One neighbor; times in seconds.

    ``address`` is text; None: the neighbor of an unnumbered link. ``local``: the address to send
    from, None: that of the link. ``remote_as``: a number, ``external`` or ``internal``. ``key``: of
    TCP MD5. ``ttl_security``: both ends send and require TTL 255 (RFC 5082). ``hold_time`` 0: no
    keepalives.

    ``imports`` and ``exports`` None: everything with an internal neighbor, nothing with an external
    one (RFC 8212); of ``exports``, ``own`` are networks of this router, ``bgp`` what other
    neighbors told, ``igp`` what is redistributed. Filters: only prefixes that all of them permit.

    ``maximum_prefixes``: beyond it, the session ends, and begins again after ``restart_after``;
    None: no limit. ``min_path_bandwidth``, bytes/s: prefixes that carry less are withdrawn from the
    neighbor, until they carry somewhat more again. ``enabled`` False: shut down, with the
    ``description`` as text for the neighbor's operator (RFC 9003).
    """

    address: str | None = None
    local: str | None = None
    remote_as: int | Literal["external", "internal"] = EXTERNAL
    enabled: bool = True
    passive: bool = False
    port: int = BGP_PORT
    families: tuple[int, ...] = (4, 6)
    hold_time: int = 9
    keepalive: float = 3.0
    connect_retry: float = 1.0
    enforce_first_as: bool = True
    ttl_security: bool = False
    key: StreamKey | None = None
    imports: tuple[ImportWord, ...] | None = None
    exports: tuple[ExportWord, ...] | None = None
    import_filters: tuple[Filter, ...] = ()
    export_filters: tuple[Filter, ...] = ()
    maximum_prefixes: int | None = 100_000
    restart_after: float = 300.0
    path_bandwidth: PathBandwidthSettings = PathBandwidthSettings()
    min_path_bandwidth: float | None = None
    bfd: BfdSettings | None = None
    description: str = ""

    def __repr__(self) -> str:
        return f"BgpNeighborSettings({self.address or 'unnumbered'}, {self.remote_as})"


class BgpLinkSettings(msgspec.Struct, frozen=True):
    """One link: every one that neighbors may be reached over, or whose networks are announced.

    ``neighbor``: the one of an unnumbered link. ``advertise``: the networks of the link are this
    router's own, as if listed in ``networks``. ``capacity`` (bytes/s) overrides the link's own.
    ``share``: the part of it that is announced; less than 1 on a derated link. ``delay``: seconds.
    """

    neighbor: BgpNeighborSettings | None = None
    advertise: bool = False
    capacity: float | None = None
    share: float = 1.0
    delay: float | None = None


class BgpRestartSettings(msgspec.Struct, frozen=True):
    """Graceful restart (RFC 4724); times in seconds.

    ``enabled``: neighbors are told that this router keeps forwarding while it restarts, for
    ``restart_time`` at most. ``helper``: routes of a neighbor that restarts are kept until it has
    told them again, ``stale_time`` at most after its session is up again.
    """

    enabled: bool = False
    restart_time: int = 120
    helper: bool = True
    stale_time: float = 360.0


class BgpRedistribution(msgspec.Struct, frozen=True):
    """How routes of one source are announced: to neighbors with the export word ``igp``.

    ``med``: None: without. ``tag``: only routes with this tag, None: with any. ``filters``: only
    routes that all of these permit.
    """

    med: int | None = None
    tag: int | None = None
    filters: tuple[Filter, ...] = ()


_NOTHING: Final[Mapping[str, BgpRedistribution]] = MappingProxyType({})


class BgpSettings(msgspec.Struct, frozen=True):
    """Settings of the engine.

    ``networks``: prefixes that this router originates; one that is the network of a link is
    originated while that link is up, with its capacity. ``families``: those routed. ``relax``: of
    AS paths only the length is compared (RFC 7938 §6.2). ``redistribute``: by source, such as
    ``static`` or the name of a protocol. ``port``: connections of neighbors are accepted there.
    ``follows_load``: weights follow what load leaves of paths, and neighbors are told of it.
    ``demand``, bytes/s: of all neighbors that are told a share; None: the capacity of their links.
    """

    local_as: int
    router_id: RouterId
    hostname: str | None = None
    families: tuple[int, ...] = (4, 6)
    neighbors: tuple[BgpNeighborSettings, ...] = ()
    networks: tuple[Prefix, ...] = ()
    redistribute: Mapping[str, BgpRedistribution] = _NOTHING
    max_paths: int = 64
    relax: bool = True
    graceful_restart: BgpRestartSettings = BgpRestartSettings()
    advertise: AdvertiseSettings = DEFAULT_ADVERTISE
    internal_preference: int = INTERNAL_PREFERENCE
    port: int = BGP_PORT
    drained: bool = False
    follows_load: bool = False
    demand: float | None = None
    epoch: float = 0.0
    """Wall-clock time, seconds since 1970, at ``now`` 0."""

    @property
    def redistributed(self) -> Mapping[RouteSource, int]:
        """The other protocols that are redistributed; BGP passes on no tags of theirs."""
        return {source: 0 for source in ORIGIN_TAGS if source.value in self.redistribute}

    def with_clock(self, epoch: float, boot_count: int) -> BgpSettings:
        """The same with the clock offset; sessions need no boot count."""
        del boot_count
        return replace(self, epoch=epoch)

    def drain(self) -> BgpSettings:
        """The same, drained: neighbors prefer any other path (RFC 8326)."""
        return replace(self, drained=True)

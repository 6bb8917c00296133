"""The interface of saved databases to the offline commands, for either protocol."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from fared.core.ids import NodeId, Prefix
from fared.extensions.offline.changes import Changes
from fared.extensions.offline.ignored import Ignored
from fared.management.documents.each import OwnPrefixes
from fared.paths.rib.settings import SolverSettings
from fared.paths.ted.events import BierUpdated
from fared.paths.ted.links import Blocks
from fared.paths.ted.model import LocalLink, NodeBlock
from fared.router.settings import RouterSettings

Natural = Annotated[int, Field(ge=0, le=0xFFFFFFFF, strict=True)]


class FileError(ValueError):
    """The document is not a database; the text names the place and the error."""


class SavedPart(BaseModel):
    """A part of ``fared-lsdb/1``; unknown keys are ignored."""

    model_config = ConfigDict(extra="ignore", allow_inf_nan=False)


class SavedDatabase(ABC):
    """A whole file. An area is an OSPF area id or an IS-IS level."""

    proto: str
    families: tuple[int, ...]

    @property
    @abstractmethod
    def own(self) -> NodeId:
        """The router on which the database was saved."""

    @property
    @abstractmethod
    def areas_known(self) -> list[int]:
        """The areas or levels of the file."""

    @abstractmethod
    def world(self, area: int | None, family: int, changes: Changes) -> World:
        """One area, or all, after some changes, for an address family."""


class World(ABC):
    """A database after some changes, from which routes of any root can be computed.

    ``blocks`` are the nodes by area and ``ignored`` the ignored parts, as far as they do not depend
    on the root; a node that is unreachable from a root is not in ``ignored``.
    """

    family: int
    max_metric: int
    blocks: Mapping[int, Blocks]
    ignored: tuple[Ignored, ...]

    @abstractmethod
    def seen_from(self, root: NodeId) -> Mapping[int, Blocks]:
        """The blocks of a root's areas, as the root uses them."""

    @abstractmethod
    def local_links(self, area: int, root: NodeId, blocks: Blocks) -> tuple[LocalLink, ...]:
        """The links over which a root can forward."""

    @abstractmethod
    def router_settings(self, root: NodeId, solver: SolverSettings) -> RouterSettings:
        """The settings of a router that is this root."""

    @abstractmethod
    def bier(self) -> Iterator[BierUpdated]:
        """What routers advertise of BIER, by area."""

    @property
    def nodes(self) -> list[NodeId]:
        """All routers and networks of the database, ascending."""
        return sorted({node for blocks in self.blocks.values() for node in blocks})

    @property
    def routers(self) -> list[NodeId]:
        """All routers of the database, ascending."""
        return [node for node in self.nodes if not self.is_network(node)]

    def is_network(self, node: NodeId) -> bool:
        """Whether a vertex is a transit network or a pseudonode."""
        return any(block.network for block in self.described(node))

    def advertised_by(self, node: NodeId, prefix: Prefix) -> OwnPrefixes:
        """What a router advertises of a prefix, by area, with what it leaks."""
        return {
            area: tuple(item for item in blocks[node].prefixes if item.prefix == prefix)
            for area, blocks in self.blocks.items()
            if node in blocks
        }

    def described(self, node: NodeId) -> Iterator[NodeBlock]:
        """The blocks of a node, in all areas."""
        return (blocks[node] for blocks in self.blocks.values() if node in blocks)

    @property
    def hostnames(self) -> dict[NodeId, str]:
        """Dynamic hostnames (RFC 5642, RFC 5301)."""
        return {
            node: block.hostname
            for blocks in self.blocks.values()
            for node, block in blocks.items()
            if block.hostname
        }

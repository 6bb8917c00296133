"""What a saved database is to the offline commands, whatever protocol it is of."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from fared.core.ids import NodeId
from fared.rib.settings import SolverSettings
from fared.router.settings import RouterSettings
from fared.ted.model import LocalLink, NodeBlock
from fared.ted.saved import Blocks, Ignored
from fared.ted.whatif import Changes

Natural = Annotated[int, Field(ge=0, le=0xFFFFFFFF, strict=True)]


class FileError(ValueError):
    """The document is no database; the text says where and why."""


class Document(BaseModel):
    """A part of ``fared-lsdb/1``; keys that are not known are left alone."""

    model_config = ConfigDict(extra="ignore", allow_inf_nan=False)


class Database(ABC):
    """A whole file. Areas are those of OSPF by id, or the levels of IS-IS."""

    proto: str
    families: tuple[int, ...]

    @property
    @abstractmethod
    def own(self) -> NodeId:
        """The router that the database was saved on."""

    @property
    @abstractmethod
    def areas_known(self) -> list[int]:
        """The areas or levels of the file."""

    @abstractmethod
    def world(self, area: int | None, family: int, changes: Changes) -> World:
        """One area or all under some assumptions, for a family."""


class World(ABC):
    """A database under some assumptions, ready to be computed from any root.

    ``blocks`` are the routers as everybody knows them. ``ignored`` is what counts from nowhere;
    what is unreachable depends on the root.
    """

    family: int
    max_metric: int
    blocks: Mapping[int, Blocks]
    ignored: tuple[Ignored, ...]

    @abstractmethod
    def seen_from(self, root: NodeId) -> Mapping[int, Blocks]:
        """The blocks of a root's areas as the root takes them."""

    @abstractmethod
    def local_links(self, area: int, root: NodeId, blocks: Blocks) -> tuple[LocalLink, ...]:
        """The links that a root can forward over."""

    @abstractmethod
    def router_settings(self, root: NodeId, solver: SolverSettings) -> RouterSettings:
        """Settings of a router that would have this root."""

    @property
    def nodes(self) -> list[NodeId]:
        """All routers and networks that are described, ascending."""
        return sorted({node for blocks in self.blocks.values() for node in blocks})

    @property
    def routers(self) -> list[NodeId]:
        """All routers that are described, ascending."""
        return [node for node in self.nodes if not self.is_network(node)]

    def is_network(self, node: NodeId) -> bool:
        """Whether a vertex is a transit network or a pseudonode."""
        return any(block.network for block in self.described(node))

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

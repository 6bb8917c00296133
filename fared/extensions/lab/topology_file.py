"""A topology file as written: its shape, checked by pydantic. ``topology`` gives it its meaning."""

from __future__ import annotations

from typing import Annotated, Literal

import pydantic


def _text(value: object) -> object:
    """Return text: YAML reads ``1`` and ``off`` as other types."""
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value) if isinstance(value, int | float) else value


_Text = Annotated[str, pydantic.BeforeValidator(_text)]


class NodeConfig(pydantic.BaseModel):
    """The part of a node that the lab reads; the rest is containerlab's."""

    kind: str | None = None
    group: str | None = None
    labels: dict[str, _Text] = pydantic.Field(default_factory=dict)
    startup_config: str | None = pydantic.Field(default=None, alias="startup-config")
    sysctls: dict[str, _Text] = pydantic.Field(default_factory=dict)


class LinkVars(pydantic.BaseModel):
    """What the lab reads of a link's ``vars``."""

    rate: _Text | None = None
    delay: _Text | None = None
    area: int | str | None = None
    level: Literal["level-1", "level-2", "level-1-2"] | None = None
    cost: Annotated[int, pydantic.Field(ge=1, le=65535)] = 10


class LinkConfig(pydantic.BaseModel):
    """A link."""

    endpoints: Annotated[list[str], pydantic.Field(min_length=2, max_length=2)]
    vars: LinkVars = LinkVars()
    mtu: Annotated[int, pydantic.Field(ge=576, le=65535)] = 1500


class TopologyConfig(pydantic.BaseModel):
    """Nodes and links, and what nodes inherit."""

    nodes: dict[str, NodeConfig | None]
    links: list[LinkConfig] = pydantic.Field(default_factory=list)
    defaults: NodeConfig = NodeConfig()
    kinds: dict[str, NodeConfig | None] = pydantic.Field(default_factory=dict)
    groups: dict[str, NodeConfig | None] = pydantic.Field(default_factory=dict)


class File(pydantic.BaseModel):
    """The whole file."""

    name: Annotated[str, pydantic.Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,40}$")]
    topology: TopologyConfig

"""A topology file as written: its shape, checked by pydantic. ``topology`` gives it its meaning.

All of containerlab's files have this shape. Keys that the lab does not read are kept by name:
``clab.ignored`` says so to the user.
"""

from __future__ import annotations

from ipaddress import IPv4Interface
from typing import Annotated, Any, Literal

import pydantic

from fared.extensions.lab.labels import HOST_KIND


def _text(value: object) -> object:
    """Return text: YAML reads ``1`` and ``off`` as other types, and nothing as None."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if value is None:
        return ""
    return str(value) if isinstance(value, int | float) else value


def _filled(empty: type[Any]) -> pydantic.BeforeValidator:
    """Read a key without a value as an empty one."""
    return pydantic.BeforeValidator(lambda value: empty() if value is None else value)


_Text = Annotated[str, pydantic.BeforeValidator(_text)]
_Texts = Annotated[list[_Text], _filled(list)]
_TextMap = Annotated[dict[str, _Text], _filled(dict)]


class NodeConfig(pydantic.BaseModel):
    """The part of a node that the lab reads; the rest is containerlab's."""

    model_config = pydantic.ConfigDict(extra="allow")

    kind: str | None = None
    group: str | None = None
    image: str | None = None
    labels: _TextMap = pydantic.Field(default_factory=dict)
    startup_config: str | None = pydantic.Field(default=None, alias="startup-config")
    sysctls: _TextMap = pydantic.Field(default_factory=dict)
    exec_: _Texts = pydantic.Field(default_factory=list, alias="exec")
    binds: _Texts = pydantic.Field(default_factory=list)

    @property
    def given(self) -> dict[str, Any]:
        """What is written of it, by key. Values that the lab does not read may be of any depth."""
        fields = type(self).model_fields
        own = {
            field.alias or name: getattr(self, name)
            for name, field in fields.items()
            if name in self.model_fields_set
        }
        return {**own, **(self.model_extra or {})}


class LinkVars(pydantic.BaseModel):
    """What the lab reads of a link's ``vars``."""

    rate: _Text | None = None
    delay: _Text | None = None
    area: int | str | None = None
    level: Literal["level-1", "level-2", "level-1-2"] | None = None
    cost: Annotated[int, pydantic.Field(ge=1, le=65535)] = 10
    addresses: Annotated[list[IPv4Interface], pydantic.Field(max_length=2)] | None = None


class EndpointConfig(pydantic.BaseModel):
    """One end of a link: ``node:interface``, or a mapping."""

    node: str
    interface: _Text = ""
    ipv4: str | None = None

    def __str__(self) -> str:
        return f"{self.node}:{self.interface}" if self.interface else self.node


def _end(value: object) -> object:
    if isinstance(value, str):
        node, _, interface = value.partition(":")
        return {"node": node, "interface": interface}
    return value


_End = Annotated[EndpointConfig, pydantic.BeforeValidator(_end)]


class LinkConfig(pydantic.BaseModel):
    """A link, in the brief or the extended format; types other than ``veth`` have one end."""

    type: str = "veth"
    endpoints: Annotated[list[_End], pydantic.Field(min_length=2, max_length=2)] | None = None
    endpoint: _End | None = None
    ipv4: _Texts = pydantic.Field(default_factory=list)
    vars: Annotated[LinkVars, _filled(LinkVars)] = LinkVars()
    mtu: Annotated[int, pydantic.Field(ge=576, le=65535)] | None = None

    @pydantic.model_validator(mode="after")
    def _has_ends(self) -> LinkConfig:
        if self.endpoints is None and self.type == "veth":
            raise ValueError("expected endpoints, two of node:interface")
        return self


_Nodes = Annotated[dict[_Text, NodeConfig | None], _filled(dict)]


class TopologyConfig(pydantic.BaseModel):
    """Nodes and links, and what nodes inherit."""

    nodes: dict[_Text, NodeConfig | None]
    links: Annotated[list[LinkConfig], _filled(list)] = pydantic.Field(default_factory=list)
    defaults: Annotated[NodeConfig, _filled(NodeConfig)] = NodeConfig()
    kinds: _Nodes = pydantic.Field(default_factory=dict)
    groups: _Nodes = pydantic.Field(default_factory=dict)


class File(pydantic.BaseModel):
    """The whole file."""

    model_config = pydantic.ConfigDict(extra="allow")

    name: Annotated[_Text, pydantic.Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,40}$")]
    topology: TopologyConfig


def inherited(name: str, topology: TopologyConfig) -> NodeConfig:
    """Return a node with what it inherits: defaults, then kind, then group, then its own.

    Labels, sysctls, ``exec`` and ``binds`` are merged, as containerlab does; others replace.
    """
    own = topology.nodes[name] or NodeConfig()
    kind = own.kind or topology.defaults.kind or HOST_KIND
    group = own.group or topology.defaults.group
    given = (
        topology.defaults,
        topology.kinds.get(kind),
        topology.groups.get(group) if group else None,
        own,
    )
    found: dict[str, Any] = {}
    for layer in given:
        if layer is None:
            continue
        for key, value in layer.given.items():
            known = found.get(key)
            if isinstance(value, dict) and isinstance(known, dict):
                found[key] = {**known, **value}
            elif isinstance(value, list) and isinstance(known, list):
                found[key] = [*known, *value]
            elif value is not None:
                found[key] = value
    return NodeConfig.model_validate(found)

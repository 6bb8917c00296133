"""The ``redistribute`` sections: which routes of other origin a protocol announces, and how."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, SerializerFunctionWrapHandler, model_serializer

from fared.config import values
from fared.config.section import Section
from fared.isis.settings import MAX_PATH_METRIC

LevelName = Literal["level-1", "level-2", "level-1-2"]

_LAST_METRIC = 0xFFFFFE
"""One below LSInfinity (RFC 2328 appendix B)."""


class Redistributed(Section):
    """How routes of one source are announced (RFC 2328 §A.4.5). ``prefixes`` empty: all of them."""

    metric: Annotated[int, values.Whole(0, _LAST_METRIC)] = 20
    metric_type: Annotated[int, values.Whole(1, 2)] = 2
    tag: Annotated[int, values.Whole(0, 0xFFFFFFFF)] = 0
    prefixes: list[values.PrefixText] = Field(default=[])


class RedistributedDefault(Section):
    """The default route; ``always``: whether there is a static one or not."""

    metric: Annotated[int, values.Whole(0, _LAST_METRIC)] = 10
    metric_type: Annotated[int, values.Whole(1, 2)] = 2
    tag: Annotated[int, values.Whole(0, 0xFFFFFFFF)] = 0
    always: bool = False


_NamedIsMeant = BeforeValidator(lambda value: {} if value is None else value)
"""A source without settings, ``static:``, has all defaults."""


class _Sources(Section):
    """A source that is not named is not announced."""

    @property
    def named(self) -> dict[str, Section]:
        """The sources that are named."""
        return {name: value for name, value in self if value is not None}

    @property
    def wanted(self) -> bool:
        """Whether any source is named."""
        return bool(self.named)

    @model_serializer(mode="wrap")
    def _only_those_named(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out what is not named: written as nothing, it would mean all defaults."""
        return {key: value for key, value in handler(self).items() if value is not None}


class Redistribute(_Sources):
    """Which routes of other origin OSPF announces."""

    connected: Annotated[Redistributed | None, _NamedIsMeant] = None
    static: Annotated[Redistributed | None, _NamedIsMeant] = None
    default: Annotated[RedistributedDefault | None, _NamedIsMeant] = None


class _IsisSource(Section):
    """``level`` None: level 2 where the router takes part in it, else level 1. ``tag`` 0: none."""

    level: LevelName | None = None
    metric: Annotated[int, values.Whole(0, MAX_PATH_METRIC)] = 0
    tag: Annotated[int, values.Whole(0, 0xFFFFFFFF)] = 0


class IsisRedistributed(_IsisSource):
    """How routes of one source are announced by IS-IS. ``prefixes`` empty: all of them."""

    prefixes: list[values.AnyPrefixText] = Field(default=[])


class IsisRedistributedDefault(_IsisSource):
    """Default routes of the families routed; ``always``: whether there are static ones or not."""

    always: bool = False


class IsisRedistribute(_Sources):
    """Which routes of other origin IS-IS announces."""

    connected: Annotated[IsisRedistributed | None, _NamedIsMeant] = None
    static: Annotated[IsisRedistributed | None, _NamedIsMeant] = None
    default: Annotated[IsisRedistributedDefault | None, _NamedIsMeant] = None

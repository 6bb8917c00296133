"""The ``redistribute`` section of OSPF: which routes of other origin it announces, and how."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field, SerializerFunctionWrapHandler, model_serializer

from fared.config import values
from fared.config.section import Section

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


class Redistribute(Section):
    """Which routes of other origin OSPF announces; a source that is not named is not."""

    connected: Annotated[Redistributed | None, _NamedIsMeant] = None
    static: Annotated[Redistributed | None, _NamedIsMeant] = None
    default: Annotated[RedistributedDefault | None, _NamedIsMeant] = None

    @property
    def wanted(self) -> bool:
        """Whether any source is named."""
        return (self.connected, self.static, self.default) != (None, None, None)

    @model_serializer(mode="wrap")
    def _only_those_named(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out what is not named: written as nothing, it would mean all defaults."""
        return {key: value for key, value in handler(self).items() if value is not None}

"""The ``redistribute`` sections: which routes of other sources a protocol advertises, and how."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from msgspec import field

from fared.config import values
from fared.config.section import Section
from fared.config.shapes import EMPTY_IS_MEANT
from fared.protocols.isis.settings import MAX_PATH_METRIC

LevelName = Literal["level-1", "level-2", "level-1-2"]

_LAST_METRIC = 0xFFFFFE
"""One below LSInfinity (RFC 2328 appendix B)."""


class Redistributed(Section, frozen=True):
    """How to advertise routes of one source (RFC 2328 §A.4.5). ``prefixes`` empty: all of them."""

    metric: Annotated[int, values.whole(0, _LAST_METRIC)] = 20
    metric_type: Annotated[int, values.whole(1, 2)] = 2
    tag: Annotated[int, values.whole(0, 0xFFFFFFFF)] = 0
    prefixes: list[values.PrefixText] = field(default_factory=list)


class RedistributedDefault(Section, frozen=True):
    """The default route; ``always``: also without a static one."""

    metric: Annotated[int, values.whole(0, _LAST_METRIC)] = 10
    metric_type: Annotated[int, values.whole(1, 2)] = 2
    tag: Annotated[int, values.whole(0, 0xFFFFFFFF)] = 0
    always: bool = False


class _Sources(Section, frozen=True):
    """Sources; one that is not named is not advertised, and ``static:`` alone has all defaults."""

    unwritten: ClassVar[tuple[object, ...]] = (None,)
    """An empty value would mean all defaults, so None is not written."""

    @property
    def named(self) -> dict[str, Section]:
        """Return the named sources."""
        return {
            name: value
            for name in self.__struct_fields__
            if (value := getattr(self, name)) is not None
        }

    @property
    def wanted(self) -> bool:
        """Whether any source is named."""
        return bool(self.named)


class Redistribute(_Sources, frozen=True):
    """The routes of other sources that OSPF advertises."""

    connected: Annotated[Redistributed | None, EMPTY_IS_MEANT] = None
    static: Annotated[Redistributed | None, EMPTY_IS_MEANT] = None
    default: Annotated[RedistributedDefault | None, EMPTY_IS_MEANT] = None


class _IsisSource(Section, frozen=True):
    """``level`` None: level 2 if the router takes part in it, else level 1. ``tag`` 0: none."""

    level: LevelName | None = None
    metric: Annotated[int, values.whole(0, MAX_PATH_METRIC)] = 0
    tag: Annotated[int, values.whole(0, 0xFFFFFFFF)] = 0


class IsisRedistributed(_IsisSource, frozen=True):
    """How IS-IS advertises routes of one source. ``prefixes`` empty: all of them."""

    prefixes: list[values.AnyPrefixText] = field(default_factory=list)


class IsisRedistributedDefault(_IsisSource, frozen=True):
    """Default routes of the routed families; ``always``: also without static ones."""

    always: bool = False


class IsisRedistribute(_Sources, frozen=True):
    """The routes of other sources that IS-IS advertises."""

    connected: Annotated[IsisRedistributed | None, EMPTY_IS_MEANT] = None
    static: Annotated[IsisRedistributed | None, EMPTY_IS_MEANT] = None
    default: Annotated[IsisRedistributedDefault | None, EMPTY_IS_MEANT] = None

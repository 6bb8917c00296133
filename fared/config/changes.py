"""The differences between two configurations, the disruption by each, and the result of a reload.

Each field declares the effect of its change (``section.Reload``); no field is known by name here.
The one exception are globs: the interfaces that a glob matches depend on the other keys, so an
added or removed entry of ``interfaces``, or of ``neighbors``, changes which entry applies before or
after it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

import msgspec

from fared.config.bgp_neighbor import BgpNeighbor
from fared.config.globs import GlobIndex, TooManyGlobsError, is_glob
from fared.config.isis import IsisInterface
from fared.config.model import Config
from fared.config.ospf import OspfArea, OspfInterface
from fared.config.section import Reload, Section
from fared.config.shapes import Field, fields_of

S = TypeVar("S", bound=Section)
Path = tuple[str, ...]
_Entry = tuple[Any, ...]
"""The area of an interface, None in IS-IS, and its settings that affect adjacencies."""
_INTERFACES = (OspfInterface, IsisInterface, BgpNeighbor)


class Change(msgspec.Struct, frozen=True):
    """One difference; ``old`` or ``new`` None: the entry is absent there."""

    path: Path
    old: Any
    new: Any
    action: Reload


def diff(old: Config, new: Config) -> list[Change]:
    """Compare two configurations leaf by leaf; a default equals the same value written out.

    Secrets are compared too, and hidden: both sides may show the same word.
    """
    return list(_Differ(old, new).sections((), old, new))


def merged(running: S, wanted: S) -> S:
    """Return what runs after a reload: ``wanted`` without the changes that need a restart."""
    kept: dict[str, Any] = {}
    for field in fields_of(type(wanted)).values():
        name = field.name
        before, after = getattr(running, name), getattr(wanted, name)
        if before == after:
            continue
        if isinstance(before, Section) and isinstance(after, Section):
            kept[name] = merged(before, after)
        elif field.reload is Reload.RESTART:
            kept[name] = before
    return msgspec.structs.replace(wanted, **kept) if kept else wanted


class _Differ:
    """Two configurations side by side."""

    def __init__(self, old: Config, new: Config) -> None:
        self._old = old
        self._new = new
        self._globs = {kind: _globs_of(old, kind) for kind in _INTERFACES}

    def sections(self, path: Path, old: Section, new: Section) -> Iterator[Change]:
        """Yield the differences of two sections at the same place."""
        for field in fields_of(type(old)).values():
            before, after = getattr(old, field.name), getattr(new, field.name)
            if before == after:
                continue
            here = (*path, field.key)
            if isinstance(before, Section) and isinstance(after, Section):
                yield from self.sections(here, before, after)
            elif isinstance(before, dict):
                yield from self._entries(here, _by_name(old, field), _by_name(new, field), field)
            elif _is_list_of_sections(before) and _is_list_of_sections(after):
                yield from self._entries(
                    here, _by_number(old, field), _by_number(new, field), field
                )
            else:
                write = field.shape.write
                yield Change(here, write(before), write(after), field.reload)

    def _entries(
        self,
        path: Path,
        old: dict[str, tuple[Section, Any]],
        new: dict[str, tuple[Section, Any]],
        field: Field,
    ) -> Iterator[Change]:
        """Yield the differences of two mappings by name: entries removed, added, or changed."""
        for key in [*old, *(key for key in new if key not in old)]:
            here = (*path, key)
            if key in old and key in new:
                yield from self._entry(here, old[key], new[key], field.reload)
            elif key in old:
                section, written = old[key]
                yield Change(here, written, None, self._gone(section, key, field.reload))
            else:
                section, written = new[key]
                yield Change(here, None, written, self._come(section, key))

    def _entry(
        self, path: Path, old: tuple[Any, Any], new: tuple[Any, Any], reload: Reload
    ) -> Iterator[Change]:
        """Yield the differences of an entry that both have: a section, or a plain value."""
        if isinstance(old[0], Section):
            yield from self.sections(path, old[0], new[0])
        elif old[0] != new[0]:
            yield Change(path, old[1], new[1], reload)

    # Entries of ``interfaces``: another key may apply instead of one

    def _gone(self, section: Section, key: str, usual: Reload) -> Reload:
        if isinstance(section, OspfArea):
            return _worst(
                self._gone(each, name, usual) for name, each in section.interfaces.items()
            )
        if not isinstance(section, _INTERFACES) or is_glob(key):
            return usual  # some interface that the glob matches may have no other entry
        before, after = (_entry(config, key, type(section)) for config in (self._old, self._new))
        return usual if before != after else Reload.UPDATE

    def _come(self, section: Section, key: str) -> Reload:
        if isinstance(section, OspfArea):
            return _worst(self._come(each, name) for name, each in section.interfaces.items())
        if not isinstance(section, _INTERFACES):
            return Reload.UPDATE
        after = _entry(self._new, key, type(section))
        if not is_glob(key):
            return _replaced({_entry(self._old, key, type(section))}, after)
        globs = self._globs[type(section)]
        try:
            alone = globs.tries.overlap(key, owner=1) is None
        except TooManyGlobsError:
            alone = False
        return Reload.UPDATE if alone else _replaced(globs.entries, after)


class _Globs(msgspec.Struct, frozen=True):
    """Earlier globs, to find those that overlap with a new one."""

    tries: GlobIndex
    entries: set[_Entry | None]


def _globs_of(config: Config, kind: type[Section]) -> _Globs:
    found = _Globs(GlobIndex(), set())
    for key in _keys(config, kind):
        if is_glob(key):
            found.tries.add(key, owner=0)
            found.entries.add(_entry(config, key, kind))
    return found


def _keys(config: Config, kind: type[Section]) -> Iterator[str]:
    for part in config.protocols.values():
        yield from (name for name, section in part.every_interface() if isinstance(section, kind))


def _entry(config: Config, key: str, kind: type[Section]) -> _Entry | None:
    """Return the entry that applies to a name or is given for a glob, as it affects adjacencies."""
    for part in config.protocols.values():
        area, section = part.interface(key) or (None, None)
        if isinstance(section, kind):
            fields = fields_of(kind).values()
            firm = (getattr(section, f.name) for f in fields if f.reload is not Reload.UPDATE)
            return (area, *firm)
    return None


def _replaced(before: set[_Entry | None], after: _Entry | None) -> Reload:
    """Return the effect of another entry on its interfaces; none on those without an entry."""
    return Reload.BOUNCE if before - {None, after} else Reload.UPDATE


def _worst(actions: Iterable[Reload]) -> Reload:
    return max(actions, key=list(Reload).index, default=Reload.UPDATE)


def _by_name(section: Section, field: Field) -> dict[str, tuple[Section, Any]]:
    """Return a mapping's entries and their text form, by the keys of the file."""
    entries = getattr(section, field.name)
    written: Any = field.shape.write(entries)
    pairs = zip(written.items(), entries.values(), strict=True)
    return {str(key): (entry, content) for (key, content), entry in pairs}


def _by_number(section: Section, field: Field) -> dict[str, tuple[Section, Any]]:
    entries = getattr(section, field.name)
    written: Any = field.shape.write(entries)
    return {str(at): pair for at, pair in enumerate(zip(entries, written, strict=True))}


def _is_list_of_sections(value: object) -> bool:
    return isinstance(value, tuple) and all(isinstance(item, Section) for item in value)

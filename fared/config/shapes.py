"""The form of values in the file, by the annotations of a section's fields.

A ``Shape`` reads a value, writes it back in a form that can be loaded again, and describes it, for
editors and in words. ``Scalar`` and the notes of this module are used inside ``Annotated``; all
other shapes follow from the type: ``bool``, ``str``, ``Literal``, sections, and mappings, lists and
options of these.

A shape never raises: it notes errors in ``Reading`` and returns None, so that one pass finds all
errors of a file.
"""

from __future__ import annotations

import builtins
import functools
import inspect
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

import msgspec

from fared.config.document import PathKey
from fared.config.reading import Reading, Refused
from fared.config.section import Reload, Section

Json = dict[str, Any]
_A_MAPPING, _A_LIST = "a mapping of keys to values", "a list"


class Shape(Protocol):
    """The form of one kind of value in the file."""

    def read(self, data: object, path: PathKey, reading: Reading) -> Any:  # noqa: ANN401
        """Return the value of ``data``; errors go to ``reading``."""

    def write(self, value: Any) -> object:  # noqa: ANN401
        """Return a value in the form of the file, secrets hidden."""

    def describe(self, definitions: Json) -> Json:
        """Return the JSON schema; schemas of sections go to ``definitions``, by name."""

    @property
    def words(self) -> str:
        """What a value must be, for people: "10ms to 1h"."""


def unchanged(value: object) -> object:
    """Return a value unchanged, as its form in the file."""
    return value


class Scalar(msgspec.Struct, frozen=True, eq=False):
    """A scalar with a text form for people and another value in the daemon.

    ``parse`` raises ValueError for a value that is not what ``words`` say, or Refused for another
    reason.
    """

    words: str
    parse: Callable[[Any], Any]
    schema: Json
    show: Callable[[Any], object] = unchanged

    def read(self, data: object, path: PathKey, reading: Reading) -> Any:  # noqa: ANN401
        """Parse the scalar."""
        try:
            return self.parse(data)
        except Refused as refused:
            reading.refuse(path, refused, data)
        except ValueError:
            choices = tuple(word for word in self.schema.get("enum", ()) if isinstance(word, str))
            reading.refuse(path, Refused(self.words, words=choices), data)

    def write(self, value: Any) -> object:  # noqa: ANN401
        """Return the form of the file."""
        return self.show(value)

    def describe(self, definitions: Json) -> Json:
        """Return ``schema``."""
        _ = definitions
        return self.schema


class Note(msgspec.Struct, frozen=True, eq=False):
    """Functions applied to a value ``before`` and ``after`` it is read, and to write it.

    ``after`` raises Refused, or ValueError for a value that is not what ``words`` say.
    """

    before: Callable[[object], object] = unchanged
    after: Callable[[Any], object] = unchanged
    show: Callable[[Any], object] | None = None
    words: str = ""


EMPTY_IS_MEANT = Note(before=lambda data: {} if data is None else data)
"""A section without content has all defaults."""


class _Around(msgspec.Struct, frozen=True, eq=False):
    shape: Shape

    def describe(self, definitions: Json) -> Json:
        return self.shape.describe(definitions)

    @property
    def words(self) -> str:
        return self.shape.words


class _Noted(_Around, frozen=True, eq=False):
    note: Note

    def read(self, data: object, path: PathKey, reading: Reading) -> Any:  # noqa: ANN401
        before = len(reading.problems)
        value = self.shape.read(self.note.before(data), path, reading)
        if len(reading.problems) > before:
            return None
        try:
            self.note.after(value)
        except Refused as refused:
            reading.refuse(path, refused, data)
        except ValueError:
            reading.refuse(path, Refused(self.words), data)
        return value

    def write(self, value: Any) -> object:  # noqa: ANN401
        return self.shape.write(value) if self.note.show is None else self.note.show(value)

    @property
    def words(self) -> str:
        return self.note.words or self.shape.words


class _Optional(_Around, frozen=True, eq=False):
    def read(self, data: object, path: PathKey, reading: Reading) -> Any:  # noqa: ANN401
        return None if data is None else self.shape.read(data, path, reading)

    def write(self, value: Any) -> object:  # noqa: ANN401
        return None if value is None else self.shape.write(value)

    def describe(self, definitions: Json) -> Json:
        return {"anyOf": [self.shape.describe(definitions), {"type": "null"}]}


class _Entries(msgspec.Struct, frozen=True, eq=False):
    """A mapping by name; empty if not given."""

    key: Shape
    value: Shape

    def read(self, data: object, path: PathKey, reading: Reading) -> Any:  # noqa: ANN401
        if data is None:
            return {}
        if not isinstance(data, dict):
            reading.refuse(path, Refused(_A_MAPPING), data)
            return None
        entries = {}
        for name, content in data.items():
            here = (*path, name)
            on_key = Reading()
            key = self.key.read(name, here, on_key)
            for problem in on_key.problems:
                reading.refuse_key(here, problem.reason)
            entries[key] = self.value.read(content, here, reading)
        return entries

    def write(self, value: Any) -> object:  # noqa: ANN401
        return {self.key.write(name): self.value.write(entry) for name, entry in value.items()}

    def describe(self, definitions: Json) -> Json:
        return {"type": "object", "additionalProperties": self.value.describe(definitions)}

    @property
    def words(self) -> str:
        return f"by name ({self.key.words}): {self.value.words}"


class _Items(msgspec.Struct, frozen=True, eq=False):
    item: Shape
    holder: Callable[[Iterable[Any]], Any]

    def read(self, data: object, path: PathKey, reading: Reading) -> Any:  # noqa: ANN401
        if not isinstance(data, list | tuple):
            reading.refuse(path, Refused(_A_LIST), data)
            return None
        return self.holder(
            self.item.read(item, (*path, at), reading) for at, item in enumerate(data)
        )

    def write(self, value: Any) -> object:  # noqa: ANN401
        return [self.item.write(item) for item in value]

    def describe(self, definitions: Json) -> Json:
        return {"type": "array", "items": self.item.describe(definitions)}

    @property
    def words(self) -> str:
        return f"list of {self.item.words}"


class Field(msgspec.Struct, frozen=True, eq=False):
    """One key of a section: ``name`` of the attribute, ``key`` of the file.

    A name that Python reserves has an underscore behind it (``in_``).

    ``hint`` is its annotation, ``reload`` the effect of a change.
    """

    name: str
    key: str
    hint: Any
    shape: Shape
    reload: Reload


class _SectionShape(msgspec.Struct, frozen=True, eq=False):
    kind: type[Section]

    def read(self, data: object, path: PathKey, reading: Reading) -> Any:  # noqa: ANN401
        fields, before = fields_of(self.kind), len(reading.problems)
        try:
            prepared = self.kind.prepare(data)
        except Refused as refused:
            reading.refuse(path, refused, data)
            return None
        given = {} if prepared is None else prepared
        if not isinstance(given, dict):
            reading.refuse(path, Refused(_A_MAPPING, _as_mapping(data, fields)), data)
            return None
        values = {}
        for key, content in given.items():
            field, here = fields.get(key), (*path, key)
            if field is None and key in self.kind.instead:
                reading.refuse_key(here, Refused("a key that fared has", self.kind.instead[key]))
            elif field is None:
                reading.unknown_key(here, fields)
            else:
                values[field.name] = field.shape.read(content, here, reading)
        if len(reading.problems) > before:
            return None
        try:
            self.kind.check_given(given)
            section = self.kind(**values)
            section.check()
        except Refused as refused:
            reading.refuse(path, refused, data)
            return None
        return section

    def write(self, value: Section) -> object:
        fields = fields_of(self.kind).values()
        written = {f.key: f.shape.write(getattr(value, f.name)) for f in fields}
        unwritten = self.kind.unwritten
        return {
            key: content
            for key, content in written.items()
            if not any(content is nothing for nothing in unwritten)
        }

    def describe(self, definitions: Json) -> Json:
        name = self.kind.__name__
        if name not in definitions:
            definitions[name] = {}
            definitions[name] = describe_section(self.kind, definitions)
        return {"$ref": f"#/$defs/{name}"}

    @property
    def words(self) -> str:
        return f"section ``{self.kind.__name__}``"


def _as_mapping(data: object, fields: Mapping[str, Field]) -> str:
    """Say how a list of keys is written; empty: it is none."""
    keys = data if isinstance(data, list) else []
    known = [key for key in keys if isinstance(key, str) and key in fields]
    return f"write {{{', '.join(f'{key}: {{}}' for key in known)}}}" if known else ""


def describe_section(kind: type[Section], definitions: Json) -> Json:
    """Return the JSON schema of a section; defaults are in the form of the file."""
    properties: Json = {}
    required = []
    defaults = {field.name: field for field in msgspec.structs.fields(kind)}
    for field in fields_of(kind).values():
        known = defaults[field.name]
        entry = dict(field.shape.describe(definitions))
        if known.default_factory is not msgspec.NODEFAULT:
            entry["default"] = field.shape.write(known.default_factory())
        elif known.default is not msgspec.NODEFAULT:
            entry["default"] = field.shape.write(known.default)
        else:
            required.append(field.key)
        properties[field.key] = entry
    described: Json = {
        "title": kind.__name__,
        "type": "object",
        "description": inspect.getdoc(kind) or "",
        "properties": properties,
        "additionalProperties": False,
    }
    return {**described, "required": required} if required else described


@functools.cache
def fields_of(kind: type[Section]) -> Mapping[str, Field]:
    """Return the fields of a section by their keys."""
    hints = typing.get_type_hints(kind, include_extras=True)
    fields = (_field(name, hints[name]) for name in kind.__struct_fields__)
    return {field.key: field for field in fields}


def _field(name: str, hint: Any) -> Field:  # noqa: ANN401 - an annotation
    notes = typing.get_args(hint)[1:] if typing.get_origin(hint) is typing.Annotated else ()
    reload = next((note for note in notes if isinstance(note, Reload)), Reload.UPDATE)
    return Field(name, name.rstrip("_").replace("_", "-"), hint, shape_of(hint), reload)


def section_in(hint: Any) -> type[Section] | None:  # noqa: ANN401 - an annotation
    """Return the section that a value is, or that it holds as an option, by name or in a list."""
    if isinstance(hint, type) and issubclass(hint, Section):
        return hint
    return next(filter(None, map(section_in, typing.get_args(hint))), None)


def shape_of(hint: Any) -> Shape:  # noqa: ANN401 - an annotation
    """Return the shape of an annotation. Raises TypeError if it has none."""
    kind = typing.get_origin(hint)
    arguments = typing.get_args(hint)
    match kind:
        case typing.Annotated:
            shape = _annotated(arguments[0], arguments[1:])
        case types.UnionType | typing.Union:
            shape = _Optional(shape_of(next(part for part in arguments if part is not _NONE)))
        case builtins.dict:
            shape = _Entries(shape_of(arguments[0]), shape_of(arguments[1]))
        case builtins.list | builtins.tuple:
            shape = _Items(shape_of(arguments[0]), kind)
        case typing.Literal:
            shape = _one_of(arguments)
        case _:
            shape = _PLAIN.get(hint) or _section(hint)
    return shape


def _section(hint: Any) -> Shape:  # noqa: ANN401 - an annotation
    if isinstance(hint, type) and issubclass(hint, Section):
        return _SectionShape(hint)
    raise TypeError(f"{hint} has no form in the file")


def _annotated(hint: Any, notes: tuple[object, ...]) -> Shape:  # noqa: ANN401 - an annotation
    said: Any = next((note for note in notes if hasattr(note, "read")), None)
    shape: Shape = shape_of(hint) if said is None else said
    for note in notes:
        if isinstance(note, Note):
            shape = _Noted(shape, note)
    return shape


def _one_of(words: tuple[str, ...]) -> Scalar:
    """Return the shape of one of some words."""
    quoted = [f"'{word}'" for word in words]
    listed = " or ".join([", ".join(quoted[:-1]), quoted[-1]] if len(quoted) > 1 else quoted)

    def parse(data: object) -> object:
        if not isinstance(data, str) or data not in words:
            raise ValueError
        return data

    return Scalar(listed, parse, {"enum": list(words)})


def _of_type(kind: type) -> Callable[[object], object]:
    def parse(data: object) -> object:
        if not isinstance(data, kind):
            raise ValueError  # noqa: TRY004 - a value of the file, not of the program
        return data

    return parse


_NONE = type(None)
_PLAIN: Mapping[object, Shape] = types.MappingProxyType(
    {
        bool: Scalar("true or false", _of_type(bool), {"type": "boolean"}),
        str: Scalar("text", _of_type(str), {"type": "string"}),
    }
)

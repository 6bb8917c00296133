"""Documents built from their schemas: all keys, each with a simple value of its type."""

import types
import typing
from typing import Any

import msgspec

from fared.management.documents.facts import Facts

_PLAIN: dict[Any, Any] = {str: "", int: 0, float: 0.0, bool: False, Any: None}


def sample(hint: Any, **given: Any) -> Any:
    """Return a value of a type of documents, as in JSON; ``given`` are keys of a row.

    Raises KeyError for a key that is not in the schema.
    """
    if typing.is_typeddict(hint):
        hints = typing.get_type_hints(hint, include_extras=True)
        if unknown := given.keys() - hints.keys():
            raise KeyError(f"{hint.__name__} has no {', '.join(sorted(unknown))}")
        return {
            key: given[key] if key in given else sample(kind)
            for key, kind in hints.items()
            if key in given or typing.get_origin(kind) is not typing.NotRequired
        }
    if isinstance(hint, type) and issubclass(hint, Facts):
        return _row(hint, given)
    if typing.get_origin(hint) is typing.Annotated:
        return sample(typing.get_args(hint)[0])
    origin = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType):
        return None if type(None) in typing.get_args(hint) else sample(typing.get_args(hint)[0])
    if origin is None:
        return _PLAIN[hint]
    return {} if origin is dict else []


def _row(row: type[Facts], given: dict[str, Any]) -> Any:
    hints = typing.get_type_hints(row, include_extras=True)
    fields = {field.encode_name: field for field in msgspec.structs.fields(row)}
    if unknown := given.keys() - fields.keys():
        raise KeyError(f"{row.__name__} has no {', '.join(sorted(unknown))}")
    tagged = row.__struct_config__
    tag = {} if tagged.tag is None else {tagged.tag_field: tagged.tag}
    return tag | {
        key: given[key] if key in given else sample(hints[field.name])
        for key, field in fields.items()
        if key in given or field.default is not msgspec.UNSET
    }

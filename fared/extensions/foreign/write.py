"""Writes a draft as ``fared.yaml``, with comments: where settings come from, what was not taken."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import yaml

from fared.config.model import Config
from fared.config.shapes import fields_of
from fared.extensions.foreign.draft import Draft, Path, Remark

_COLUMN: Final = 40
_WIDTH: Final = 100
_ORDER: Final = tuple(fields_of(Config))


def write_draft(draft: Draft, name: str, make: str) -> str:
    """Return the text of the file; ``name`` is the file that was read, ``make`` whose it is."""
    return "".join(f"{line}\n" for line in _lines(draft, name, make))


def _lines(draft: Draft, name: str, make: str) -> Iterator[str]:
    yield f"# Imported from {_printable(name)}, a configuration of {make}."
    yield "#"
    yield "# Check every line, and what was not taken, at the end. Then"
    yield "#   fared -c FILE --check                      # is it valid?"
    yield "#   fared-cli config apply FILE --confirm 5m   # on a router that runs already"
    yield f"# Do not run fared beside {make} in one network namespace (docs/coming-from.md)."
    above = True
    for key in sorted(draft.tree, key=_ORDER.index):
        section = isinstance(draft.tree[key], dict)
        yield from [""] if section or above else []
        above = section
        yield from _entry(draft, (key,), draft.tree[key])
    yield from _remarks("Taken, but different in fared:", draft.differs)
    yield from _remarks("Not taken:", draft.left)


def _remarks(title: str, remarks: Sequence[Remark]) -> Iterator[str]:
    if not remarks:
        return
    yield ""
    yield f"# {title}"
    for remark in sorted_remarks(remarks):
        yield f"#   {_printable(str(remark))}"


def sorted_remarks(remarks: Sequence[Remark]) -> list[Remark]:
    """Return remarks in the order of the file, each once."""
    once = dict.fromkeys(remarks)
    return sorted(once, key=lambda remark: (remark.source.file, remark.source.number))


def _entry(draft: Draft, path: Path, value: Any) -> Iterator[str]:  # noqa: ANN401 - any YAML
    indent = "  " * (len(path) - 1)
    key = _flow(path[-1])
    comment = draft.comments.get(path, "")
    if isinstance(value, dict) and value and not _short(draft, path, value):
        yield _commented(f"{indent}{key}:", comment)
        for name, inner in value.items():
            yield from _entry(draft, (*path, name), inner)
    elif isinstance(value, list) and any(isinstance(each, dict) for each in value):
        yield _commented(f"{indent}{key}:", comment)
        yield from (f"{indent}  - {_flow(each)}" for each in value)
    else:
        yield _commented(f"{indent}{key}: {_flow(value)}", comment)


def _short(draft: Draft, path: Path, value: dict[str, Any]) -> bool:
    """Whether a mapping stands on one line: a few settings without comments of their own."""
    if any((*path, name) in draft.comments for name in value):
        return False
    plain = not any(isinstance(each, dict | list) for each in value.values())
    return plain and len(path) > 1 and len(_flow(value)) + 2 * len(path) < 60


def _flow(value: Any) -> str:  # noqa: ANN401 - any YAML
    text: str = yaml.safe_dump(
        value, default_flow_style=True, sort_keys=False, width=10**9, allow_unicode=True
    )
    return text.removesuffix("\n").removesuffix("\n...")


def _commented(text: str, comment: str) -> str:
    if not comment:
        return text
    line = f"{text.ljust(_COLUMN)}  # {_printable(comment)}"
    return line if len(line) <= _WIDTH else f"{line[: _WIDTH - 3]}..."


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in text)

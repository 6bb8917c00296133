"""What to do about an error: where a key belongs, which word was meant, whose file it is.

Only looked up for the errors that are shown.
"""

from __future__ import annotations

import difflib
import functools
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from fared.config.document import PathKey
from fared.config.errors import format_path
from fared.config.model import Config
from fared.config.shapes import describe_section

_USUAL: Final[Mapping[str, str]] = {
    "p2p": "point-to-point",
    "ptp": "point-to-point",
    "bcast": "broadcast",
    "sha1": "hmac-sha-1",
    "sha256": "hmac-sha-256",
    "sha384": "hmac-sha-384",
    "sha512": "hmac-sha-512",
}
"""Words of other routers, and for short."""
_PLACES: Final[Mapping[str, str]] = {
    "areas": "AREA",
    "interfaces": "INTERFACE",
    "neighbors": "NEIGHBOR",
    "profiles": "NAME",
    "ranges": "PREFIX",
}
_FOREIGN: Final = (
    ("FRR", r"^\s*(frr |router (ospf|isis|bgp)|interface \S+\s*$|ip ospf )"),
    ("BIRD", r"^\s*((protocol|router id|template) [^:]*[{;]|include\s+\"[^\"]*\"\s*;)"),
    ("Junos", r"^\s*set (protocols|interfaces) |^\s*protocols \{"),
)
_LIKE: Final = 0.6


def nearest(word: object, known: Mapping[str, object] | tuple[str, ...]) -> str | None:
    """Return the known word that a wrong one probably stands for; None: there is none."""
    text = str(word).replace("_", "-").lower()
    usual = _USUAL.get(text)
    if usual in known:
        return usual
    found = difflib.get_close_matches(text, list(known), n=1, cutoff=_LIKE)
    return found[0] if found else None


def belongs(path: PathKey) -> str:
    """Return where an unknown key is known, the nearest place; empty: nowhere."""
    key = str(path[-1]).replace("_", "-").lower()
    found = [place for place in _keys() if place[-1] == key]
    if not found:
        return ""
    best = max(found, key=lambda place: (_shared(place, path), -len(place)))
    return format_path(best[:-1]) or "the top of the file"


def foreign(text: str) -> str:
    """Return whose configuration a text looks like; empty: no other router's."""
    found = (name for name, lines in _FOREIGN if re.search(lines, text, re.MULTILINE))
    return next(found, "")


def _shared(place: PathKey, path: PathKey) -> int:
    same = 0
    for a, b in zip(place, path, strict=False):
        if a != b and not str(a).isupper():
            break
        same += 1
    return same


@functools.cache
def _keys() -> tuple[PathKey, ...]:
    """Return the path of every key, with words in capitals for names."""
    definitions: dict[str, Any] = {}
    return tuple(_below(describe_section(Config, definitions), (), definitions))


def _below(schema: Mapping[str, Any], path: PathKey, known: Mapping[str, Any]) -> Iterator[PathKey]:
    for part in schema.get("anyOf", ()):
        yield from _below(part, path, known)
    if "$ref" in schema:
        yield from _below(known[schema["$ref"].rpartition("/")[2]], path, known)
    for key, value in schema.get("properties", {}).items():
        yield (*path, key)
        yield from _below(value, (*path, key), known)
    entries = schema.get("additionalProperties")
    if isinstance(entries, dict):
        name = _PLACES.get(str(path[-1]), "NAME")
        yield from _below(entries, (*path, name), known)

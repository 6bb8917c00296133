"""Key chains of FRR, and the authentication of an interface."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from fared.extensions.foreign.draft import Draft
from fared.extensions.foreign.frr.context import FrrFile, Given, Key, OspfPort
from fared.extensions.foreign.frr.lines import FrrStatement
from fared.extensions.foreign.rules import NO_SETTING, number

_ALGORITHMS: Final = frozenset(
    ("md5", "hmac-sha-1", "hmac-sha-256", "hmac-sha-384", "hmac-sha-512")
)
_MONTHS: Final = (
    *("jan", "feb", "mar", "apr", "may", "jun"),
    *("jul", "aug", "sep", "oct", "nov", "dec"),
)
_TIME_ZONE: Final = "FRR reads times in the time zone of the machine: this one's was taken"


def read_chain(draft: Draft, chain: FrrStatement) -> list[Key]:
    """Return the keys of ``key chain NAME``."""
    keys = []
    for each in chain.inside:
        if each.words[0] != "key" or len(each.words) < 2:
            draft.leave(each.source, NO_SETTING)
            continue
        try:
            leaves: dict[str, Any] = {"key-id": number(each.words[1])}
            for line in each.inside:
                _leaf(draft, leaves, line)
        except ValueError as error:
            draft.leave(each.source, str(error))
        else:
            keys.append(Key(leaves, each))
    return keys


def _leaf(draft: Draft, leaves: dict[str, Any], line: FrrStatement) -> None:
    match line.words:
        case ["key-string", text]:
            leaves["key"] = text
        case ["cryptographic-algorithm", name] if name in _ALGORITHMS:
            leaves["algorithm"] = name
        case ["send-lifetime" | "accept-lifetime" as which, *words]:
            use = which.partition("-")[0]
            begin, end = _lifetime(words)
            leaves[f"{use}-start"] = begin
            if end is not None:
                leaves[f"{use}-end"] = end
            draft.differ(line.source, _TIME_ZONE)
        case _:
            draft.leave(line.source, NO_SETTING)


def _lifetime(words: Sequence[str]) -> tuple[str, str | None]:
    """Return the times of ``00:00:00 Jan 1 2026 infinite``, ``... duration N`` or an end."""
    begin = _time(words[:4])
    match words[4:]:
        case ["infinite"]:
            return _written(begin), None
        case ["duration", seconds]:
            return _written(begin), _written(begin + timedelta(seconds=number(seconds)))
        case rest:
            return _written(begin), _written(_time(rest))


def _time(words: Sequence[str]) -> datetime:
    clock, *date, year = words
    day = next(number(word) for word in date if word.isdigit())
    month = next((i for i, m in enumerate(_MONTHS, 1) for w in date if w.lower().startswith(m)), 0)
    hour, minute, second = map(number, clock.split(":"))
    local = datetime(number(year), month, day, hour, minute, second)  # noqa: DTZ001 - as FRR reads it
    return local.astimezone(UTC)


def _written(time: datetime) -> str:
    return time.isoformat().replace("+00:00", "Z")


def authentication(
    frr: FrrFile, port: OspfPort, of_area: Given | None
) -> tuple[Any, Given | Key | None]:
    """Return the setting ``authentication`` of an interface, and whose line it is; None: none.

    Raises ValueError where the file says how to authenticate and has no key.
    """
    mode = port.mode or of_area
    if mode is None or mode.value == ("null",):
        unused = port.password or (port.digests[-1] if port.digests else None)
        return None, unused
    match mode.value:
        case ():
            keys = [port.password] if port.password else []
        case ("message-digest",):
            keys = list(reversed(port.digests))  # FRR signs with the last one
        case ("key-chain", name):
            keys = frr.key_chains.get(name, [])
        case _:
            keys = []
    if not keys:
        raise ValueError("no key for it in the file: fared needs one")
    leaves = [key.leaves for key in keys]
    return (leaves[0] if len(leaves) == 1 else {"keys": leaves}), keys[0]

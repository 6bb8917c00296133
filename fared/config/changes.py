"""What a reload would change, and how much each change disturbs."""

from __future__ import annotations

import enum
from typing import Any, NamedTuple

from fared.config.model import Config
from fared.config.secrets import SECTION, without_secrets


class Action(enum.StrEnum):
    """What applying a change does, from harmless to not possible while running."""

    UPDATE_IN_PLACE = "update-in-place"
    BOUNCE_ADJACENCY = "bounce-adjacency"
    RESTART_REQUIRED = "restart-required"


class Change(NamedTuple):
    """One difference; ``old`` or ``new`` None: the entry is only in the other one."""

    path: tuple[str, ...]
    old: Any
    new: Any
    action: Action


_RESTART = {"router-id", "fib", "api"}
_RESTART_PATHS = {("ospf",), ("isis",), ("ospf", "path-capacity-sub-tlv")}
_IN_PLACE_OF_RESTART = {("fib", "on-exit")}
_BOUNCING = {"network-type", "hello-interval", "dead-interval", "passive"}
_BOUNCING_CIRCUIT = {"network-type", "level", "passive"}
_RESTART_ISIS = {"net", "level", "address-families", "multi-topology", "path-capacity-sub-tlv"}
"""Interface leaves that both ends must agree on, or that end an adjacency."""
_MISSING = object()


def diff(old: Config, new: Config) -> list[Change]:
    """Compare two configurations leaf by leaf; a default equals the same value written out.

    Secrets are compared too, and hidden: both may be there as the same word.
    """
    changes: list[Change] = []
    _compare((), old.document(comparing=True), new.document(comparing=True), changes)
    return changes


def _compare(path: tuple[str, ...], old: object, new: object, into: list[Change]) -> None:
    if old == new:
        return
    if SECTION in path and isinstance(old, list) and isinstance(new, list):
        old, new = dict(enumerate(old)), dict(enumerate(new))
    if isinstance(old, dict) and isinstance(new, dict):
        for key in [*old, *(key for key in new if key not in old)]:
            _compare((*path, str(key)), old.get(key, _MISSING), new.get(key, _MISSING), into)
        return
    before = None if old is _MISSING else without_secrets(path, old)
    after = None if new is _MISSING else without_secrets(path, new)
    into.append(Change(path, before, after, _action(path, removed=new is _MISSING)))


def _action(path: tuple[str, ...], *, removed: bool) -> Action:
    if path in _IN_PLACE_OF_RESTART:
        return Action.UPDATE_IN_PLACE
    if path[0] in _RESTART or path in _RESTART_PATHS:
        return Action.RESTART_REQUIRED
    if SECTION in path:
        return Action.UPDATE_IN_PLACE
    if path[0] == "isis":
        return _isis_action(path, removed=removed)
    if path[:2] == ("ospf", "areas"):
        return _area_action(path, removed=removed)
    return Action.UPDATE_IN_PLACE


def _area_action(path: tuple[str, ...], *, removed: bool) -> Action:
    # ospf areas AREA [type | ranges PREFIX [leaf] | interfaces IFNAME [leaf]]
    if path[3:4] == ("ranges",):
        return Action.UPDATE_IN_PLACE
    bounces = path[-1] in _BOUNCING if len(path) == 6 else path[-1] == "type" or removed
    return Action.BOUNCE_ADJACENCY if bounces else Action.UPDATE_IN_PLACE


def _isis_action(path: tuple[str, ...], *, removed: bool) -> Action:
    # isis [leaf | interfaces IFNAME [leaf]]
    if path[1] in _RESTART_ISIS:
        return Action.RESTART_REQUIRED
    if path[1] != "interfaces":
        return Action.UPDATE_IN_PLACE
    bounces = path[-1] in _BOUNCING_CIRCUIT if len(path) == 4 else removed
    return Action.BOUNCE_ADJACENCY if bounces else Action.UPDATE_IN_PLACE

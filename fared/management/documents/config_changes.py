"""Answers of commands that compare and change the configuration, and its history."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import msgspec

from fared.management.documents import human
from fared.management.documents.cells import Columns, Styled, count, dim, judged, red, yellow
from fared.management.documents.declare import Answer
from fared.management.documents.facts import Facts, Seconds, UnixTime

if TYPE_CHECKING:
    from fared.management.documents.paper import Paper


class ConfigChange(Facts):
    """``action`` is update-in-place, bounce-adjacency or restart-required."""

    path: str
    old: Any
    new: Any
    action: str


class ConfigDiff(Answer, tag="fared-config-diff/1"):
    """``config diff FILE`` (arguments ``text``, ``file``): the file compared with what runs."""

    changes: list[ConfigChange]

    def show(self, paper: Paper) -> None:
        """Print the differences."""
        _show_changes(self.changes, paper)


class ReloadDocument(Answer, tag="fared-reload/1"):
    """``config reload``. ``errors`` are lines for people; if there are any, nothing was applied.

    ``changes`` lists all differences; those marked restart-required were not applied.
    """

    applied: bool
    changes: list[ConfigChange] = msgspec.field(default_factory=list)
    errors: list[str] = msgspec.field(default_factory=list)
    warnings: list[str] = msgspec.field(default_factory=list)

    def show(self, paper: Paper) -> None:
        """Print errors, or the differences."""
        _show_faults(self, paper)
        paper.line(judged("applied" if self.applied else "refused", good=self.applied))
        if self.changes:
            _show_changes(self.changes, paper)


class ConfigChanged(Answer, tag="fared-config-change/1"):
    """``config apply``, ``config confirm`` and ``config rollback``.

    Arguments of the first: ``text``, ``file``, ``confirm`` (seconds), ``comment``; of the last:
    ``back``, ``confirm``, ``comment``.

    ``errors`` are lines for people; if there are any, nothing was applied. ``confirmed``: this was
    the confirmation. ``confirm_within``: the former configuration returns after so many seconds.
    """

    applied: bool
    confirmed: bool = False
    confirm_within: Seconds | None = None
    changes: list[ConfigChange] = msgspec.field(default_factory=list)
    errors: list[str] = msgspec.field(default_factory=list)
    warnings: list[str] = msgspec.field(default_factory=list)

    def show(self, paper: Paper) -> None:
        """Print errors, or the differences with what to do next."""
        _show_faults(self, paper)
        if not self.applied:
            paper.line(red("refused"))
            return
        if self.confirmed:
            paper.line(judged("confirmed and saved", good=True))
            return
        _show_changes(self.changes, paper)
        if self.confirm_within is None:
            paper.line(_saved(self.changes))
            return
        back = human.duration(self.confirm_within)
        paper.line(yellow(f"applied; unless you confirm, the former one returns in {back}:"))
        paper.line("  fared-cli config confirm")


class ConfigEntry(Facts):
    """One configuration that ran; ``back`` 0 is what runs, ``config rollback N`` applies N.

    ``how``: start, reload, apply, rollback, or return (of the former one). ``state``: final,
    unconfirmed, or expired. ``changes``: differences from the one before.
    """

    back: int
    at: UnixTime
    how: str
    user: str
    comment: str
    changes: int
    state: str


class ConfigHistory(Answer, tag="fared-config-history/1"):
    """``config history``, newest first; ``unconfirmed_until`` as in ``show status``."""

    unconfirmed_until: UnixTime | None
    entries: list[ConfigEntry]

    def show(self, paper: Paper) -> None:
        """Print the configurations."""
        paper.table(self.entries, _ENTRIES)
        if self.unconfirmed_until is not None:
            left = human.duration(max(self.unconfirmed_until - paper.now, 0))
            paper.line(yellow(f"unless confirmed, the former one returns in {left}"))


def date(at: float) -> str:
    """Format Unix time as local time."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))


def _show_faults(answer: ReloadDocument | ConfigChanged, paper: Paper) -> None:
    for error in answer.errors:
        paper.long(red(error))
    for warning in answer.warnings:
        paper.long(yellow(f"warning: {warning}"))


def _show_changes(changes: list[ConfigChange], paper: Paper) -> None:
    if not changes:
        paper.line("no differences")
    for change in changes:
        values = f": {_value(change.old)} -> {_value(change.new)}"
        good = change.action == "update-in-place"
        action = judged(f"  [{_action(change)}]", good=good, bad="yellow")
        paper.long((Styled(change.path, "bold"), values, action))


def _action(change: ConfigChange) -> str:
    """Return the action in the words of the protocol: BGP has no adjacencies."""
    of_bgp = change.path.startswith("bgp.")
    return change.action.replace("adjacency", "session") if of_bgp else change.action


def _saved(changes: list[ConfigChange]) -> Styled:
    """Say what is in effect: some settings only are after a restart."""
    waiting = sum(change.action == "restart-required" for change in changes)
    if not waiting:
        return judged("applied and saved", good=True)
    wait = f"{count(waiting, 'setting')} {'waits' if waiting == 1 else 'wait'} for a restart"
    done = "saved" if waiting == len(changes) else "applied and saved"
    return yellow(f"{done}; {wait}: 'fared-cli restart'")


def _value(value: object) -> str:
    return "(none)" if value is None else json.dumps(value)


def _state(entry: ConfigEntry) -> Styled:
    if entry.state == "unconfirmed":
        return yellow(entry.state)
    return dim("" if entry.state == "final" and entry.back else entry.state)


_ENTRIES: Columns = {
    ">N": "back",
    "Since": lambda entry: date(entry.at),
    "How": "how",
    "By": "user",
    ">Changes": "changes",
    "": _state,
    "~Comment": "comment",
}

"""Answers commands: documents by their views, all others as requests (``people.requests``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fared.management.api.respond import Json
from fared.management.documents.registry import by_command

if TYPE_CHECKING:
    from fared.daemon.people.requests import ActionHost, Answer


def answer(host: ActionHost, command: str, args: Json) -> Answer:
    """Answer a command of the control socket or HTTP. Raises CommandError."""
    if (document := by_command(command)) is not None:
        from fared.management.documents.dispatch import begin_view  # noqa: PLC0415 - 20 ms that READY does not need

        return begin_view(host.views.context(), document, args)
    from fared.daemon.people.requests import perform  # noqa: PLC0415 - loaded where it is asked

    return perform(host, command, args)

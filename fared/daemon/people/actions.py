"""The commands that change the daemon, or need more of it than a view has."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

from fared.config import Config
from fared.daemon.change.config_change import ConfigChanges
from fared.daemon.change.config_documents import ConfigDocuments
from fared.daemon.change.operation import Operation
from fared.daemon.change.restart import GracefulRestart
from fared.daemon.extensions import JOB_REQUESTS, extension
from fared.daemon.people.views import ViewSource
from fared.daemon.services.running import Services
from fared.management.api.caller import may_change
from fared.management.api.documents import BY_COMMAND
from fared.management.api.errors import CommandError
from fared.management.api.respond import Json
from fared.management.api.sliced import Work

_READING = frozenset({"config-diff", "config-history", "record-status"})
"""The commands below that change nothing."""
Answer = Mapping[str, Any] | Work[Mapping[str, Any]] | Awaitable[Mapping[str, Any]]


class ActionHost(Protocol):
    """The parts of the daemon that commands reach."""

    path: str
    config: Config
    changes: ConfigChanges
    config_documents: ConfigDocuments
    operation: Operation
    restarts: GracefulRestart
    views: ViewSource
    services: Services


def answer(host: ActionHost, command: str, args: Json) -> Answer:
    """Answer a command of the control socket or HTTP. Raises CommandError."""
    if command == "show config":
        return host.config_documents.answer(args)
    if command in BY_COMMAND:
        return host.views.answer(command, args)
    if command not in _READING and not may_change(host.config.api.change_group):
        text = f"only members of group {host.config.api.change_group} may do that"
        raise CommandError("forbidden", text)
    actions: Mapping[str, Callable[[], Answer]] = {
        "drain": lambda: host.operation.drain(args),
        "undrain": lambda: host.operation.undrain(args),
        "restart": lambda: host.restarts.restart(graceful=args.get("graceful", True) is not False),
        "clear-limits": host.operation.clear_limits,
        "reload": host.changes.reloader.reload,
        "config-diff": lambda: host.changes.reloader.diff(args),
        "config-apply": lambda: host.changes.apply(args),
        "config-confirm": host.changes.confirm,
        "config-rollback": lambda: host.changes.rollback(args),
        "config-history": host.changes.history,
    }
    if command.startswith("record-"):
        return _recording(host, command, args)
    if command.startswith("ina-"):
        return _aggregation(host, command, args)
    action = actions.get(command)
    if action is None:
        raise CommandError("unknown-command", f"no such command: {command}")
    return action()


def _recording(host: ActionHost, command: str, args: Json) -> Answer:
    from fared.daemon.people.record_requests import recording  # noqa: PLC0415 - loaded where it is asked

    return recording(host.services, host.config.state_directory, command, args)


def _aggregation(host: ActionHost, command: str, args: Json) -> Answer:
    service = host.services.ina
    if service is None:
        raise CommandError("bad-argument", "in-network aggregation is not enabled (ina: enabled)")
    answer: Answer = extension(JOB_REQUESTS)(service, command, args)
    return answer

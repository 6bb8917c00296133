"""Performs requests: who may, with which arguments, and which part of the daemon does it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

from fared.daemon.change.config_change import ConfigChanges
from fared.daemon.change.operation import Operation
from fared.daemon.change.restart import GracefulRestart
from fared.daemon.loop.runtime import RunningConfig
from fared.daemon.people.clearing import clear_counters, clear_neighbor, set_log_level
from fared.daemon.people.logs import DaemonLog
from fared.daemon.people.recordings import begin_recording, end_recording, recording_status
from fared.daemon.people.views import ViewSource
from fared.daemon.services.running import Services
from fared.management.api import requests
from fared.management.api.caller import may_change
from fared.management.api.requests import DaemonRequest
from fared.management.api.respond import Json
from fared.management.documents.errors import CommandError
from fared.management.documents.facts import Built
from fared.management.documents.sliced import Work
from fared.runtime import extensions

Answer = Built | Work[Built] | Awaitable[Built]


class ActionHost(Protocol):
    """The parts of the daemon that commands reach."""

    running: RunningConfig
    changes: ConfigChanges
    operation: Operation
    restarts: GracefulRestart
    views: ViewSource
    services: Services
    logs: DaemonLog


def perform(host: ActionHost, command: str, args: Json) -> Answer:
    """Perform a request. Raises CommandError."""
    cls = requests.REQUESTS.get(command)
    if not (cls is not None and cls.reads) and not may_change(host.running.config.api.change_group):
        text = f"only members of group {host.running.config.api.change_group} may do that"
        raise CommandError("forbidden", text)
    if cls is not None:
        return _PERFORM[command](host, requests.read(cls, args))
    return _perform_plugged_in(host, command, args)


def _perform_plugged_in(host: ActionHost, command: str, args: Json) -> Answer:
    """Perform a request of another package, whose code is loaded where it is enabled."""
    for names in extensions.SERVICES:
        if not command.startswith(f"{names.section}-"):
            continue
        service = host.services.plugged.get(names.section)
        if service is None:
            text = f"{names.title} is not enabled ({names.section}: enabled)"
            raise CommandError("bad-argument", text)
        cls: type[DaemonRequest] | None = extensions.part(names.requests).get(command)
        if cls is not None:
            answer: Answer = extensions.part(names.perform)(service, requests.read(cls, args))
            return answer
    raise CommandError("unknown-command", f"no such command: {command}")


_PERFORM: Mapping[str, Callable[[ActionHost, Any], Answer]] = {
    "drain": lambda host, asked: host.operation.drain(asked),
    "undrain": lambda host, asked: host.operation.undrain(asked.interface),
    "restart": lambda host, asked: host.restarts.restart(graceful=asked.graceful),
    "clear-limits": lambda host, _: host.operation.clear_limits(),
    "clear-neighbor": lambda host, asked: clear_neighbor(host.views, host.operation, asked),
    "clear-counters": lambda host, _: clear_counters(host.views),
    "log-level": lambda host, asked: set_log_level(
        host.logs, asked.level, host.running.config.log.level
    ),
    "reload": lambda host, _: host.changes.reloader.reload(),
    "config-diff": lambda host, asked: host.changes.reloader.diff(asked),
    "config-apply": lambda host, asked: host.changes.apply(asked),
    "config-confirm": lambda host, _: host.changes.confirm(),
    "config-rollback": lambda host, asked: host.changes.rollback(asked),
    "config-history": lambda host, _: host.changes.history(),
    "record-start": lambda host, asked: begin_recording(
        host.services, host.running.config.state_directory, asked
    ),
    "record-stop": lambda host, _: end_recording(host.services),
    "record-status": lambda host, _: recording_status(host.services),
}

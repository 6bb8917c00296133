"""A changed configuration file: what of it takes effect at once, and how that is told."""

from __future__ import annotations

from pathlib import Path

from fared.api.control import CommandError, Json
from fared.config import Change, Config, ConfigErrors, diff, load, load_text
from fared.config.isis import Isis


def merged(old: Config, new: Config) -> Config:
    """What runs after a reload.

    What needs a restart stays as it is; where nothing does, this is the new file.
    """
    return new.model_copy(
        update={
            "router_id": old.router_id,
            "fib": old.fib.model_copy(update={"on_exit": new.fib.on_exit}),
            "api": old.api,
            "ospf": (new.ospf or old.ospf) if old.ospf else None,
            "isis": _kept(old.isis, new.isis),
        }
    )


def _kept(old: Isis | None, new: Isis | None) -> Isis | None:
    if old is None or new is None:
        return old
    fixed = ("net", "level", "address_families", "multi_topology", "path_capacity_sub_tlv")
    return new.model_copy(update={name: getattr(old, name) for name in fixed})


def config_diff(config: Config, path: str, args: Json) -> Json:
    """``config diff``: the text in ``args``, else the file, against what runs."""
    text, name = args.get("text"), str(args.get("file", "FILE"))
    try:
        other = load(Path(path)) if text is None else load_text(str(text), name)
    except ConfigErrors as errors:
        raise CommandError("bad-argument", str(errors)) from None
    return {"format": "fared-config-diff/1", "changes": _changes(diff(config, other))}


def applied(changes: list[Change]) -> Json:
    """``config reload`` that was taken."""
    return {
        "format": "fared-reload/1",
        "applied": True,
        "changes": _changes(changes),
        "errors": [],
    }


def refused(error: Exception) -> Json:
    """``config reload`` that was not: the running configuration stays."""
    return {
        "format": "fared-reload/1",
        "applied": False,
        "changes": [],
        "errors": str(error).splitlines(),
    }


def _changes(changes: list[Change]) -> list[Json]:
    return [
        {
            "path": ".".join(change.path),
            "old": change.old,
            "new": change.new,
            "action": change.action.value,
        }
        for change in changes
    ]

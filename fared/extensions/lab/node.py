"""One node of a fabric: the program of a container that containerlab starts.

containerlab creates containers and links; addresses and configuration are left to the programs in
them. ``fared-lab node`` computes them from the same topology file, with the same code as
``fared-lab up``, and then becomes the node's daemon.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NoReturn

from fared.extensions.lab.addressing import NodePlan
from fared.extensions.lab.delay import set_netem
from fared.extensions.lab.errors import LabError
from fared.extensions.lab.kinds import NodeKind, kind_of
from fared.extensions.lab.kinds.bridge import bridge_commands
from fared.extensions.lab.namespaces import CurrentNetns, Netns
from fared.extensions.lab.shaping import shape_command
from fared.extensions.lab.source_routes import host_routes, set_rules

_KINDS = ("fared", "linux")
_NET = "net."
_DEFAULT = "ipv4.conf.default."
_POLL = 0.05
# A shell that is process 1 receives only signals that it traps.
_IDLE = ("sh", "-c", "trap 'kill $!; exit 0' TERM INT; sleep infinity & wait")


def configure_interfaces(netns: Netns, plan: NodePlan) -> None:
    """Give a node's interfaces addresses, routes and rates and bring them up. Raises LabError."""
    netns.batch("ip", _interface_commands(plan))
    set_rules(netns, plan)
    netns.batch(
        "tc", [shape_command(port, port.rate) for port in plan.ports if port.rate is not None]
    )


def exec_node(plan: NodePlan, directory: Path, patience: float) -> NoReturn:
    """Become this node in the network namespace of the calling process; does not return.

    Waits up to ``patience`` seconds for the interfaces: containerlab moves them in while the
    container runs already. Configuration and control socket go to ``directory``. Ends by
    executing the node's daemon, or a sleeping shell if the node is a host. Raises LabError.
    """
    if plan.node.kind not in _KINDS:
        raise LabError(
            f"{plan.name} is of kind {plan.node.kind}; `fared-lab node` is for the kinds "
            f"{' and '.join(_KINDS)}: use an image and a configuration of its own"
        )
    lacking = [tool for tool in ("ip", "tc") if shutil.which(tool) is None]
    if lacking:
        raise LabError(f"{', '.join(lacking)} not installed (Debian package iproute2)")
    _await_interfaces(plan, patience)
    here = CurrentNetns(plan.name)
    _set_sysctls(here, plan)
    here.batch("ip", [f"link set dev {port.name} mtu {port.mtu}" for port in plan.ports])
    configure_interfaces(here, plan)
    if (problem := set_netem(here, plan.ports)) is not None:
        print(f"fared-lab: {problem}", file=sys.stderr)
    _execute(_prepare_daemon(plan, directory))


def _await_interfaces(plan: NodePlan, patience: float) -> None:
    deadline = time.monotonic() + patience
    while True:
        present = {name for _, name in socket.if_nameindex()}
        missing = [port.name for port in plan.ports if port.name not in present]
        if not missing:
            return
        if time.monotonic() >= deadline:
            raise LabError(f"{plan.name}: no interface {', '.join(missing)} after {patience:g} s")
        time.sleep(_POLL)


def node_sysctls(kind: NodeKind, plan: NodePlan) -> dict[str, object]:
    """Return the network sysctls of a node without ``net.``: its kind's, then the file's."""
    own = {
        key.removeprefix(_NET): value
        for key, value in plan.node.sysctls.items()
        if key.startswith(_NET)
    }
    return {**kind.sysctls(plan), **own}


def _set_sysctls(here: Netns, plan: NodePlan) -> None:
    """Set the sysctls of the kind; also those of interfaces, which exist already."""
    for key, value in node_sysctls(kind_of(plan.node.kind), plan).items():
        here.sysctl(key, value)
        if key.startswith(_DEFAULT):
            for port in plan.ports:
                here.sysctl(f"ipv4/conf/{port.name}/{key.removeprefix(_DEFAULT)}", value)


def _prepare_daemon(plan: NodePlan, directory: Path) -> Sequence[str]:
    """Write the node's configuration; return the command to execute."""
    kind = kind_of(plan.node.kind)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for file, text in kind.files(plan, directory).items():
            (directory / file).write_text(text, "utf-8")
    except OSError as error:
        raise LabError(f"{error.filename}: {error.strerror}") from error
    commands = kind.commands(plan, directory)
    if not commands:
        return _IDLE
    for helper in commands[:-1]:
        subprocess.Popen(helper.arguments, start_new_session=True)
    return commands[-1].arguments


def _execute(arguments: Sequence[str]) -> NoReturn:
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        os.execvp(arguments[0], list(arguments))  # noqa: S606 - the point: signals reach the daemon itself
    except OSError as error:
        raise LabError(f"{arguments[0]}: {error.strerror}") from error


def _interface_commands(plan: NodePlan) -> Iterator[str]:
    return bridge_commands(plan) if plan.node.is_segment else _address_commands(plan)


def _address_commands(plan: NodePlan) -> Iterator[str]:
    """Yield idempotent ``ip`` commands: a restarted container already has the addresses."""
    yield "link set dev lo up"
    if plan.loopback is not None:
        yield f"addr replace {plan.loopback}/32 dev lo"
    if plan.loopback6 is not None:
        yield f"addr replace {plan.loopback6}/128 dev lo"
    for port in plan.ports:
        yield f"addr replace {port.address} dev {port.name}"
        if port.address6 is not None:
            yield f"addr replace {port.address6} dev {port.name} nodad"
        if plan.node.single_segments:
            yield f"link set dev {port.name} gso_max_segs 1"
        yield f"link set dev {port.name} up"
    yield from host_routes(plan)

"""One node of a fabric: the program of a container that containerlab starts.

containerlab creates containers and links; addresses and configuration are left to the programs in
them. ``fared-lab node`` computes them from the same topology file, with the same code as
``fared-lab up``, and then becomes the node's daemon.
"""

from __future__ import annotations

import json
import os
import pwd
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

from fared.extensions.lab.addressing import NodePlan
from fared.extensions.lab.delay import set_netem
from fared.extensions.lab.errors import LabError
from fared.extensions.lab.kinds import NodeKind, kind_of
from fared.extensions.lab.kinds.base import Command
from fared.extensions.lab.kinds.bridge import bridge_commands
from fared.extensions.lab.namespaces import CurrentNetns, Netns
from fared.extensions.lab.shaping import shape_command
from fared.extensions.lab.source_routes import host_routes, set_rules
from fared.kernel.sysctl import PROC_SYS, SysctlMode, Wanted, apply_sysctls, wanted_sysctls

_NET = "net."
_DEFAULT = "net/ipv4/conf/default/"
_POLL = 0.05
_START_DEADLINE = 60.0
_READY = "ready"
"""A file that exists while all of a node runs that is no daemon of ours, which answers itself."""
_CAPABILITIES = "-all,+net_admin,+net_raw,+net_bind_service"
# A shell that is process 1 receives only signals that it traps.
_IDLE = ("sh", "-c", "trap 'kill $!; exit 0' TERM INT; sleep infinity & wait")


def configure_interfaces(netns: Netns, plan: NodePlan) -> None:
    """Give a node's interfaces addresses, routes and rates and bring them up. Raises LabError."""
    netns.batch("ip", _interface_commands(plan))
    set_rules(netns, plan)
    netns.batch(
        "tc", [shape_command(port, port.rate) for port in plan.ports if port.rate is not None]
    )


def exec_node(plan: NodePlan, directory: Path, patience: float, user: str | None) -> NoReturn:
    """Become this node in the network namespace of the calling process; does not return.

    Waits up to ``patience`` seconds for the interfaces: containerlab moves them in while the
    container runs already. Configuration and control socket go to ``directory``. Ends by
    executing the node's daemon, fared as ``user``, or a sleeping shell if the node is a host.
    Raises LabError.
    """
    kind = kind_of(plan.node.kind)
    (directory / _READY).unlink(missing_ok=True)
    if (missing := kind.missing()) is not None:
        raise LabError(
            f"{plan.name} is of kind {plan.node.kind}, without {missing}: use the image of "
            "containerlab/Dockerfile.peers, or an image and a configuration of its own"
        )
    lacking = [tool for tool in ("ip", "tc") if shutil.which(tool) is None]
    if lacking:
        raise LabError(f"{', '.join(lacking)} not installed (Debian package iproute2)")
    _await_interfaces(plan, patience)
    here = CurrentNetns(plan.name)
    _set_sysctls(plan)
    plan = _set_mtus(here, plan)
    configure_interfaces(here, plan)
    if (problem := set_netem(here, plan.ports)) is not None:
        _say(problem)
    _execute(_prepare_daemon(plan, directory, user))


def _await_interfaces(plan: NodePlan, patience: float) -> None:
    """Wait for the links, and say at once for which: a container in vain looks like one at work."""
    deadline = time.monotonic() + patience
    said = False
    while True:
        present = {name for _, name in socket.if_nameindex()}
        missing = ", ".join(port.name for port in plan.ports if port.name not in present)
        if not missing:
            return
        if not said:
            _say(f"{plan.name} waits up to {patience:g} s for its links {missing}")
            said = True
        if time.monotonic() >= deadline:
            raise LabError(
                f"{plan.name}: no interface {missing} after {patience:g} s. The links of a "
                "container go when it stops: after a restart, containerlab must deploy it again"
            )
        time.sleep(_POLL)


def _set_mtus(here: Netns, plan: NodePlan) -> NodePlan:
    """Set the MTUs that the file names; return the plan with those that the other links have."""
    given = [port for port in plan.ports if port.mtu_given]
    here.batch("ip", [f"link set dev {port.name} mtu {port.mtu}" for port in given])
    found = {link["ifname"]: link["mtu"] for link in json.loads(here.ip("-json", "link", "show"))}
    ports = tuple(replace(port, mtu=found[port.name]) for port in plan.ports)
    return replace(plan, ports=ports)


def node_sysctls(kind: NodeKind, plan: NodePlan) -> dict[str, object]:
    """Return the network sysctls of a node without ``net.``: its kind's, then the file's."""
    own = {
        key.removeprefix(_NET): value
        for key, value in plan.node.sysctls.items()
        if key.startswith(_NET)
    }
    return {**kind.sysctls(plan), **own}


def container_sysctls(plan: NodePlan) -> dict[str, str]:
    """Return all network sysctls of a node, with ``net.``: what its daemon sets is among them.

    With these values from the start, a container need not be permitted to set any. Those of the
    lab are among the values that the daemon accepts.
    """
    return {row.name: row.value for row in (*_sysctls_of_fared(plan), *_own_sysctls(plan))}


def _own_sysctls(plan: NodePlan) -> list[Wanted]:
    return [
        _wanted(f"{_NET}{key}", value)
        for key, value in node_sysctls(kind_of(plan.node.kind), plan).items()
    ]


def _sysctls_of_fared(plan: NodePlan) -> list[Wanted]:
    if plan.node.kind != "fared" or plan.node.startup_config is not None:
        return []
    return wanted_sysctls(int(plan.router_id), ipv6=plan.node.ipv6)


def _wanted(key: str, value: object) -> Wanted:
    path = key if "/" in key else key.replace(".", "/")
    words = str(value).split()
    return Wanted(path, str(value), lambda found: found.split() == words, "the file says so")


def _set_sysctls(plan: NodePlan) -> None:
    """Set the sysctls of the kind; also those of interfaces, which exist already.

    Values that are right already are not written, so that a container can begin with them which
    may write none. Raises LabError, which names all that are wrong, with those that the daemon
    would try to set.
    """
    own, of_fared = _own_sysctls(plan), _sysctls_of_fared(plan)
    may_write = os.access(PROC_SYS / "net/ipv4/ip_forward", os.W_OK)
    rows = [
        *([] if may_write else apply_sysctls(SysctlMode.CHECK, of_fared)),
        *apply_sysctls(SysctlMode.SET, own),
    ]
    wrong = [row for row in rows if not row.ok]
    if wrong:
        why = next((row.error for row in wrong if row.error), "they cannot be written")
        named = {row.name: row.wanted for row in wrong}  # the lab's own value, if it has one
        values = ", ".join(f"{name}: {value}" for name, value in named.items())
        raise LabError(
            f"{plan.name} may not set sysctls here ({why}). Without `privileged: false` it may; "
            f"or begin with them, in the topology file:\n  sysctls: {{{values}}}"
        )
    apply_sysctls(
        SysctlMode.SET,
        [
            _wanted(f"net/ipv4/conf/{port.name}/{each.path.removeprefix(_DEFAULT)}", each.value)
            for each in own
            if each.path.startswith(_DEFAULT)
            for port in plan.ports
        ],
    )


def _prepare_daemon(plan: NodePlan, directory: Path, user: str | None) -> Sequence[str]:
    """Write the node's configuration, start all programs but the last, whose command is returned.

    ``user``: the account of fared.
    """
    kind = kind_of(plan.node.kind)
    account = user if plan.node.kind == "fared" else kind.account
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for file, text in kind.files(plan, directory).items():
            (directory / file).write_text(text, "utf-8")
        if account is not None and os.geteuid() == 0:
            for path in (directory, *directory.iterdir()):
                shutil.chown(path, account)
    except (OSError, LookupError) as error:
        raise LabError(f"{directory}: {error}") from error
    commands = list(kind.commands(plan, directory))
    last = commands.pop() if commands and commands[-1].lasting else None
    for command in commands:
        _start(plan, command, user)
    if last is None or plan.node.kind != "fared":
        (directory / _READY).touch()
    return _IDLE if last is None else _by(user, plan, last)


def _start(plan: NodePlan, command: Command, user: str | None) -> None:
    """Start a program beside the last one, and wait until it is ready, or at its end."""
    if command.ready is not None:
        command.ready.unlink(missing_ok=True)
    process = subprocess.Popen(_by(user, plan, command), start_new_session=True)
    deadline = time.monotonic() + _START_DEADLINE
    while True:
        ended = process.poll()
        if ended is not None and (ended or command.lasting):
            raise LabError(f"{plan.name}: {command.name} ended with code {ended}")
        if ended == 0 or (command.lasting and (not command.ready or command.ready.exists())):
            return
        if time.monotonic() > deadline:
            raise LabError(f"{plan.name}: {command.name} is not ready in time")
        time.sleep(_POLL)


def _by(user: str | None, plan: NodePlan, command: Command) -> Sequence[str]:
    """Return a command that runs fared as an ordinary user with the capabilities it needs.

    Other daemons change to accounts of their own.
    """
    if user is None or plan.node.kind != "fared" or os.geteuid() != 0:
        return command.arguments
    kept = (f"--{which}={_CAPABILITIES}" for which in ("inh-caps", "ambient-caps", "bounding-set"))
    who = (f"--reuid={user}", f"--regid={pwd.getpwnam(user).pw_gid}", "--init-groups")
    return ("setpriv", *who, *kept, "--no-new-privs", "--", *command.arguments)


def _say(line: str) -> None:
    print(f"fared-lab: {line}", file=sys.stderr, flush=True)


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
        if port.numbered:
            yield f"addr replace {port.address} dev {port.name}"
        if port.address6 is not None:
            yield f"addr replace {port.address6} dev {port.name} nodad"
        if plan.node.single_segments:
            yield f"link set dev {port.name} gso_max_segs 1"
        yield f"link set dev {port.name} up"
    yield from host_routes(plan)

"""Who may change the daemon over the control socket, and who only reads."""

from __future__ import annotations

import grp
import os
import socket
from types import SimpleNamespace

import pytest

from fared.daemon.people import actions
from fared.management.api.caller import PEER, Peer, may_change, name_of, peer_of
from fared.management.documents.counters import Counters
from fared.management.documents.errors import CommandError

GROUP = grp.getgrgid(1)
"""Any group that every system has."""


@pytest.fixture
def caller():
    """Answer requests as some user of some groups."""
    before = PEER.set(None)
    yield lambda user, *groups: PEER.set(Peer(user, frozenset(groups)))
    PEER.reset(before)


def test_the_kernel_tells_user_and_groups_of_who_connected():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        peer = peer_of(ours)
    assert peer == Peer(os.getuid(), frozenset((os.getgid(), *os.getgroups())))
    assert name_of(peer) in ("root", str(os.getuid()), os.environ.get("USER", ""))


def test_without_a_group_whoever_may_connect_changes_the_daemon(caller):
    caller(4711, 4711)
    assert may_change(None)


def test_with_one_its_members_root_and_the_daemons_user_do(caller):
    caller(4711, 4711, GROUP.gr_gid)
    assert may_change(GROUP.gr_name)
    caller(4711, 4711)
    assert not may_change(GROUP.gr_name)
    assert not may_change("no-such-group")
    for user in (0, os.geteuid()):
        caller(user, user)
        assert may_change("no-such-group")


def test_nobody_that_the_kernel_does_not_name_changes_anything(caller):
    assert not may_change(GROUP.gr_name)


GUARDED = SimpleNamespace(config=SimpleNamespace(api=SimpleNamespace(change_group="adm")))
CHANGES = (
    "drain undrain restart reload clear-limits clear-neighbor clear-counters log-level"
    " record-start record-stop config-apply"
    " config-confirm config-rollback ina-create ina-delete"
)


@pytest.mark.parametrize("command", CHANGES.split())
def test_all_commands_that_change_something_are_refused_to_readers(caller, command):
    caller(4711, 4711)
    host = SimpleNamespace(running=GUARDED)
    with pytest.raises(CommandError, match="only members of group adm may do that") as refused:
        actions.answer(host, command, {})
    assert refused.value.code == "forbidden"


def test_readers_read(caller):
    caller(4711, 4711)
    history = {"format": "fared-config-history/1"}
    runtime = SimpleNamespace(cleared=None)
    context = SimpleNamespace(
        proto=None, counters=dict, runtime=runtime, narrowed=lambda _: context
    )
    host = SimpleNamespace(
        running=GUARDED,
        changes=SimpleNamespace(
            history=lambda: history,
            apply=None,
            confirm=None,
            rollback=None,
            reloader=SimpleNamespace(reload=None),
        ),
        operation=SimpleNamespace(clear_limits=None),
        views=SimpleNamespace(context=lambda: context),
    )
    assert actions.answer(host, "config-history", {}) == history
    assert actions.answer(host, "show counters", {}) == Counters(counters=[], cleared_at=None)

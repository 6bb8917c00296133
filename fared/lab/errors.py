"""What the lab says when it cannot go on."""

from __future__ import annotations


class LabError(Exception):
    """The lab cannot do what was asked; the message is for people, ``exit_code`` for scripts."""

    exit_code = 1


class TopologyError(LabError):
    """The topology file is wrong; the message lists every fault found."""

    exit_code = 2

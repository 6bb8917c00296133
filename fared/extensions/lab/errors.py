"""Errors of the lab."""

from __future__ import annotations


class LabError(Exception):
    """The lab cannot do what was requested; the message is for people, the code for scripts."""

    exit_code = 1


class TopologyError(LabError):
    """The topology file is wrong; the message lists every fault found."""

    exit_code = 2

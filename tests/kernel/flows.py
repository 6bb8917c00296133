"""The next hop that the kernel selects for each of many flows, without sending packets."""

import subprocess

from fared.extensions.lab.namespaces import Netns

FLOWS = 3000


def placed(namespace: str, destination: str, flows: int = FLOWS) -> list[str]:
    """The interface of each UDP flow to ``destination``, by source port, as the kernel hashes it.

    Raises AssertionError if the kernel has no route for a flow.
    """
    lines = "\n".join(
        f"route get {destination} ipproto udp sport {1024 + n} dport 4791" for n in range(flows)
    )
    with Netns(namespace).entered():
        done = subprocess.run(
            ["ip", "-oneline", "-batch", "-"],
            input=lines,
            check=False,
            capture_output=True,
            text=True,
            timeout=60,
        )
    assert done.returncode == 0, done.stderr
    found = [line.partition(" dev ")[2].split()[0] for line in done.stdout.splitlines() if line]
    assert len(found) == flows
    return found


def moved(before: list[str], after: list[str]) -> float:
    """The fraction of flows that changed their interface."""
    return sum(a != b for a, b in zip(before, after, strict=True)) / len(before)


def fewest(before: list[str], after: list[str]) -> float:
    """The minimal fraction of flows that had to move for these shares."""
    names = {*before, *after}
    return sum(max(0, after.count(n) - before.count(n)) for n in names) / len(before)

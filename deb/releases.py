"""The releases that have packages of fared: what tells them apart, and where they come from.

A package is for the Python of one release, whose modules it has compiled. To add a release: a line
here, with the versions that it has of what is not bundled in ``tests/deb/test_contents.py``.
"""

from __future__ import annotations

from typing import NamedTuple


class Release(NamedTuple):
    """A release of Debian or Ubuntu, as mmdebstrap and its archive know it.

    ``suffix`` is what a package's version ends in: that for a later release is the later one, so
    that an upgrade of the system upgrades fared too. ``keyring`` is the file of its keys.
    """

    name: str
    suite: str
    python: tuple[int, int]
    suffix: str
    mirror: str = "http://deb.debian.org/debian"
    components: str = "main"
    keyring: str = "debian-archive-keyring.gpg"


_UBUNTU = ("http://archive.ubuntu.com/ubuntu", "main,universe")

RELEASES = (
    Release("debian-12", "bookworm", (3, 11), ""),
    Release("debian-13", "trixie", (3, 13), "+deb13"),
    Release(
        *("ubuntu-24.04", "noble", (3, 12), "+ubuntu24.04", *_UBUNTU),
        keyring="ubuntu-archive-keyring.gpg",
    ),
)
SUFFIX = {release.python: release.suffix for release in RELEASES}
"""What a version ends in, by the Python that builds the package."""

MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}
"""The kernel's name of a machine, by Debian's of its architecture."""

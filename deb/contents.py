"""What goes into which Debian package: modules of fared, dependencies, files.

The router and its client import nothing of ``TOOLS``, so that a switch need not carry what these
need. ``tests/deb/test_contents.py`` and an import contract hold this.
"""

from __future__ import annotations

from pathlib import Path

TOOLS = (
    "fared.extensions.lab",
    "fared.extensions.offline",
    "fared.extensions.pictures",
    "fared.extensions.sim",
)
"""Modules, with all below them, that are in ``fared-tools``; all others are in ``fared``."""

DEBIAN = {
    "click": "python3-click",
    "cloudpickle": "python3-cloudpickle",
    "h11": "python3-h11",
    "pyyaml": "python3-yaml",
}
"""Dependencies of the router that Debian has new enough from 12 on, and their packages."""
DEBIAN_TOOLS = {"dpkt": "python3-dpkt"}
"""The same for the tools."""

BUNDLED = {"fared": "router.txt", "fared-tools": "tools.txt"}
"""The lists of bundled dependencies, beside this module: Debian 12 lacks them, or has them too old.
They are installed below ``PRIVATE``, which no other program reads."""
PRIVATE = Path("usr/lib/fared")

FILES = {
    "fared": {
        "fared/management/api/static/*.*": "usr/lib/fared/fared/management/api/static",
        "fared/management/api/static/vendor/*": "usr/lib/fared/fared/management/api/static/vendor",
        "systemd/fared.service": "lib/systemd/system/fared.service",
        "systemd/fared-ina.service": "lib/systemd/system/fared-ina.service",
        "systemd/sysusers.d/fared.conf": "usr/lib/sysusers.d/fared.conf",
        "systemd/rt_protos.d/fared.conf": "etc/iproute2/rt_protos.d/fared.conf",
        "systemd/networkd.conf.d/fared.conf": "usr/lib/systemd/networkd.conf.d/fared.conf",
        "systemd/bfd-realtime.conf": "usr/share/doc/fared/examples/bfd-realtime.conf",
        "systemd/fared-ina-bier.conf": "usr/share/doc/fared/examples/fared-ina-bier.conf",
        "deb/fared.yaml": "etc/fared/fared.yaml",
        "config/*.yaml": "usr/share/doc/fared/examples",
        "docs/*.*": "usr/share/doc/fared/docs",
        "docs/seeds/*": "usr/share/doc/fared/docs/seeds",
        "monitoring/fared.*": "usr/share/doc/fared/monitoring",
        "monitoring/prometheus.yml": "usr/share/doc/fared/monitoring/prometheus.yml",
        "README.md": "usr/share/doc/fared/README.md",
        "CHANGELOG.md": "usr/share/doc/fared/changelog",
    },
    "fared-tools": {
        "containerlab/*.clab.yml": "usr/lib/fared/fared/extensions/lab/topologies",
        "containerlab/*.model.yml": "usr/lib/fared/fared/extensions/lab/topologies",
    },
}
"""Where files of the source tree go; a target of a glob is a directory."""
CONFFILES = ("etc/fared/fared.yaml", "etc/iproute2/rt_protos.d/fared.conf")

PROGRAMS = {
    "fared": {
        "fared": "fared.__main__",
        "fared-cli": "fared.management.cli.main",
        "fared-ina": "fared.extensions.ina.inad.main",
    },
    "fared-tools": {"fared-lab": "fared.extensions.lab.main"},
}
"""Programs in /usr/bin, by the module whose ``main`` they call."""


def matching(tree: Path, package: str) -> dict[Path, str]:
    """Return the files of a source tree that a package has as they are, with their places."""
    found = {}
    for pattern, target in FILES[package].items():
        for file in sorted(tree.glob(pattern)):
            found[file] = f"{target}/{file.name}" if "*" in pattern else target
    return found


def package_of(module: str) -> str:
    """Return the Debian package that has a module of fared."""
    inside = any(module == name or module.startswith(f"{name}.") for name in TOOLS)
    return "fared-tools" if inside else "fared"


def modules(tree: Path) -> dict[str, Path]:
    """Return all modules of fared in a source tree, by name."""
    found = {}
    for file in sorted((tree / "fared").rglob("*.py")):
        parts = file.relative_to(tree).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found

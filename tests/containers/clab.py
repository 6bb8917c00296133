"""A stand-in for containerlab, which no package registry has: what it does with our files.

It inherits as containerlab does (defaults, kind, group, node), starts a container for each node,
privileged unless the file says otherwise, moves in a veth for each link, whose MTU is 9500 if the
file names none, and runs ``exec``. Links come when all containers run already, and go with them.
"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import yaml

from fared.extensions.lab.kernel_view import KernelView
from fared.extensions.lab.namespaces import DIRECTORY, Netns
from tests.containers.engine import Podman

_MTU = 9500
_MERGED = ("labels", "sysctls", "env")
_JOINED = ("binds", "cap-add", "exec")


class Clab:
    """A lab of a topology file."""

    def __init__(self, file: Path, podman: Podman) -> None:
        document = yaml.safe_load(file.read_text())
        self.name: str = document["name"]
        self.topology: dict[str, Any] = document["topology"]
        self.nodes = {name: self._node(name) for name in self.topology["nodes"]}
        self._file, self._podman = file, podman
        self._views: dict[str, KernelView] = {}

    def _node(self, name: str) -> dict[str, Any]:
        own = self.topology["nodes"][name] or {}
        group = (self.topology.get("groups") or {}).get(own.get("group")) or {}
        defaults = self.topology.get("defaults") or {}
        kind = own.get("kind") or group.get("kind") or defaults.get("kind") or "linux"
        found: dict[str, Any] = {}
        for layer in (defaults, (self.topology.get("kinds") or {}).get(kind) or {}, group, own):
            for key, value in layer.items():
                if key in _MERGED:
                    found[key] = {**found.get(key, {}), **value}
                elif key in _JOINED:
                    found[key] = [*found.get(key, []), *value]
                else:
                    found[key] = value
        return found

    def container(self, node: str) -> str:
        """The name of a node's container."""
        return f"clab-{self.name}-{node}"

    def deploy(self) -> None:
        """Start all containers, then link them, then run what they are to execute."""
        for node in self.nodes:
            self.create(node)
        for node in self.nodes:
            self.start(node)
        self.link()
        for node, settings in self.nodes.items():
            for command in settings.get("exec", ()):
                self.exec(node, *shlex.split(command))

    def create(self, node: str) -> None:
        """Create a node's container."""
        settings = self.nodes[node]
        name = self.container(node)
        sysctls = {"net.ipv6.conf.all.disable_ipv6": 0, **settings.get("sysctls", {})}
        words = [
            "--name",
            name,
            "--hostname",
            node,
            "--network",
            settings.get("network-mode", "none"),  # there is no management network
            "-t",
            "-i",
        ]
        words.append(f"--cgroup-parent={self._podman.cgroup}")
        words += ["--privileged"] if settings.get("privileged", True) else []
        words += [f"--cap-add={each}" for each in settings.get("cap-add", ())]
        words += [f"--sysctl={key}={value}" for key, value in sysctls.items()]
        words += [f"--volume={self._file.parent / each}" for each in settings.get("binds", ())]
        words += [f"--restart={settings['restart-policy']}", settings["image"]]
        self._podman.run("create", *words, *shlex.split(settings.get("cmd", "")))

    def start(self, node: str) -> None:
        """Start a node's container, and name its network namespace as ``ip netns`` does."""
        name = self.container(node)
        self._podman.run("start", name)
        pid = self._podman.run("inspect", "--format", "{{.State.Pid}}", name).strip()
        assert int(pid), f"{node} has ended: {self.logs(node)}"
        DIRECTORY.mkdir(exist_ok=True)
        path = DIRECTORY / name
        path.unlink(missing_ok=True)
        path.symlink_to(f"/proc/{pid}/ns/net")

    def link(self, only: str | None = None) -> None:
        """Make the links, or only those of a node."""
        for link in self.topology["links"]:
            ends = self._ends(link)
            if only not in (None, *(node for node, _ in ends)):
                continue
            mtu = str(link.get("mtu", _MTU))
            words = [
                (*("name", port, "mtu", mtu), *("netns", self.container(node)))
                for node, port in ends
            ]
            line = ("link", "add", *words[0], "type", "veth", "peer", *words[1])
            self.netns(ends[0][0]).ip(*line)
            for node, port in ends:
                self.netns(node).ip("link", "set", "dev", port, "up")

    @staticmethod
    def _ends(link: dict[str, Any]) -> list[tuple[str, str]]:
        """Nodes and interfaces; a dummy interface is a veth whose far end nobody uses."""
        if link.get("type") == "dummy":
            node, port = link["endpoint"]["node"], link["endpoint"]["interface"]
            return [(node, port), (node, f"{port}-far")]
        found = [end.partition(":") for end in link["endpoints"]]
        return [(node, port) for node, _, port in found]

    def restart(self, node: str) -> None:
        """Restart a container, as Docker does by itself: its links are gone, at both ends."""
        self._podman.run("stop", "--time", "10", self.container(node))
        self._views.pop(node).close() if node in self._views else None
        self.start(node)

    def netns(self, node: str) -> Netns:
        """The network namespace of a node."""
        return Netns(self.container(node))

    def view(self, node: str) -> KernelView:
        """What the kernel of a node holds."""
        if node not in self._views:
            self._views[node] = KernelView(self.netns(node))
        return self._views[node]

    def exec(self, node: str, *command: str) -> str:
        """Run a command in a container, as ``docker exec`` does."""
        return self._podman.run("exec", self.container(node), *command)

    def logs(self, node: str) -> str:
        """What a container has printed."""
        return self._podman.run("logs", self.container(node), check=False)

    def healthy(self, node: str) -> bool:
        """Whether the health check of the image passes."""
        return self._podman.succeeds("healthcheck", "run", self.container(node))

    def destroy(self) -> None:
        """End all, as containerlab does: at once."""
        for view in self._views.values():
            view.close()
        self._podman.remove_all()
        for node in self.nodes:
            (DIRECTORY / self.container(node)).unlink(missing_ok=True)

"""The registry of documents: one entry for each document that a daemon provides.

The commands of the control socket, the paths of HTTP and their index, the commands of
``fared-cli``, ``tech-support`` and the tests are derived from it. A new ``show`` is an entry here,
a TypedDict in ``api/schema``, a view in ``api/views`` and a table in ``cli``, named by its format.
The registry is data and loads no view; ``api.dispatch`` answers by it.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from fared.management.documents import human

PROTOCOLS = tuple(human.PROTOCOLS)


class Argument(NamedTuple):
    """An argument of a document: ``name`` in requests, ``parameter`` of the view.

    ``kind``: ``text``; ``number``; ``flag``: true or false, on the command line the word itself;
    ``switch``: the same as an option.
    ``choices``: on the command line an option, not a word. ``word``: its name in help texts.
    """

    name: str
    kind: Literal["text", "number", "flag", "switch"] = "text"
    required: bool = False
    choices: tuple[str, ...] = ()
    help: str = ""
    word: str = ""
    parameter: str = ""

    @property
    def target(self) -> str:
        """The name of the view's parameter."""
        return self.parameter or self.name


PROTO = Argument("proto", choices=PROTOCOLS, help="Show one protocol only: ospf or isis.")
AF = Argument("af", choices=("ipv4", "ipv6"), help="Show one address family only: ipv4 or ipv6.")
PREFIX = Argument("prefix")


class Document(NamedTuple):
    """A document: ``show NAME``, or the command ``NAME`` where ``show`` is False.

    ``format``: the name and version that the document contains. ``view``: ``module:function`` of
    ``api.views``, called with the context and ``args``. ``help``: the help of its command, whose
    first sentence is for lists. ``narrowed``: also for one protocol (``proto``, ``show isis
    NAME``). ``rare``: its view is imported when somebody asks for it.
    """

    name: str
    format: str
    view: str
    help: str
    args: tuple[Argument, ...] = ()
    narrowed: bool = False
    show: bool = True
    rare: bool = False

    @property
    def command(self) -> str:
        """The command on the control socket."""
        return f"show {self.name}" if self.show else self.name

    @property
    def arguments(self) -> tuple[Argument, ...]:
        """All arguments of a request."""
        return (*self.args, PROTO) if self.narrowed else self.args


DOCUMENTS = (
    Document(
        "status",
        "fared-status/1",
        "system:status",
        "Summary of the daemon: identity, start-up, neighbors, routes.",
    ),
    Document(
        "interfaces",
        "fared-interfaces/1",
        "protocol:interfaces",
        "Interfaces with their capacity and load.",
        narrowed=True,
    ),
    Document(
        "load",
        "fared-load/1",
        "load:load",
        "Outbound load of interfaces in the last minutes.",
        (Argument("interface", word="INTERFACE"),),
    ),
    Document(
        "neighbors",
        "fared-neighbors/1",
        "protocol:neighbors",
        "Neighbors of OSPF, adjacencies of IS-IS.",
        narrowed=True,
    ),
    Document(
        "graceful-restart",
        "fared-graceful-restart/1",
        "protocol:graceful_restart",
        "Graceful restarts of this router, and of neighbors that it helps.",
        narrowed=True,
    ),
    Document(
        "database",
        "fared-database/1",
        "protocol:database",
        "The link-state database. With ID, also the contents of these LSAs or LSPs.\n\n"
        "IS-IS: TYPE is lsp, pseudonode, level-1 or level-2 and optional; ID is that of an LSP, or"
        " a system id or hostname.",
        (
            Argument("type", word="TYPE", parameter="kind"),
            Argument("id", word="ID", parameter="entry_id"),
        ),
        narrowed=True,
    ),
    Document(
        "lsdb",
        "fared-lsdb/1",
        "protocol:lsdb",
        "The raw database. With --json, the file that 'spf --lsdb' reads.\n\n"
        "If both protocols run, the file has that of OSPF unless --proto is given.",
        narrowed=True,
    ),
    Document(
        "topology",
        "fared-topology/1",
        "graph:topology",
        "The graph: nodes, links, metrics, capacities.",
        narrowed=True,
    ),
    Document(
        "fabric",
        "fared-fabric/1",
        "fabric:fabric",
        "The whole fabric: tiers, pods and planes, and links that are unusual.",
        narrowed=True,
        rare=True,
    ),
    Document(
        "spf",
        "fared-spf/1",
        "graph:spf",
        "The shortest-path tree, or the log of computations.",
        (Argument("log", "flag"),),
        narrowed=True,
    ),
    Document(
        "routes",
        "fared-routes/1",
        "routes:routes",
        "Routes with their weighted next hops.",
        (PREFIX, AF),
        narrowed=True,
    ),
    Document(
        "weights",
        "fared-weights/1",
        "routes:weights",
        "Path capacities and the weights computed from them.",
        (PREFIX, AF),
        narrowed=True,
    ),
    Document(
        "fib",
        "fared-fib/1",
        "kernel:fib",
        "The installed FIB. With `diff`, its differences from the kernel: exit 1 if there are any.",
        (Argument("diff", "flag"),),
    ),
    Document(
        "convergence",
        "fared-convergence/1",
        "system:convergence",
        "Duration of the last changes, by stage. Their causes are included.",
    ),
    Document(
        "changed",
        "fared-changed/1",
        "changed:changed",
        "Routes that a change was the last to change: the last one, or that of TIME.\n\n"
        "TIME is Unix time, as 'show convergence --json' has it.",
        (Argument("at", word="TIME"),),
        rare=True,
    ),
    Document(
        "bfd",
        "fared-bfd/1",
        "bfd:bfd",
        "BFD sessions, and the process that runs them. Counters are a few seconds old.",
        (Argument("detail", "flag", help="All values of each session."),),
    ),
    Document(
        "bier",
        "fared-bier/1",
        "bier:bier",
        "BIER: BFERs with the ways to them, and BFR neighbors. Counters are a few seconds old.",
        (Argument("bift", "flag", help="The tables, with the F-BM of each neighbor."),),
    ),
    Document(
        "ina",
        "fared-ina/1",
        "ina:ina",
        "In-network aggregation: process and jobs, or jobs | job NAME | slots.",
        (
            Argument("what", word="jobs|job|slots"),
            Argument("name", word="NAME"),
        ),
    ),
    Document("timers", "fared-timers/1", "protocol:timers", "Pending timers.", narrowed=True),
    Document(
        "counters", "fared-counters/1", "system:counters", "Counters since start.", narrowed=True
    ),
    Document(
        "memory",
        "fared-memory/1",
        "memory:memory",
        "Memory, descriptors and CPU of the daemon. The sizes of its tables are included.",
        narrowed=True,
    ),
    Document(
        "log",
        "fared-log/1",
        "system:log",
        "The last log lines.",
        (Argument("lines", "number", help="Number of lines."),),
    ),
    Document(
        "config",
        "fared-config/1",
        "config:config",
        "The running configuration with all defaults, or the saved one.",
        (
            Argument("running", "switch", help="What runs (the default)."),
            Argument("saved", "switch", help="The file, as the next start would read it."),
        ),
    ),
    Document(
        "explain",
        "fared-explain/1",
        "explain:explain",
        "Explain the route to PREFIX.",
        (Argument("prefix", required=True),),
        narrowed=True,
        show=False,
    ),
    Document(
        "path",
        "fared-path/1",
        "path:path",
        "Show all paths from SRC to DST. Each link has its share of the traffic.",
        (
            Argument("source", required=True, word="SRC"),
            Argument("destination", required=True, word="DST"),
            AF,
        ),
        narrowed=True,
        show=False,
    ),
    Document(
        "validate",
        "fared-validate/1",
        "system:validate",
        "Check that database, graph, routes and kernel agree. The exit code is 1 if not.",
        show=False,
    ),
)

BY_COMMAND = {document.command: document for document in DOCUMENTS}
SHOWN = {document.name: document for document in DOCUMENTS if document.show}
NARROWED = tuple(document.name for document in DOCUMENTS if document.show and document.narrowed)
"""The documents that ``show`` can restrict to one protocol."""


def find(name: str) -> Document | None:
    """Return the document of a name such as ``routes`` or ``explain``; None if there is none."""
    return SHOWN.get(name) or BY_COMMAND.get(name)

"""The declaration of a document: its class, its arguments, and the help of its command."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from fared.management.documents import human
from fared.management.documents.facts import Facts

if TYPE_CHECKING:
    from fared.management.documents.paper import Paper  # it imports rich

PROTOCOLS = tuple(human.PROTOCOLS)
COMMANDS = ("explain", "path", "validate")
"""Documents that are commands of their own; all others are ``show NAME``."""


class Answer(Facts, tag_field="format"):
    """A document; its tag, ``fared-NAME/VERSION``, is the key ``format``."""

    def show(self, paper: Paper) -> None:
        """Print it as people read it."""
        raise NotImplementedError


class Argument(msgspec.Struct, frozen=True):
    """An argument of a document: ``name`` in requests, ``parameter`` of the view.

    ``kind``: ``text``; ``number``; ``flag``: true or false, on the command line the word itself;
    ``switch``: the same as an option; ``option``: text that is an option on the command line, not a
    word, as is all that has ``choices``; ``duration``: the same, such as ``5m``. ``word``: its name
    in help texts.
    """

    name: str
    kind: Literal["text", "number", "flag", "switch", "option", "duration"] = "text"
    required: bool = False
    choices: tuple[str, ...] = ()
    help: str = ""
    word: str = ""
    parameter: str = ""

    @property
    def is_word(self) -> bool:
        """Whether it is a word on the command line, not an option."""
        return self.kind in ("text", "flag") and not self.choices

    @property
    def target(self) -> str:
        """The name of the view's parameter."""
        return self.parameter or self.name


PROTO = Argument("proto", choices=PROTOCOLS, help="Show one protocol only: ospf, isis or bgp.")
AF = Argument("af", choices=("ipv4", "ipv6"), help="Show one address family only: ipv4 or ipv6.")
PREFIX = Argument("prefix")


def name_of(format_name: str) -> str:
    """Return the name in a format: ``routes`` of ``fared-routes/1``."""
    return format_name.removeprefix("fared-").partition("/")[0]


class Document(msgspec.Struct, frozen=True):
    """A document.

    ``row``: its class. ``view``: the function that makes it, called with the context and ``args``,
    or its name in ``documents.views`` (``module:function``). ``help``: the help of its command,
    whose first sentence is for lists. ``narrowed``: also for one protocol (``proto``, ``show isis
    NAME``). ``rare``: its view is imported when somebody asks for it. ``proto``: the protocol that
    alone has it.
    """

    row: type[Answer]
    view: str | Callable[..., Any]
    help: str
    args: tuple[Argument, ...] = ()
    narrowed: bool = False
    rare: bool = False
    proto: str = ""

    @property
    def format(self) -> str:
        """The name and version that the document contains."""
        return str(self.row.__struct_config__.tag)

    @property
    def name(self) -> str:
        """The name in its format: ``routes`` of ``fared-routes/1``."""
        return name_of(self.format)

    @property
    def command(self) -> str:
        """The command on the control socket."""
        name = self.name
        return name if name in COMMANDS else f"show {name}"

    @property
    def arguments(self) -> tuple[Argument, ...]:
        """All arguments of a request."""
        return (*self.args, PROTO) if self.narrowed else self.args

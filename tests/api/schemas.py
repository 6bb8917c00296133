"""The types of the documents that views return; views import them for type checkers only."""

import ast
import inspect
import sys
import typing
from typing import Any

from fared.management.documents.declare import Document
from fared.management.documents.dispatch import view_of
from fared.management.documents.sliced import Sliced


def schema_of(entry: Document) -> Any:
    """The type of a document."""
    if entry.row is not None:
        return entry.row
    view = view_of(entry)
    module = sys.modules[view.__module__]
    names = dict(vars(module))
    for node in ast.parse(inspect.getsource(module)).body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            exec(compile(ast.Module(node.body, []), module.__name__, "exec"), names)
    hint = typing.get_type_hints(view, names)["return"]
    return typing.get_args(hint)[-1] if isinstance(view, Sliced) else hint

"""Documents as clients have them: values of JSON."""

import json
from collections.abc import Generator
from typing import Any

from fared.management.api.encode import encode
from fared.management.documents.context import ViewContext
from fared.management.documents.dispatch import begin_view
from fared.management.documents.registry import by_command
from fared.management.documents.sliced import finished


def run_view(context: ViewContext, command: str, args: dict[str, Any]) -> Any:
    """Answer a command of the registry at once."""
    document = by_command(command)
    assert document is not None
    made = begin_view(context, document, args)
    return json.loads(encode(finished(made) if isinstance(made, Generator) else made))

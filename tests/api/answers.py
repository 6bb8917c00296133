"""Documents as clients have them: values of JSON."""

import json
from collections.abc import Generator
from typing import Any

from fared.management.api.encode import encode
from fared.management.documents.context import ViewContext
from fared.management.documents.dispatch import begin_view
from fared.management.documents.sliced import finished


def run_view(context: ViewContext, command: str, args: dict[str, Any]) -> Any:
    """Answer a command of the registry at once."""
    made = begin_view(context, command, args)
    return json.loads(encode(finished(made) if isinstance(made, Generator) else made))

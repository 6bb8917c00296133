"""The exception by which a request is refused."""

from __future__ import annotations


class CommandError(Exception):
    """A request that is refused; ``code`` is one of ``schema.ERROR_CODES``."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message

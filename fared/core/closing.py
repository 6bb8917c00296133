"""What is closed at the end of ``with``, whatever happened there."""

from __future__ import annotations

from typing import Self


class Closing:
    """The base: ``close`` ends what a subclass has begun."""

    def close(self) -> None:
        """End it."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

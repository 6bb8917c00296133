"""The files of the page: HTML, style, scripts and libraries, as they are in the package."""

from __future__ import annotations

from pathlib import Path

from fared.management.documents.errors import CommandError

ROOT = Path(__file__).with_name("static")
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}


def page_file(path: str) -> tuple[bytes, str]:
    """Return a file and its content type; ``path`` is that of the request.

    Raises CommandError for any other path than those of the files.
    """
    for file in ROOT.rglob("*"):
        name = "/" if file.name == "index.html" else f"/page/{file.relative_to(ROOT).as_posix()}"
        if name == path and file.suffix in _TYPES:
            return file.read_bytes(), _TYPES[file.suffix]
    raise CommandError("not-found", f"no page {path}; try / or /api/v1/")

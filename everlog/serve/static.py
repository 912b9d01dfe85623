"""The files of the console, with the style and signs of `everlog explain --html`."""

from __future__ import annotations

import json
from importlib import resources

from everlog.explain.drawing import SHAPES, sign
from everlog.explain.style import STYLE

_KINDS = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


def static_files() -> dict[str, tuple[bytes, str]]:
    """The content and the media type of each path."""
    signs = "export const SIGNS = " + json.dumps({name: str(sign(name)) for name in SHAPES}) + ";\n"
    files = {
        "/console/explain.css": (STYLE.encode(), "text/css"),
        "/console/signs.js": (signs.encode(), "text/javascript"),
    }
    for entry in resources.files("everlog.serve").joinpath("console").iterdir():
        kind = _KINDS.get(entry.name[entry.name.rfind(".") :])
        if kind is not None:
            path = "/" if entry.name == "index.html" else f"/console/{entry.name}"
            files[path] = (entry.read_bytes(), kind)
    return files

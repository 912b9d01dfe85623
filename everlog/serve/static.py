"""The files of the console as they are in the package, with the style of `everlog explain --html`.

Reads: everlog.explain_style.  Read by: everlog.serve.app.
"""

from __future__ import annotations

from importlib import resources

from everlog.explain_style import STYLE

_KINDS = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


def static_files() -> dict[str, tuple[bytes, str]]:
    """Paths, with what is there and of what kind it is."""
    files = {"/console/explain.css": (STYLE.encode(), "text/css")}
    for entry in resources.files("everlog.serve").joinpath("console").iterdir():
        kind = _KINDS.get(entry.name[entry.name.rfind(".") :])
        if kind is not None:
            path = "/" if entry.name == "index.html" else f"/console/{entry.name}"
            files[path] = (entry.read_bytes(), kind)
    return files

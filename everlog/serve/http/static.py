"""The files of the workbench, with the style and signs of `everlog explain --html`."""

from __future__ import annotations

import json
from importlib import resources

from everlog.core.program import Kind
from everlog.dsl.keywords import DIRECTIVES, KEYWORDS
from everlog.explain.drawing import SHAPES, sign
from everlog.explain.style import STYLE

_KINDS = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"} | {
    ".txt": "text/plain; charset=utf-8"
}
_NAMES = {"BUILTIN": "functor", "STRINGTEST": "test", "AGGREGATE": "aggregate", "QUALIFIER": "qualifier"}


def static_files() -> dict[str, tuple[bytes, str]]:
    """The content and the media type of each path."""
    signs = "export const SIGNS = " + json.dumps({name: str(sign(name)) for name in SHAPES}) + ";\n"
    files = {
        "/console/explain.css": (STYLE.encode(), "text/css"),
        "/console/signs.js": (signs.encode(), "text/javascript"),
        "/console/words.js": (f"export const WORDS = {json.dumps(_words())};\n".encode(), "text/javascript"),
    }
    for entry in resources.files("everlog.serve").joinpath("console").iterdir():
        kind = _KINDS.get(entry.name[entry.name.rfind(".") :])
        if kind is not None:
            path = "/" if entry.name == "index.html" else f"/console/{entry.name}"
            files[path] = (entry.read_bytes(), kind)
    return files


def _words() -> dict[str, list[str]]:
    """The words of the language by kind, for colours and completion."""
    kinds: dict[str, list[str]] = {"directive": list(DIRECTIVES), "type": [kind.value for kind in Kind]}
    for word, terminal in KEYWORDS.items():
        kinds.setdefault(_NAMES.get(terminal, "word"), []).append(word)
    return kinds

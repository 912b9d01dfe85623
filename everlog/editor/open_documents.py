"""The texts that an editor has open, and the program that each is a part of.

A file that another file includes is read as a part of that program, not alone: else each name that
it takes from there would be an error.  The program of a file is the first that includes it, an open
one if there is one, and the file itself if none does.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from attrs import define, field, frozen
from pygls.uris import from_fs_path, to_fs_path

from everlog.dsl.preprocess import preprocess_text
from everlog.editor.analysis import Analysis, Settings, analyse, lines_from_disk
from everlog.editor.text_lines import normal

MOST_FILES, MOST_FOLDERS = 500, 1_000  # of a workspace that are searched for includes
_OTHERS = {"node_modules", "__pycache__", "venv", "build", "dist"}  # folders that are not searched
MOST_BYTES = 4 << 20  # of such a file


@frozen
class Document:
    """An open text.  `file` is its path, or its URI if it has none."""

    uri: str
    file: str
    raw: str
    version: int = 0
    text: str = field(init=False)
    lines: list[str] = field(init=False)

    @text.default
    def _text(self) -> str:
        return normal(self.raw)

    @lines.default
    def _lines(self) -> list[str]:
        return self.text.split("\n")


@define(eq=False)
class Documents:
    """All open documents, and the analyses of their programs as long as they hold."""

    settings: Settings = field(factory=Settings)
    folders: list[Path] = field(factory=list)  # of the workspace
    opened: dict[str, Document] = field(factory=dict)  # by URI
    _analyses: dict[str, Analysis] = field(factory=dict)  # by the file of the program
    _last: dict[str, Analysis] = field(factory=dict)  # the last one, even if a text has changed
    _roots: dict[str, str] = field(factory=dict)  # file → the file of its program

    # ── texts ────────────────────────────────────────────────────────────────────────────────

    def put(self, uri: str, raw: str, version: int = 0) -> Document:
        """Open a document, or change its text."""
        known = uri in self.opened
        document = self.opened[uri] = Document(uri, file_of(uri), raw, version)
        if not known:
            self._roots.clear()
        self._forget(document.file)
        return document

    def close(self, uri: str) -> None:
        document = self.opened.pop(uri, None)
        if document is not None:
            self._roots.clear()
            self._forget(document.file)
            self._last.pop(document.file, None)

    def forget_files(self) -> None:
        """Read everything again: files have changed on disk."""
        self._analyses.clear()
        self._roots.clear()

    def _forget(self, file: str) -> None:
        for root, analysis in list(self._analyses.items()):
            if file in {os.path.normpath(each) for each in (root, *analysis.files)}:
                del self._analyses[root]

    def of_file(self, file: str) -> Document | None:
        file = os.path.normpath(file)
        return next((each for each in self.opened.values() if each.file == file), None)

    def lines_of(self, file: str) -> list[str]:
        document = self.of_file(file)
        return document.lines if document is not None else lines_from_disk(file)

    def uri_of(self, file: str) -> str:
        document = self.of_file(file)
        return document.uri if document is not None else str(from_fs_path(os.path.abspath(file)))

    # ── programs ─────────────────────────────────────────────────────────────────────────────

    def analysis(self, uri: str) -> Analysis:
        """The analysis of the program that a document is a part of."""
        root = self._root(self.opened[uri].file)
        found = self._analyses.get(root)
        if found is None:
            cached: dict[str, list[str]] = {}

            def lines(file: str) -> list[str]:
                if file not in cached:
                    cached[file] = self.lines_of(file)
                return cached[file]

            document = self.of_file(root)
            text = document.text if document is not None else "\n".join(lines_from_disk(root))
            found = analyse(text, root, lines, self.settings, self._texts())
            self._analyses[root] = self._last[root] = found
        return found

    def last_analysis(self, uri: str) -> Analysis:
        """The last analysis, which may be older than the text; for what must be fast."""
        root = self._root(self.opened[uri].file)
        return self._last.get(root) or self.analysis(uri)

    def _texts(self) -> dict[Path, str]:
        return {Path(each.file).resolve(): each.text for each in self.opened.values() if is_path(each.file)}

    def _root(self, file: str) -> str:
        if file not in self._roots:
            self._roots[file] = self._search(file) if is_path(file) else file
        return self._roots[file]

    def _search(self, file: str) -> str:
        """The program that includes a file, and is included by no other."""
        seen = {file}
        while True:
            above = next((each for each in self._candidates(file) if each not in seen), None)
            if above is None:
                return file
            seen.add(above)
            file = above

    def _candidates(self, file: str) -> Iterator[str]:
        """The files that include a file, open ones first."""
        name = os.path.basename(file)
        texts: dict[str, str] = {each.file: each.text for each in self.opened.values() if is_path(each.file)}
        for path in self._nearby(file):
            if str(path) not in texts:
                texts[str(path)] = _text_naming(path, name)
        for other, text in texts.items():
            if other != file and name in text and "include" in text and file in self._includes(other, text):
                yield other

    def _nearby(self, file: str) -> list[Path]:
        folders = [folder for folder in self.folders if folder in Path(file).parents] or [Path(file).parent]
        found: list[Path] = []
        visited = 0
        for folder in folders:
            for place, inside, names in os.walk(folder):
                visited += 1
                found += [Path(place, name) for name in sorted(names) if name.endswith(".dl")]
                if len(found) >= MOST_FILES or visited >= MOST_FOLDERS:
                    return found[:MOST_FILES]
                kept = [each for each in inside if each not in _OTHERS and not each.startswith(".")]
                inside[:] = sorted(kept) if folder in self.folders else []
        return found

    def _includes(self, file: str, text: str) -> set[str]:
        settings = self.settings
        source, _ = preprocess_text(text, file, settings.include_dirs, settings.macros, texts=self._texts())
        return {os.path.normpath(each) for each, _ in source.origins}


def _text_naming(path: Path, name: str) -> str:
    """The text of a file that names another one; empty if it does not."""
    try:
        if path.stat().st_size > MOST_BYTES:
            return ""
        data = path.read_bytes()
    except OSError:
        return ""
    return normal(data.decode("utf-8", "surrogateescape")) if os.fsencode(name) in data else ""


def is_path(file: str) -> bool:
    return os.path.isabs(file)


def file_of(uri: str) -> str:
    """The path of a URI; the URI itself if it has none."""
    path = to_fs_path(uri)
    return os.path.normpath(path) if path else uri

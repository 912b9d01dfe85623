"""Macros, conditions and includes: from files to the one `Source` to parse.

Soufflé runs every program through a C preprocessor and has an `.include` of its own, so programs
use both.  A program can also be a hundred thousand lines of facts with one `#define` on top.

The trick is to look only at text that may matter.  One regular expression finds the next `#`, `/*`,
`.include` or macro name; only then the reader tests whether it stands in a string or a comment.
Strings and `//` comments end with their line, so this test reads one line.  All other text is
copied in large pieces.  Removed text leaves empty lines, so line numbers stay right; where they
cannot (includes, `#line`) a mark gives the file and line that follow in the output.

Source: ISO C 6.10; the painting of tokens is D. Prosser's algorithm (X3J11/86-196).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from errno import EINVAL
from pathlib import Path
from typing import TypeAlias

from attrs import define, field, frozen

from everlog.core.program.values import integer
from everlog.dsl.keywords import CONDITIONS
from everlog.dsl.keywords import PREPROCESSOR as DIRECTIVES
from everlog.dsl.macros import (
    BLOCK,
    CALL,
    FLAGS,
    FUSED,
    HASH,
    IDENT,
    IS_IDENT,
    LINE,
    STRING,
    TOKEN,
    Ahead,
    Macros,
    Mistake,
    is_blank,
)
from everlog.dsl.source import Source

DEEPEST = 200  # levels of inclusion
MOST_FILES, MOST_TEXT = 10_000, 1 << 28  # inclusions, and characters included, in one program
MANY = 40  # with more macro names, the pattern does not list them
_SQLITE = b"SQLite format 3\0"
PREDEFINED = {"RAM_DOMAIN_SIZE": "64", "__SOUFFLE__": "1", "__FILE__": '""', "__LINE__": "0"}

_OPENER = re.compile(r'"|//')
_OPAQUE = re.compile(rf"{STRING}|{LINE}", FLAGS)
_LOGICAL = re.compile(rf'(?:[^\n"/\\]++|{STRING}|{LINE}|{BLOCK}|\\.|[/\\])*+', FLAGS)
_DIRECTIVE = re.compile(r"#\s*(\w*)\s*(.*)", FLAGS)
_DEFINES = re.compile(rf"#[ \t]*define[ \t]+({IDENT})", FLAGS)
_INCLUDE = re.compile(r'"([^"\n]+)"\s*|<([^>\n]+)>\s*', FLAGS)
_NATIVE = re.compile(r'[ \t]*"((?:[^"\\\n]|\\.)++)"(?:[ \t]*(?:\n|\Z))?', FLAGS)
_NUMBERED = re.compile(r'(\d{1,9})(?:[ \t]+"((?:[^"\\\n]|\\.)*)"[ \t\d]*)?', FLAGS)
_MARKER = re.compile(rf'#(?:[ \t]*(?=\d+[ \t]+")|line[ \t]+){_NUMBERED.pattern}[ \t]*(?=\n|\Z)', FLAGS)
_SKIPPED = re.compile(r"#|/\*")


@frozen
class Problem:
    """An error in a directive or a macro call.

    `offset` is where its line stands in `Source.text`.
    """

    file: str
    line: int
    message: str
    hint: str = ""
    code: str = "DL102"
    offset: int = 0


def load(
    path: str | Path,
    include_dirs: Sequence[Path] = (),
    macros: Mapping[str, str] | None = None,
    preprocess: bool = True,
) -> tuple[Source, list[Problem]]:
    """Read a program with all its includes.

    Raises OSError if `path` itself cannot be read.
    """
    return preprocess_text(_read(path), str(path), include_dirs, macros, preprocess)


def preprocess_text(
    text: str,
    file: str = "<text>",
    include_dirs: Sequence[Path] = (),
    macros: Mapping[str, str] | None = None,
    preprocess: bool = True,
    files: bool = True,
    texts: Mapping[Path, str] | None = None,
) -> tuple[Source, list[Problem]]:
    r"""Resolve macros, conditions and includes.

    With `preprocess` off, only `.include` and `.once` are resolved.  With `files` off an include is
    an error: the author of the text may not read files here.  `texts` are read instead of the files
    with these (resolved) paths: an editor has changed them and not written them yet.

    >>> preprocess_text("#define N 3\nsize(N).")[0].text
    '\nsize(3).'

    Cost: linear in text, includes and expansions; text without macros is only searched.
    """
    text = _normal(text)
    table = PREDEFINED | dict(macros or {}) if preprocess else {}
    names = [name.partition("(")[0] for name in table]
    triggers = ["#", ".include", ".once", *(["\\\n", *names] if preprocess else [])]
    if not any(trigger in text for trigger in triggers):
        return Source(text, file), []
    reader = _Reader(file, tuple(Path(d) for d in include_dirs), preprocess, files)
    reader.texts.update({path: _normal(text) for path, text in (texts or {}).items()})
    for name, value in table.items():
        try:
            reader.define(f"{name} {value}")
        except Mistake as mistake:
            reader.report(mistake, (file, 1, 0))
    return reader.run(text), reader.problems


def _read(path: str | Path) -> str:
    data = Path(path).read_bytes()
    if data.startswith(_SQLITE):  # else each of its bytes would be an error
        raise OSError(EINVAL, "it is a database, not a program; open it with --db or .open", str(path))
    return _normal(data.decode("utf-8", "surrogateescape"))


def _normal(text: str) -> str:
    return text.removeprefix("\ufeff").replace("\r\n", "\n")


# ── files ────────────────────────────────────────────────────────────────────────────────────

_Place: TypeAlias = tuple[str, int, int]  # file, line, offset in the output


@define
class _Group:
    """An open `#if`: whether its branch is read, one was read, and `#else` was seen."""

    name: str
    place: _Place
    taken: bool
    active: bool = False
    closed: bool = False


@define(eq=False)
class _File:
    """A file being read.

    Invariants: I1  copied ≤ at: the text before `copied` is in the output;
                I2  `clean` is in no string or comment, and no string or comment that begins
                    before it on its line ends after it.
    """

    text: str
    path: Path
    real: Path  # its resolved path
    shown: str  # its name; `#line` may change it
    state: int  # state of the reader on entry
    at: int = 0
    copied: int = 0
    clean: int = 0
    start: int = 0  # of the line of `seen`
    seen: int = 0
    groups: list[_Group] = field(factory=list)
    number: int = 1  # of the line of `counted`
    counted: int = 0

    @property
    def active(self) -> bool:
        return not self.groups or self.groups[-1].active

    def line(self, at: int) -> int:
        """The line number of `at`; calls must not go back."""
        self.number += self.text.count("\n", self.counted, at)
        self.counted = at
        return self.number

    def move(self, to: int) -> None:
        self.at = self.clean = to

    def cover(self, at: int) -> re.Match[str] | None:
        """The string or line comment that contains `at`."""
        here = max(self.clean, self.start)
        while opener := _OPENER.search(self.text, here, at + 1):
            opaque = _OPAQUE.match(self.text, opener.start())
            if opaque is None or opaque.end() > at:
                return opaque
            here = opaque.end()
        self.clean = at
        return None


class _Reader:
    """Reads nested files and writes the output, in one pass and without recursion."""

    def __init__(self, file: str, dirs: tuple[Path, ...], preprocess: bool, may_read: bool) -> None:
        self.file, self.dirs, self.preprocess, self.may_read = file, dirs, preprocess, may_read
        self.macros = Macros()
        self.problems: list[Problem] = []
        self.stack: list[_File] = []
        self.once: set[Path] = set()
        self.texts: dict[Path, str] = {}
        self.files, self.room = 0, MOST_TEXT
        self.names: set[str] = set()  # all that are or may become macros; never shrinks
        self.events: re.Pattern[str] | None = None
        self.out: list[str] = []
        self.length, self.row = 0, 0
        self.marks: list[tuple[int, str, int]] = []  # from this row on: file, line

    def run(self, text: str) -> Source:
        self._enter(Path(self.file), Path(self.file).resolve(), self.file, text)
        while self.stack:
            if not self._step(self.stack[-1]):
                self._leave(self.stack[-1])
        text, self.out = "".join(self.out), []
        if all(file == self.file and line == row + 1 for row, file, line in self.marks):
            return Source(text, self.file)
        stops = [row for row, _, _ in self.marks[1:]] + [self.row + 1]
        spans = zip(self.marks, stops, strict=True)
        return Source(text, self.file, [(f, n + i) for (row, f, n), stop in spans for i in range(stop - row)])

    def report(self, mistake: Mistake, place: _Place) -> None:
        file, line, offset = place
        self.problems.append(Problem(file, line, mistake.message, mistake.hint, mistake.code, offset))

    # ── output ──

    def _emit(self, text: str) -> None:
        if text:
            self.out.append(text)
            self.length += len(text)
            self.row += text.count("\n")

    def _flush(self, f: _File, to: int) -> _Place:
        """Copy the text before `to`, or only its line ends where it is skipped.

        Returns the place that was reached.
        """
        self._emit(f.text[f.copied : to] if f.active else "\n" * f.text.count("\n", f.copied, to))
        f.copied = to
        return f.shown, f.line(to), self.length

    def _replace(self, f: _File, to: int, text: str) -> None:
        """Write `text` for the text before `to`, with the same number of lines."""
        after = "\n" * (f.text.count("\n", f.copied, to) - text.count("\n"))
        self._emit(text + (after or " " * bool(FUSED.match(text[-1:] + f.text[to : to + 1]))))
        f.copied = to
        f.move(to)

    def _mark(self, f: _File) -> None:
        self.marks.append((self.row, f.shown, f.line(f.copied)))

    # ── one thing at a time ──

    def _pattern(self, active: bool) -> re.Pattern[str]:
        """The pattern of everything that may matter next.

        Each branch begins with a fixed character: that makes the search fast.
        """
        if not active:
            return _SKIPPED
        if self.events is None:
            branches = ["#", r"/\*", r"\.(?:include(?<![\w?].{8})|once(?<![\w?].{5}))(?![\w?])"]
            if self.preprocess:
                branches.append(r"\\\n")
            if len(self.names) > MANY:
                branches.append(rf"(?<![\w?]){IDENT}")
            else:
                words = map(re.escape, sorted(self.names))
                branches += [rf"{word}(?![\w?])(?<![\w?]{word})" for word in words]
            self.events = re.compile("|".join(branches), FLAGS)
        return self.events

    def define(self, text: str) -> None:
        self._learn([self.macros.define(text)])

    def _learn(self, names: Iterable[str]) -> None:
        fresh = [name for name in names if name not in self.names]
        if fresh and len(self.names) <= MANY:
            self.events = None
        self.names.update(fresh)

    def _step(self, f: _File) -> bool:
        """Handle the next match; False if there is none."""
        found = self._pattern(f.active).search(f.text, f.at)
        if found is None:
            return False
        at, word = found.start(), found[0]
        f.start = f.text.rfind("\n", f.seen, at) + 1 or f.start
        f.seen = at
        if cover := f.cover(at):
            f.move(cover.end())
            if f.active and self.preprocess and "\\\n" in cover[0]:
                self._flush(f, cover.start())
                self._replace(f, cover.end(), cover[0].replace("\\\n", ""))
        elif word == "/*":
            closing = f.text.find("*/", at + 2)
            f.move(closing + 2 if closing >= 0 else len(f.text))
        elif word == "#":
            self._hash(f, at)
        elif word == ".once":
            self._flush(f, at)
            self._replace(f, found.end(), " " * len(word))
            self.once.add(f.real)
        elif word == ".include":
            self._native(f, at, found.end())
        elif word == "\\\n":
            self._flush(f, at)
            self._replace(f, at + 1, " ")
        elif self._is_macro(f, word, found.end()):
            self._expand(f, at, word)
        else:
            f.move(found.end())
        return True

    def _is_macro(self, f: _File, word: str, end: int) -> bool:
        macro = self.macros.table.get(word)
        if macro is None or self.macros.room < 0:
            return False
        return macro.params is None or CALL.match(f.text, end) is not None

    def _expand(self, f: _File, at: int, name: str) -> None:
        place = self._flush(f, at)
        self.macros.file, self.macros.line, _ = place
        ahead = Ahead(f.text, at + len(name))
        try:
            text = self.macros.expanded(name, ahead)
        except Mistake as mistake:
            self.report(mistake, place)
            text = f.text[at : ahead.at]
        self._replace(f, ahead.at, text)

    # ── directives ──

    def _hash(self, f: _File, at: int) -> None:
        begin = HASH.match(f.text, f.start)
        if begin is None or begin.end() != at + 1:
            return f.move(at + 1)
        if not self.preprocess and not _MARKER.match(f.text, at):
            end = f.text.find("\n", at)
            return f.move(end if end >= 0 else len(f.text))
        line = _LOGICAL.match(f.text, at)
        end = line.end() if line else at
        place = self._flush(f, f.start)
        self._replace(f, min(end + 1, len(f.text)), "")
        try:
            self._directive(f, f.text[at:end], place)
        except Mistake as mistake:
            self.report(mistake, place)
        return None

    def _directive(self, f: _File, raw: str, place: _Place) -> None:
        words = TOKEN.findall(raw.replace("\\\n", ""))
        if words[-1][:2] == "/*" and not words[-1].endswith("*/", 2):
            raise Mistake("DL102", "a comment that begins in a directive is not closed")
        found = _DIRECTIVE.fullmatch("".join(" " if is_blank(word) else word for word in words).strip())
        name, rest = found.groups() if found else ("", "")
        self.macros.file, self.macros.line, _ = place
        if name in CONDITIONS:
            self._condition(f, name, rest, place)
        elif f.active:
            self._obey(f, name, rest)

    def _obey(self, f: _File, name: str, rest: str) -> None:
        match name:
            case "define":
                self.define(rest)
            case "undef":
                if not (found := IS_IDENT.match(rest)):
                    raise Mistake("DL102", "`#undef` needs the name of a macro")
                self.macros.undefine(found[0])
            case "include":
                found = _INCLUDE.fullmatch(rest) or _INCLUDE.fullmatch(self.macros.expanded(rest))
                if not found:
                    raise Mistake("DL102", "`#include` needs a file name", 'write #include "file.dl"')
                self._include(f, found[1] or found[2])
            case "error":
                raise Mistake("DL104", f"#error {rest}".strip())
            case "line":
                self._renumber(f, rest)
            case "pragma":
                if rest.split()[:1] == ["once"]:
                    self.once.add(f.real)
            case "warning":
                pass
            case _ if name.isdigit():
                self._renumber(f, f"{name} {rest}".strip())
            case _ if name or rest:
                close = get_close_matches(name, DIRECTIVES, 1)
                hint = f"did you mean `#{close[0]}`?" if close else ""
                raise Mistake("DL102", f"unknown directive `#{name or rest}`", hint)

    def _condition(self, f: _File, name: str, rest: str, place: _Place) -> None:
        if name.startswith("if"):
            f.groups.append(_Group(name, place, taken=not f.active))
        elif not f.groups:
            raise Mistake("DL103", f"`#{name}` without `#if`")
        group = f.groups[-1]
        if name == "endif":
            f.groups.pop()
        elif group.closed:
            raise Mistake("DL103", f"`#{name}` after `#else`")
        else:
            group.active, group.closed = False, name == "else"
            if not group.taken:
                group.active = group.taken = self._holds(name, rest)

    def _holds(self, name: str, rest: str) -> bool:
        if name == "else":
            return True
        if name in ("if", "elif"):
            return self.macros.condition(rest)
        if not (found := IS_IDENT.match(rest)):
            raise Mistake("DL102", f"`#{name}` needs the name of a macro")
        return (found[0] in self.macros.table) == (name == "ifdef")

    def _renumber(self, f: _File, rest: str) -> None:
        found = _NUMBERED.fullmatch(rest) or _NUMBERED.fullmatch(self.macros.expanded(rest))
        if not found:
            raise Mistake("DL102", "`#line` needs a line number", 'write #line 12 "file.dl"')
        f.shown = re.sub(r"\\(.)", r"\1", found[2]) if found[2] else f.shown
        f.number, f.counted = integer(found[1]), f.copied
        self._mark(f)

    # ── includes ──

    def _native(self, f: _File, at: int, end: int) -> None:
        """Handle `.include "file"`: the rest of its line goes on a line of its own."""
        place = self._flush(f, at)
        named = _NATIVE.match(f.text, end)
        self._replace(f, named.end() if named else end, "\n" if named else " ")
        self._mark(f)
        try:
            if named is None:
                raise Mistake("DL102", "`.include` needs a file name", 'write .include "file.dl"')
            self._include(f, re.sub(r"\\(.)", r"\1", named[1]))
        except Mistake as mistake:
            self.report(mistake, place)

    def _include(self, f: _File, name: str) -> None:
        if not self.may_read:
            raise Mistake(
                "DL101", f"include file `{name}` is not read: this text may not name files", "write its text here"
            )
        dirs = list(dict.fromkeys([f.path.parent, *self.dirs]))
        path = next((d / name for d in dirs if os.path.isfile(d / name)), None)
        if path is None:
            hint = "searched in " + ", ".join(f"`{d}`" for d in dirs)
            raise Mistake("DL101", f"cannot find include file `{name}`", hint)
        real = path.resolve()
        if real in self.once or self.room < 0:
            return
        try:
            text = self.texts[real] if real in self.texts else _read(path)
            self.texts[real] = text
        except OSError as error:
            raise Mistake("DL101", f"cannot read include file `{name}`", str(error)) from None
        self._check_depth(real, name, len(text))
        self._enter(path, real, str(path), text)

    def _check_depth(self, real: Path, name: str, size: int) -> None:
        """Report a file that is entered again in the same state: it would never end."""
        if any(g.real == real and g.state == self._state() for g in self.stack):
            raise Mistake("DL105", f"include file `{name}` includes itself", "begin the file with `.once`")
        self.files += 1
        self.room -= size
        if len(self.stack) > DEEPEST or self.files > MOST_FILES or self.room < 0:
            self.room = -1
            raise Mistake("DL105", f"include file `{name}` is one too many: the includes seem to have no end")

    def _state(self) -> int:
        return self.macros.version + len(self.once)

    def _enter(self, path: Path, real: Path, shown: str, text: str) -> None:
        self.macros.room += 10 * len(text)
        if self.preprocess:
            self._learn(_DEFINES.findall(text))
        self.stack.append(_File(text, path, real, shown, self._state()))
        self._mark(self.stack[-1])

    def _leave(self, f: _File) -> None:
        self._flush(f, len(f.text))
        for group in f.groups:
            self.report(Mistake("DL103", f"`#{group.name}` without `#endif`"), group.place)
        self.stack.pop()
        if self.stack:
            self._emit("\n" if f.text[-1:] not in ("", "\n") else "")
            self._mark(self.stack[-1])

r"""The kind of an input, and whether it is complete.

    .tables                         a command: a word with a dot that is not a directive
    .decl edge(x:number)            statements of the language
    +edge(1, 2). -edge(2, 3).       inserts and deletes, in one step
    -path#2.                        drops a rule
    ?- path(1, x), x > 3.           a query; `path(1, x), x > 3?` is the same
    begin    commit    rollback     a transaction; with `;` also DDlog's other words
    select x from e                 SQL, which is answered with the Datalog for it
    help    why path(1, 3)          a command without its dot, which is answered with the dot

`.output` and `.plan` have two meanings: `.output path` is a directive if `path` is a relation, and
otherwise a command with a file name; `.plan` on a line of its own is a command.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import lru_cache
from typing import TYPE_CHECKING

from attrs import frozen

from everlog.dsl.keywords import DIRECTIVES, PREPROCESSOR
from everlog.repl import ddlog
from everlog.repl.table import is_command

if TYPE_CHECKING:  # loaded when there is something to parse
    from everlog.dsl.prompt_input import Reading
    from everlog.dsl.query_text import ParsedQuery

COMMAND, QUERY, DROP, DDLOG, STATEMENTS, NOTHING = "command", "query", "drop", "ddlog", "statements", "nothing"
SQL, DOTLESS = "sql", "dotless"

OF_THE_LANGUAGE = set(DIRECTIVES) - {".plan", ".strategy"} | {".include"}
_OF_RULES = {*OF_THE_LANGUAGE, *DIRECTIVES}  # a line of a statement may begin with one of these
_WORD = re.compile(r"\.[A-Za-z][\w-]*|\.(?=\s|$)")
_DOTLESS = re.compile(r"([a-z][\w-]*)(?:[ \t]+(?![(:=,.<>!?-])[^\n]*)?")
_DROPS = re.compile(r"(?:\s*-\s*[?\w]+(?:\.[?\w]+)*#[0-9]+\s*\.?)+\s*")
_RULE_NAME = re.compile(r"[?\w]+(?:\.[?\w]+)*#[0-9]+")
_RELATIONS = re.compile(r"\.output\s+([?\w]+(?:\.[?\w]+)*)\s*(?:\(.*|,.*|)", re.DOTALL)
_MACRO = re.compile(rf"#\s*(?:{'|'.join(PREPROCESSOR)})\b")
_IDLE = re.compile(rf"(?:\s+|//[^\n]*|(?!{_MACRO.pattern})#[^\n]*|/\*(?:[^*]|\*(?!/))*\*/)+")
_COMMENT = re.compile(  # a comment that is never closed extends to the end, and stays
    r'("(?:\\.|[^"\\])*+(?:"|\Z)|"(?:\\.|[^"\\])*+\\\Z)|//[^\n]*|/\*(?:[^*]|\*(?!/))*+\*/|(/\*.*\Z)', re.DOTALL
)


@frozen
class Line:
    """An input with its kind: the name of a command, or the body of a query."""

    kind: str
    text: str
    name: str = ""
    query: ParsedQuery | None = None


def read_line(text: str, relations: Collection[str] = ()) -> Line:
    """Classify an input.

    >>> [read_line(text).kind for text in (".decl p(x:number)", "// hello")]
    ['statements', 'nothing']
    >>> read_line(".count path").name
    '.count'
    >>> read_line(".output path", ["path"]).kind, read_line(".output path.txt", ["path"]).kind
    ('statements', 'command')
    >>> read_line("?- path(1, x), x > 3.").text, read_line("path(1, x)?").text
    ('path(1, x), x > 3', 'path(1, x)')
    """
    body = without_comments_before(text).strip()
    if not body:
        return Line(NOTHING, "")
    if body.startswith("."):
        return _with_dot(body, relations)
    written, body = body, _COMMENT.sub(lambda found: found[1] or found[2] or _blanks(found[0]), body).strip()
    if _looks_like_sql(body):
        return Line(SQL, body)
    if ddlog.is_statement(body):
        return Line(DDLOG, body)
    if _lacks_dot(body):
        return Line(DOTLESS, body)
    if _DROPS.fullmatch(body):
        return Line(DROP, body)
    if body.endswith("?") and not body.startswith("?-"):
        return Line(QUERY, body[:-1].strip())
    if body.startswith("?-") and body.endswith(".") and (query := reading(body).only_query()) is not None:
        return Line(QUERY, query.body, query=query)
    return Line(STATEMENTS, written)


def is_complete(text: str, relations: Collection[str] = ()) -> bool:
    """Whether a text can be run, or is wrong whatever follows it.

    >>> is_complete("path(x, z) :- path(x, y),"), is_complete("path(x, z) :- edge(x, z).")
    (False, True)
    >>> is_complete(".comp C {"), is_complete(".tables"), is_complete("insert edge(1, 2),")
    (False, True, False)
    >>> is_complete("edge(1, 2)"), is_complete("edge(1, 2)\\n.tables")
    (False, True)
    """
    if _opens_comment(text):
        return False
    if "\n" in text and before_command(*text.rsplit("\n", 1)):
        return True
    line = read_line(text, relations)
    match line.kind:
        case "statements":
            if has_macros(line.text):
                return _macros_complete(line.text)
            return not reading(line.text).more
        case "ddlog":
            return ddlog.is_complete(line.text)
        case _:
            return True


def is_script(text: str) -> bool:
    r"""Whether to run the lines of a pasted text one by one, since some are commands.

    >>> is_script("edge(1, 2).\n.tables")
    True
    >>> is_script("path(x, y) :-\n  edge(x, y).\n.decl p(x:number)")
    False
    """
    parts = text.strip().split("\n")
    return len(parts) > 1 and any(read_line(part).kind in (COMMAND, QUERY, DROP, DDLOG) for part in parts)


def before_command(text: str, line: str) -> bool:
    r"""Whether a line after an incomplete text is a command, which does not belong to the text.

    >>> before_command("edge(1, 2)", ".tables"), before_command("/*", ".tables")
    (True, False)
    """
    found = _WORD.match(line.lstrip())
    if found is None or found[0] in _OF_RULES or not is_command(found[0]):
        return False
    written = read_line(text)
    unclosed = written.kind == STATEMENTS and reading(written.text).unclosed
    return not unclosed and not _opens_comment(text) and not has_macros(text)


def rules_named(text: str) -> list[str]:
    """The names of the rules that an input drops.

    >>> rules_named("-path#2. -edge#1.")
    ['path#2', 'edge#1']
    """
    return _RULE_NAME.findall(text)


def without_comments_before(text: str) -> str:
    """The text with blanks instead of its leading comments; places stay the same."""
    found = _IDLE.match(text)
    return text if found is None else _blanks(found[0]) + text[found.end() :]


def _blanks(text: str) -> str:
    return re.sub(r"[^\n]", " ", text)


def _with_dot(body: str, relations: Collection[str]) -> Line:
    found = _WORD.match(body)
    word = found[0] if found else ""
    if word in OF_THE_LANGUAGE and (word != ".output" or _is_directive(body, relations)):
        return Line(STATEMENTS, body)
    return Line(COMMAND, body[len(word) :].strip(), word or body.split()[0])


def _is_directive(body: str, relations: Collection[str]) -> bool:
    """Whether the argument of `.output` is a relation rather than a file."""
    found = _RELATIONS.fullmatch(body)
    return found is not None and (found[1] in relations or "(" in body or "," in body)


def _lacks_dot(body: str) -> bool:
    """Whether a line is a command without its dot; no statement has a name and then a blank.

    >>> _lacks_dot("help"), _lacks_dot("why path(1, 3)"), _lacks_dot("why(x) :- path(x, _).")
    (True, True, False)
    """
    found = _DOTLESS.fullmatch(body)
    return found is not None and is_command(f".{found[1]}")


def _looks_like_sql(body: str) -> bool:
    if not body[:1].isalpha():
        return False
    from everlog.repl.sql_habit import looks_like_sql

    return looks_like_sql(body)


@lru_cache(maxsize=1)
def reading(text: str) -> Reading:
    """The statements of a text.  The last is remembered: it is asked for once to see whether it is
    complete, and once more to run it.
    """
    from everlog.dsl.prompt_input import read_typed

    return read_typed(text, "<prompt>")


def _opens_comment(text: str) -> bool:
    rest = without_comments_before(text).lstrip()
    return rest.startswith("/*")


def has_macros(text: str) -> bool:
    """Whether a text has preprocessor lines."""
    return any(_MACRO.match(line.lstrip()) for line in text.splitlines())


def _macros_complete(text: str) -> bool:
    """Whether no `#if` waits for its `#endif`, and no backslash for another line."""
    words = re.findall(r"^\s*#\s*(if|ifdef|ifndef|endif)\b", text, re.MULTILINE)
    opened = sum(1 if word != "endif" else -1 for word in words)
    return opened <= 0 and not text.endswith("\\")

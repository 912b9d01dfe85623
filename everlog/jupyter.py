"""`%load_ext everlog`: Datalog in the cells of a notebook.

    %%datalog              runs the statements of a cell, in order
    .decl edge(x:number, y:number)
    edge(1, 2).            statements of a program are added to it
    +edge(2, 3).           consecutive updates are one step
    ?- edge(x, y), y > 2.  queries are answered

    %datalog edge(1, x)    one line of any kind
    .why path(1, 3)        commands: .why, .why-not, .what-if, .how, .explain, .graph, .live

The database is the variable `db`, or the one that is named: `%%datalog other`.  It is created if it
does not exist.  The results of a cell are displayed, the last one as the cell's value.

A parameter `$name` of a query takes the value of the notebook's variable `name`.  IPython usually
pastes such values into the text of a magic; this magic turns that off.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from everlog.api.database import Database
from everlog.api.lifecycle import NestedWrite
from everlog.api.live import RuleError
from everlog.api.parameters import given
from everlog.core.engine.explain import NotInProgram
from everlog.core.program.fact_rows import FactError
from everlog.core.program.values import EvaluationError
from everlog.core.proofs import NotDerived
from everlog.dsl.diagnostics import DatalogError
from everlog.dsl.query_text import parse_query
from everlog.extras import MissingPackage
from everlog.functors import FunctorError

PROGRAM, STEP, QUERY, COMMAND = "program", "step", "query", "command"
_UPDATE = re.compile(r"\s*[+-]\s*[?A-Za-z_][\w?.]*\s*\(.*\)\s*\.?\s*")
_COMMAND = re.compile(r"\.([a-z]+(?:[-_][a-z]+)?)\b(?:\s+(.*))?", re.DOTALL)
_ASIDE = re.compile(r'"(?:[^"\\]|\\.)*"|//.*')  # strings and comments


def pieces(cell: str) -> Iterator[tuple[str, str]]:
    """Split a cell into parts of one kind: program text, a step of updates, a query.

    >>> text = ".decl e(x:number)\\ne(1).\\n+e(2).\\n-e(1).\\n?- e(x),\\n   x > 1.\\ne(x)?"
    >>> for piece in pieces(text):
    ...     print(piece)
    ('program', '.decl e(x:number)\\ne(1).')
    ('step', '+e(2).\\n-e(1).')
    ('query', '?- e(x),\\n   x > 1.')
    ('query', 'e(x)?')
    """
    before, together = "", list[str]()
    for kind, text in _statements(cell):
        if together and (kind != before or kind in (QUERY, COMMAND)):
            yield before, "\n".join(together)
            together = []
        before = kind
        together.append(text)
    if together:
        yield before, "\n".join(together)


def _statements(cell: str) -> Iterator[tuple[str, str]]:
    """The statements of a cell; several that end on one line count as one."""
    lines = list[str]()
    for line in cell.splitlines():
        lines.append(line)
        text = "\n".join(_ASIDE.sub("", line) for line in lines).strip()
        ended = text.endswith((".", "?")) or bool(_UPDATE.fullmatch(text))
        if text.startswith((".", "#")):  # commands, declarations and directives have no final dot
            ended = text.count("(") <= text.count(")")
        if ended or text.endswith("}"):
            yield _kind(text), "\n".join(lines)
            lines = []
    if "".join(lines).strip():
        yield _kind("\n".join(_ASIDE.sub("", line) for line in lines).strip()), "\n".join(lines)


def _kind(text: str) -> str:
    if command_in(text) is not None:
        return COMMAND
    if text.startswith("?-") or text.endswith("?"):
        return QUERY
    return STEP if _UPDATE.fullmatch(text) else PROGRAM


def command_in(text: str) -> tuple[str, str] | None:
    """The name and the argument of a command, if a line is one.

    >>> command_in(".why path(1, 3)."), command_in(".graph"), command_in(".decl n(x:number)")
    (('why', 'path(1, 3)'), ('graph', ''), None)
    """
    found = _COMMAND.fullmatch(text.strip())
    if found is None or found[1].replace("_", "-") not in COMMANDS:
        return None
    return found[1].replace("_", "-"), (found[2] or "").strip().removesuffix(".")


COMMANDS: dict[str, Callable[[Database, str], object]] = {
    "why": lambda db, fact: db.why(fact),
    "why-not": lambda db, fact: db.why_not(fact),
    "what-if": lambda db, step: db.what_if(step),
    "how": lambda db, goal: db.how(goal),
    "explain": lambda db, name: Told(db.explain(name or None)),
    "graph": lambda db, _: db.graph(),
    "live": lambda db, name: db[name].live(),
}


class Told(str):
    """A text that is shown as it is, with its lines."""

    def __repr__(self) -> str:
        return str(self)


class Magics:
    """The magics `%datalog` and `%%datalog` of one shell."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell

    def cell(self, line: str, cell: str | None = None) -> object:
        """Run `%datalog text` or `%%datalog [variable]`."""
        if cell is None:
            text = line.strip()
            if command_in(text) is not None:
                return self._run(self._database("db"), text)
            if not text.endswith((".", "?", ")")) or (text.endswith(")") and not text.startswith((".", "+", "-"))):
                text += "?"  # a line without an end is a query
            return self._run(self._database("db"), text)
        name = line.strip() or "db"
        if not name.isidentifier():
            raise _usage_error(f"`{name}` is not a variable name; write it as in `%%datalog db`")
        return self._run(self._database(name), cell)

    def _database(self, name: str) -> Database:
        known = self._shell.user_ns.get(name)
        if known is None:
            known = Database.from_text("")
            self._shell.push({name: known})
        if not isinstance(known, Database):
            kind = type(known).__name__
            raise _usage_error(f"`{name}` is of type {kind}, not a Database; name another: %%datalog my_db")
        return known

    def _run(self, database: Database, cell: str) -> object:
        """Run a cell up to its first error; the statements before that keep their effect."""
        last: object = None
        for kind, text in pieces(cell):
            if last is not None:
                self._display(last)
                last = None
            try:
                if kind == QUERY:
                    query = parse_query(text)
                    last = database._queries.ask(query, given(self._variables(query.parameters)))
                elif kind == COMMAND:
                    name, argument = command_in(_ASIDE.sub(_kept, text)) or ("", "")
                    last = COMMANDS[name](database, argument)
                elif kind == STEP:
                    last = database.apply(text)
                else:
                    last = database.add_rule(text) or None
            except NotDerived as error:
                raise _usage_error(str(NotDerived(error.fact, ".why-not"))) from None
            except _MISTAKES as error:
                raise _usage_error(str(error)) from None
        return last

    def _variables(self, names: list[str]) -> dict[str, object]:
        """The notebook's variables that a query uses as parameters."""
        known = self._shell.user_ns
        for name in names:
            if name not in known:
                raise _usage_error(f"parameter `${name}` has no value: the notebook has no variable `{name}`")
        return {name: known[name] for name in names}

    def _display(self, thing: object) -> None:
        from IPython.display import display

        display(thing)  # type: ignore[no-untyped-call]


_MISTAKES = (
    DatalogError,
    FactError,
    RuleError,
    FunctorError,
    EvaluationError,
    NestedWrite,
    NotInProgram,
    MissingPackage,
)


def _kept(found: re.Match[str]) -> str:
    """A string as it is; nothing of a comment."""
    return "" if found[0].startswith("//") else found[0]


def _usage_error(text: str) -> Exception:
    """An error that IPython shows without a traceback through everlog's code."""
    from IPython.core.error import UsageError

    return UsageError(text)


def load(shell: Any) -> None:
    """Register `%datalog` and `%%datalog` with an IPython shell."""
    from IPython.core.magic import no_var_expand

    no_var_expand(Magics.cell)
    magics = Magics(shell)
    shell.register_magic_function(magics.cell, magic_kind="line_cell", magic_name="datalog")

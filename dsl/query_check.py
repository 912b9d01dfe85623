"""A query: a rule body without a head, checked as rules are.

The checker makes a head: the variables of the query in the order in which they first occur, or for
a single atom all columns of its relation.  It runs twice.  Without a head it finds the errors of
the query itself.  Then the kinds of the variables are known, the head is declared with them, and
the body is lowered to core rules: several if it has `;`.

A `Scope` holds the declarations of the program, without positions: a diagnostic of a query points
into the query, and its hint names declarations elsewhere.

A parameter, `$name`, is checked as a constant whose kind its place decides, and lowered to a
variable that the first atom of the body binds.  So the rules of a query hold for all values of its
parameters, and a value never becomes part of a text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from attrs import evolve, frozen

from everlog.core import program as core
from everlog.core.program import Column, Kind
from everlog.dsl import ast
from everlog.dsl.clauses import FlatClause, Hoisted, flat_clauses, fresh, restart_fresh_names
from everlog.dsl.declarations import Declarations, Signature
from everlog.dsl.diagnostics import DatalogError, Diagnostic, Label, Report, deep_nesting
from everlog.dsl.inline import expand
from everlog.dsl.kinds import ClauseKinds
from everlog.dsl.lexer import lex
from everlog.dsl.lower import Lowering
from everlog.dsl.name_checks import check_names
from everlog.dsl.parser import parse
from everlog.dsl.scopes import resolve
from everlog.dsl.source import Source
from everlog.dsl.types import Types
from everlog.dsl.walk import MAX_ATOMS, everything_below, rebuilt, too_many_atoms

HEAD = "?-"  # no relation can have this name
FILE = "<query>"
_FIRST_FRESH = 1_000_000  # above all names that the checker made for the program
_NOWHERE = -1
_BEGIN = "query() :-\n"  # before the query, on a line of its own
_MARKS = re.compile(r"\s*(\?-)?")
_PARTS = re.compile(r'(?P<aside>\s+|//[^\n]*|/\*.*?\*/)|"(?:[^"\\\n]|\\.)*"|.', re.DOTALL)


@frozen
class Scope:
    """The names a query may use: relations, types, functors, inlined clauses."""

    declared: Declarations
    inlined: tuple[FlatClause, ...] = ()

    def having(self, relations: Mapping[str, core.Relation], functors: Mapping[str, core.Functor]) -> Scope:
        """The scope with more relations, which no text declares."""
        known = self.declared.relations
        more = {name: _signature(relation) for name, relation in relations.items() if name not in known}
        return evolve(self, declared=evolve(self.declared, relations={**known, **more}, functors=dict(functors)))


def scope_of(declared: Declarations, clauses: Iterable[FlatClause]) -> Scope:
    """The scope of a checked program."""
    relations = {name: _unplaced_signature(signature) for name, signature in declared.relations.items()}
    inlined = [clause for clause in clauses if declared.relations[clause.head.name].inline]
    return Scope(
        Declarations(declared.types, relations, declared.functors),
        tuple(
            FlatClause(_unplaced(c.head), [_unplaced(x) for x in c.body], _unplaced(c.origin), c.false)
            for c in inlined
        ),
    )


EMPTY = Scope(Declarations(Types()))


@frozen
class Query:
    """A correct query: its columns, a rule per alternative, and its parameters' kinds."""

    columns: tuple[Column, ...]
    rules: tuple[core.Rule, ...]
    parameters: Mapping[str, Kind]


def check_query(text: str, scope: Scope, given: Mapping[str, Kind | None] | None = None) -> Query:
    """The checked query of a text, which may begin with `?-` and end with `.` or `?`.

    `given` maps each parameter with a value to the kind of that value; it decides where the place
    of a parameter leaves its kind open.

    >>> edge = core.Relation("edge", (Column("a", Kind.NUMBER), Column("b", Kind.NUMBER)))
    >>> scope = EMPTY.having({"edge": edge}, {})
    >>> query = check_query("?- edge(1, x), edge(x, y), y > 3.", scope)
    >>> print(*(column.name for column in query.columns), *query.rules)
    x y ?-(x, y) :- edge(1, x), edge(x, y), y > 3.
    >>> print(*check_query("edge($from, x)", scope, {"from": None}).rules)
    ?-($from, x) :- $($from), edge($from, x).

    Raises `DatalogError` with every error, at its place in the text.
    """
    source = _source(text)
    report = Report(source)
    with deep_nesting(report):
        try:
            return _Checker(scope, report, given or {}).query(_clause(source, report))
        except DatalogError:
            pass
    raise DatalogError(Report(Source(text, FILE), _at_home(report, len(text))))


def parameters_of(text: str) -> list[str]:
    """The names of the parameters in a text, correct or not.

    >>> parameters_of('p($user, x), x != "$none", q($user, $Branch(1))')
    ['user']
    """
    words = lex(text, Report(Source(text, FILE)))
    return list(dict.fromkeys(word.name for word in words if isinstance(word, ast.Parameter)))


def unfit_value(text: str, name: str, why: str) -> DatalogError:
    """The error of a query whose parameter got a value that it cannot have."""
    report = Report(Source(text, FILE))
    places = [w for w in lex(text, report) if isinstance(w, ast.Parameter) and w.name == name]
    report.items.clear()  # the text is known to be correct
    report.error("DL120", f"parameter `${name}`: {why}", next(iter(places), None))
    return DatalogError(report)


def _source(text: str) -> Source:
    """The text as the body of a rule.

    Everything else is overwritten by blanks, so that positions stay right.
    """
    end = max((part.end() for part in _PARTS.finditer(text) if not part["aside"]), default=0)
    begin = _MARKS.match(text)
    start = begin.end() if begin is not None else 0
    if text[start:end].endswith((".", "?")):
        end -= 1
    return Source(f"{_BEGIN}{' ' * start}{text[start:end]} .", FILE)


def _clause(source: Source, report: Report) -> ast.Clause:
    statements = parse(source, report).statements
    if not report.items and len(statements) > 1:
        report.error("DL010", "a query is one body of a rule, this is more", statements[1])
    report.raise_errors()
    clause = statements[0]
    assert isinstance(clause, ast.Clause)
    return clause


class _Checker:
    def __init__(self, scope: Scope, report: Report, given: Mapping[str, Kind | None]) -> None:
        self.declared, self.inlined, self.report, self.given = scope.declared, scope.inlined, report, given
        self.nodes: dict[str, ast.Parameter] = {}  # the first use of each parameter
        self.parameters: dict[str, Kind] = {}  # by their names among the variables
        self.inlines = any(signature.inline for signature in self.declared.relations.values())

    def query(self, clause: ast.Clause) -> Query:
        restart_fresh_names(_FIRST_FRESH)
        self._compare_parameters(clause)
        whole = self._whole_fact(clause)
        shown: list[ast.Term] = [*_variables(clause)]
        if whole is not None:
            shown = [_unplaced(arg) for arg in whole.args]
        clause.heads = [ast.Atom(HEAD, [])]
        self._declare(())
        alternatives = self._checked(clause)
        if whole is not None:
            signature = self.declared.relations[whole.name]
            names, kinds = [a.name for a in signature.attributes], signature.kinds
        else:
            names = [arg.name for arg in _variables(clause)]
            kinds = [self._kind(arg, alternatives) for arg in shown]
        columns = tuple(Column(name, kind) for name, kind in zip(names, kinds, strict=True))
        self._declare(columns)
        rules = tuple(self._rule(evolve(flat, head=ast.Atom(HEAD, list(shown)))) for flat in alternatives)
        self.report.raise_errors()
        parameters = {name[1:]: kind for name, kind in self.parameters.items()}
        return Query(columns, tuple(rule for rule in rules if rule is not None), parameters)

    def _compare_parameters(self, clause: ast.Clause) -> None:
        """Check that each parameter has a value, and each value a parameter."""
        for node in everything_below(clause.body):
            if isinstance(node, ast.Parameter):
                self.nodes.setdefault(node.name, node)
        for name, node in self.nodes.items():
            if name not in self.given:
                self.report.error("DL120", f"parameter `${name}` has no value", node)
        for name in self.given:
            if name not in self.nodes:
                close = get_close_matches(name, self.nodes, 1)
                hint = f"did you mean `${close[0]}`?" if close else ""
                self.report.error("DL120", f"the query has no parameter `${name}`", clause.body, hint=hint)

    def _whole_fact(self, clause: ast.Clause) -> ast.Atom | None:
        """The atom of a query for facts, with a name for each `_`; else None."""
        atom = clause.body
        if not isinstance(atom, ast.Atom):
            return None
        signature = self.declared.relations.get(atom.name)
        if signature is None or signature.inline:
            return None
        clause.body = evolve(atom, args=[fresh("_", a) if isinstance(a, ast.Underscore) else a for a in atom.args])
        return clause.body

    def _declare(self, columns: tuple[Column, ...]) -> None:
        head = _signature(core.Relation(HEAD, columns))
        self.declared = evolve(self.declared, relations={**self.declared.relations, HEAD: head})

    def _checked(self, clause: ast.Clause) -> list[FlatClause]:
        """The alternatives of the body, without a head and without inlined relations."""
        for node in everything_below(clause.body):
            if isinstance(node, ast.Counter):
                self.report.error("DL044", "`autoinc()` counts what rules derive, and stands in no query", node)
        if too_many_atoms(clause.body):
            self.report.error("DL017", f"a query of more than {MAX_ATOMS} atoms", clause.body)
            self.report.raise_errors()
        out: list[FlatClause] = []
        if check_names(clause, self.declared, self.report, parameters=True):
            flats = flat_clauses(clause, self.report)
            sound = [resolve(flat, self.report) for flat in flats]
            self._settle_parameters(flats)
            for flat in flats:
                self._infer(flat)
            out = [flat for flat, right in zip(flats, sound, strict=True) if right]
        self.report.raise_errors()
        if self.inlines:
            out = expand([*self.inlined, *out], self.declared, self.report)
            self.report.raise_errors()
        return out

    def _settle_parameters(self, flats: list[FlatClause]) -> None:
        """Find each parameter's kind: from its place in any alternative, or its value."""
        if not self.nodes:
            return
        places: dict[str, Kind] = {}
        for flat in flats:
            kinds = ClauseKinds(self.declared, Report(self.report.source))  # a report that is dropped
            kinds.infer(flat)
            places = kinds.variables | places
        for name, node in self.nodes.items():
            kind = places.get(node.variable) or self.given.get(name)
            if kind is None and name in self.given:
                self.report.error("DL120", f"parameter `${name}`: its value is no str, int or float", node)
            self.parameters[node.variable] = kind or Kind.NUMBER

    def _infer(self, flat: FlatClause) -> ClauseKinds:
        kinds = ClauseKinds(self.declared, self.report, dict(self.parameters))
        kinds.infer(flat)
        return kinds

    def _kind(self, term: ast.Term, alternatives: list[FlatClause]) -> Kind:
        return next((kind for flat in alternatives if (kind := flat.kinds.kind(term)) is not None), Kind.NUMBER)

    def _rule(self, flat: FlatClause) -> core.Rule | None:
        if not resolve(flat, self.report):
            return None
        kinds = self._infer(flat)
        if flat.false or self.report.errors:
            return None
        text = self.report.source.text[len(_BEGIN) :].removesuffix(".").strip()
        return Lowering(kinds, parameters=[*self.parameters]).rule(flat, HEAD, core.Origin(text, FILE, 1))


def _variables(clause: ast.Clause) -> list[ast.Name]:
    """The variables of a body in order of first use, without `_`, `_x` and inner ones.

    Inner variables are those of aggregates.
    """
    found: dict[str, ast.Name] = {}
    for node in everything_below(clause.body, stop=ast.Aggregate):
        if isinstance(node, ast.Name) and not node.name.startswith("_"):
            found.setdefault(node.name, node)
    return list(found.values())


# ── places ───────────────────────────────────────────────────────────────────────────────────


def _unplaced(node: Any) -> Any:
    """A copy of a node without a position."""
    if isinstance(node, Hoisted):
        body = [_unplaced(x) for x in node.body]
        return evolve(node, result=_unplaced(node.result), node=_unplaced(node.node), body=body)
    return evolve(rebuilt(node, _unplaced), pos=_NOWHERE, end=_NOWHERE)


def _unplaced_signature(signature: Signature) -> Signature:
    return evolve(
        signature, node=_unplaced(signature.node), attributes=[_unplaced(a) for a in signature.attributes]
    )


def _signature(relation: core.Relation) -> Signature:
    """A relation as if it were declared, without a position."""
    columns = relation.columns
    return Signature(
        relation.name,
        ast.Name(relation.name, _NOWHERE, _NOWHERE),
        [ast.Attribute(c.name, c.kind.value, pos=_NOWHERE, end=_NOWHERE) for c in columns],
        [column.kind for column in columns],
        [column.kind.value for column in columns],
        frozenset(),
        [],
    )


def _at_home(report: Report, length: int) -> list[Diagnostic]:
    """Diagnostics with positions in the query's own text."""
    out: list[Diagnostic] = []
    for found in report.errors:
        labels = tuple(
            Label(label.pos - len(_BEGIN), label.end - len(_BEGIN), label.text)
            for label in found.labels
            if label.pos != _NOWHERE
        )
        message = found.message
        if found.code == "DL010" and found.end == len(report.source.text):  # at the full stop that was added
            message = message.replace("unexpected `.`", "unexpected end of the query")
        if message.startswith("head variable"):  # the head is made, not written
            message = message.removeprefix("head ").replace("by the body", "by every alternative of the query")
        if found.pos == _NOWHERE:
            out.append(evolve(found, message=message, labels=labels))
        else:
            at = min(max(found.pos - len(_BEGIN), 0), length)
            out.append(evolve(found, message=message, pos=at, end=found.end - len(_BEGIN), labels=labels))
    placed = {found.code for found in out if found.pos != _NOWHERE}
    return [found for found in out if found.pos != _NOWHERE or found.code not in placed]

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

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from attrs import evolve, frozen

from everlog.core import program as core
from everlog.core.program import Column, Kind
from everlog.dsl import ast
from everlog.dsl.checks.clauses import FlatClause, Hoisted, flat_clauses, fresh, restart_fresh_names
from everlog.dsl.checks.declarations import Declarations, Signature
from everlog.dsl.checks.inline import expand
from everlog.dsl.checks.kinds import ClauseKinds
from everlog.dsl.checks.lower import Lowering
from everlog.dsl.checks.name_checks import check_names
from everlog.dsl.checks.scopes import resolve
from everlog.dsl.checks.types import Types
from everlog.dsl.diagnostics import DatalogError, Report, deep_nesting
from everlog.dsl.lexer import lex
from everlog.dsl.query_text import FILE, NOWHERE, ParsedQuery
from everlog.dsl.source import Source
from everlog.dsl.walk import MAX_ATOMS, everything_below, rebuilt, too_many_atoms

HEAD = "?-"  # no relation can have this name
_FIRST_FRESH = 1_000_000  # past all names that the checker made for the program


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
    inlined = [clause for clause in clauses if declared.relations[clause.head.name].unfolded]
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


def check_query(
    query: ParsedQuery, scope: Scope, given: Mapping[str, Kind | None] | None = None, *, bindings: bool = False
) -> Query:
    """The query as rules.  Of a single atom it has all columns, or with `bindings` its variables.

    `given` maps each parameter with a value to the kind of that value; it decides where the place
    of a parameter leaves its kind open.

    >>> edge = core.Relation("edge", (Column("a", Kind.NUMBER), Column("b", Kind.NUMBER)))
    >>> from everlog.dsl.query_text import parse_query
    >>> scope = EMPTY.having({"edge": edge}, {})
    >>> query = check_query(parse_query("?- edge(1, x), edge(x, y), y > 3."), scope)
    >>> print(*(column.name for column in query.columns), *query.rules)
    x y ?-(x, y) :- edge(1, x), edge(x, y), y > 3.
    >>> from_here = parse_query("edge($from, x)")
    >>> print(*check_query(from_here, scope, {"from": None}).rules)
    ?-($from, x) :- $($from), edge($from, x).
    >>> print(*check_query(from_here, scope, {"from": None}, bindings=True).rules)
    ?-(x) :- $($from), edge($from, x).

    Raises `DatalogError` with every error, at its place in the text.
    """
    report = query.new_report()
    with deep_nesting(report):
        try:
            report.raise_errors()
            return _Checker(scope, report, given or {}).query(query, bindings)
        except DatalogError:
            pass
    raise DatalogError(query.at_home(report))


def unfit_value(text: str, name: str, why: str) -> DatalogError:
    """The error of a query whose parameter got a value that it cannot have."""
    report = Report(Source(text, FILE))
    places = [w for w in lex(text, report) if isinstance(w, ast.Parameter) and w.name == name]
    report.items.clear()  # the text is known to be correct
    report.error("DL120", f"parameter `${name}`: {why}", next(iter(places), None))
    return DatalogError(report)


class _Checker:
    def __init__(self, scope: Scope, report: Report, given: Mapping[str, Kind | None]) -> None:
        self.declared, self.inlined, self.report, self.given = scope.declared, scope.inlined, report, given
        self.nodes: dict[str, ast.Parameter] = {}  # the first use of each parameter
        self.parameters: dict[str, Kind] = {}  # by their names among the variables
        self.inlines = any(signature.unfolded for signature in self.declared.relations.values())

    def query(self, query: ParsedQuery, bindings: bool) -> Query:
        restart_fresh_names(_FIRST_FRESH)
        assert query.clause is not None
        self._compare_parameters(query.clause)
        whole = None if bindings else self._whole_fact(query)
        clause = evolve(query.clause, heads=[ast.Atom(HEAD, [])], body=whole or query.clause.body)
        shown: list[ast.Term] = [*_variables(clause)]
        if whole is not None:
            shown = [_unplaced(arg) for arg in whole.args]
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
        origin = core.Origin(query.body, FILE, 1)
        rules = tuple(self._rule(evolve(flat, head=ast.Atom(HEAD, list(shown))), origin) for flat in alternatives)
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

    def _whole_fact(self, query: ParsedQuery) -> ast.Atom | None:
        """The one atom of a query for facts, with a name for each `_`; None for any other query."""
        atom = query.atom
        signature = None if atom is None else self.declared.relations.get(atom.name)
        if atom is None or signature is None or signature.inline:
            return None
        return evolve(atom, args=[fresh("_", a) if isinstance(a, ast.Underscore) else a for a in atom.args])

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
            expanded = expand([*self.inlined, *out], self.declared, self.report)
            out = [flat for flat in expanded if flat.head.name == HEAD]
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

    def _rule(self, flat: FlatClause, origin: core.Origin) -> core.Rule | None:
        if not resolve(flat, self.report):
            return None
        kinds = self._infer(flat)
        if flat.false or self.report.errors:
            return None
        return Lowering(kinds, parameters=[*self.parameters]).rule(flat, HEAD, origin)


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
    return evolve(rebuilt(node, _unplaced), pos=NOWHERE, end=NOWHERE)


def _unplaced_signature(signature: Signature) -> Signature:
    return evolve(
        signature, node=_unplaced(signature.node), attributes=[_unplaced(a) for a in signature.attributes]
    )


def _signature(relation: core.Relation) -> Signature:
    """A relation as if it were declared, without a position."""
    columns = relation.columns
    return Signature(
        relation.name,
        ast.Name(relation.name, NOWHERE, NOWHERE),
        [ast.Attribute(c.name, c.kind.value, pos=NOWHERE, end=NOWHERE) for c in columns],
        [column.kind for column in columns],
        [column.kind.value for column in columns],
        frozenset(),
        [],
    )

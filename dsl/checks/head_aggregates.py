"""Aggregates in heads: `sales(r, sum(v)) :- sale(_, r, v).`

The columns without an aggregate are the group.  The aggregate runs over the derivations of the
group: every way to match a body, `_` included, counts once, and each rule of the relation adds its
own.  Outside recursion this is an aggregate in a body, so nothing later knows of it:

    sales(g, s) :- sale(_, g, _), s = sum v : { sale(i, r, v), g = r }.

Of several rules, sums and counts are added up.  For `min` and `max` each rule gives its best value
as a candidate, and a subsumption keeps the best of them.  Through recursion every derivation is a
candidate.  A sum or count through recursion is computed where the recursion reads it:

    owns(x, z, sum(p)) :- controls(x, y), share(y, z, p).
    controls(x, y) :- owns(x, y, s), s > 50.
        becomes  controls(x, y) :- …, s = sum p : { controls(x, v), share(v, y, p) }, s > 50.

and `owns` itself comes after the recursion.  Where `owns` reads itself, `own_totals` gives its
tests a relation first.  `dsl.checks.monotone` makes sure that both have one meaning.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import count

from attrs import define, evolve, frozen

from everlog.core import program as core
from everlog.core.program.aggregates.growing import GROWING
from everlog.core.program.dependencies import components
from everlog.dsl import ast
from everlog.dsl.checks.clauses import FlatClause, flat_clause, fresh
from everlog.dsl.checks.declarations import Declarations
from everlog.dsl.checks.own_totals import OwnTotals
from everlog.dsl.checks.scopes import renamed
from everlog.dsl.checks.stratify import uses_of
from everlog.dsl.diagnostics import Label, Report
from everlog.dsl.walk import everything_below

BEST = ("min", "max")


@frozen
class Best:
    """A relation whose facts are the best of its candidates: a map from its other columns."""

    relation: str
    column: int
    op: str
    recursive: bool

    def subsumption(self, relation: core.Relation, origin: core.Origin) -> core.Subsumption:
        """`dist(x, d) <= dist(x, better) :- better < d.`"""
        args = [core.Variable(column.name) for column in relation.columns]
        value, kind = args[self.column], relation.columns[self.column].kind
        names = {arg.name for arg in args}
        better = core.Variable(next(f"better{n or ''}" for n in count() if f"better{n or ''}" not in names))
        others = [better if n == self.column else arg for n, arg in enumerate(args)]
        worse = core.Comparison("<" if self.op == "min" else ">", better, value, kind)
        return core.Subsumption(
            core.Atom(self.relation, tuple(args)), core.Atom(self.relation, tuple(others)), (worse,), origin
        )


def settle_aggregates(
    clauses: list[FlatClause], declared: Declarations, given: Collection[str], report: Report
) -> tuple[list[FlatClause], list[FlatClause], list[Best]]:
    """The clauses without aggregates in heads; those among them that are new; the maps.

    `given` are the relations that have facts of their own.
    """
    names = list(dict.fromkeys(c.head.name for c in clauses if c.aggregated is not None))
    if not names:
        return clauses, [], []
    recursive = _recursive(clauses, declared)
    clauses = _without_own_totals(clauses, recursive, declared, report)
    made: dict[int, list[FlatClause]] = {}
    maps: list[Best] = []
    totals: dict[str, Heads] = {}
    for name in names:
        facts = name in given or any(c.head.name == name and _is_fact(c) for c in clauses)
        rules = [c for c in clauses if c.head.name == name and c.dominating is None and not _is_fact(c)]
        heads = Heads(name, rules, facts, recursive.get(name, ()), declared, report)
        if not heads.check():
            continue
        best = heads.best()
        if best is not None:
            maps.append(best)
        elif heads.recursive:
            totals[name] = heads
        if best is None or not heads.recursive:
            made |= {id(rule): [new] for rule, new in zip(rules, heads.rewritten(), strict=True)}
    for clause in clauses if totals else ():
        read = {name: heads for name, heads in totals.items() if clause.head.name in heads.recursive}
        new = unfolded(clause, read) if read else None
        if new is not None:
            made[id(clause)] = new
    out = [one for clause in clauses for one in made.get(id(clause), [clause])]
    return out, [one for new in made.values() for one in new], maps


def unfolded(clause: FlatClause, totals: Mapping[str, Heads]) -> list[FlatClause] | None:
    """A clause with what it reads of `totals` computed in its place; None if it reads none."""
    assert clause.written is not None
    body = clause.written.body
    if not any(isinstance(x, ast.Atom) and x.name in totals for x in body):
        return None
    bodies: list[list[ast.Formula]] = [[]]
    for formula in body:
        choices = [[formula]]
        if isinstance(formula, ast.Atom) and formula.name in totals:
            choices = totals[formula.name].read(formula)
        bodies = [[*one, *choice] for one in bodies for choice in choices]
    return [flat_clause(clause.written.head, one, clause.origin) for one in bodies]


def _without_own_totals(
    clauses: list[FlatClause], recursive: dict[str, Collection[str]], declared: Declarations, report: Report
) -> list[FlatClause]:
    """Clauses where no sum reads its own recursion; `recursive` gets what is made for it."""
    totals: dict[str, Mapping[int, str]] = {}
    for clause in clauses:
        ops = _ops(clause)
        if ops and recursive.get(clause.head.name) and set(ops.values()) <= set(GROWING):
            totals[clause.head.name] = ops
    own = OwnTotals(totals, declared, report)
    out = [
        own.without(clause, recursive[clause.head.name])
        if clause.aggregated is not None and clause.head.name in totals
        else clause
        for clause in clauses
    ]
    for name, rule in own.rules.items():
        owner = next(atom.name for atom, _ in uses_of(rule.body) if atom.name in totals)
        group = [*recursive[owner], name]
        recursive |= dict.fromkeys(group, group)
    return [*out, *own.rules.values()]


def _is_fact(clause: FlatClause) -> bool:
    return isinstance(clause.origin, ast.Clause) and clause.origin.body is None


def _recursive(clauses: list[FlatClause], declared: Declarations) -> dict[str, Collection[str]]:
    """The relations that need themselves, each with those of its recursion."""
    graph: dict[str, dict[str, None]] = {name: {} for name in declared.relations}
    for clause in clauses:
        graph[clause.head.name] |= {atom.name: None for atom, _ in uses_of(clause.body)}
    groups = components(graph)
    return {name: group for group in groups for name in group if len(group) > 1 or name in graph[name]}


@define
class Heads:
    """The rules of one relation whose heads aggregate."""

    name: str
    rules: list[FlatClause]
    facts: bool
    recursive: Collection[str]  # the relations of its recursion
    declared: Declarations
    report: Report

    @property
    def ops(self) -> dict[int, str]:
        """The aggregate of each column that has one."""
        return _ops(next(rule for rule in self.rules if rule.aggregated is not None))

    # ── what is accepted ─────────────────────────────────────────────────────────────────────

    def check(self) -> bool:
        """Whether the aggregates of the relation have a meaning together."""
        before = len(self.report.items)
        self._same()
        if len(self.report.items) == before:
            self._one_map()
            self._declared()
        return len(self.report.items) == before

    def _same(self) -> None:
        """All rules of a relation aggregate the same columns in the same way."""
        wanted, first = self.ops, next(rule for rule in self.rules if rule.aggregated is not None)
        for rule in self.rules:
            if _ops(rule) == wanted:
                continue
            columns = self.declared.relations[self.name].attributes
            listed = ", ".join(f"`{op}({columns[n].name})`" for n, op in wanted.items())
            label = Label(first.origin.pos, first.origin.end, "as in this one")
            at = _head_node(rule)
            message = f"this rule of `{self.name}` does not aggregate as the others do"
            hint = f"every rule of `{self.name}` has {listed} in its head; a single value is `min(0)` or `sum(1)`"
            self.report.error("DL131", message, at, label, hint=hint)

    def _one_map(self) -> None:
        ops, node = self.ops, _head_node(self.rules[0])
        sums = [op for op in ops.values() if op not in BEST]
        grows = set(ops.values()) <= set(GROWING)
        if self.recursive and not grows and (sums or len(ops) > 1):
            what = f"`{sums[0]}`" if sums else "more than one aggregate"
            message = f"`{self.name}` depends on itself through {what}"
            hint = (
                "one `min` or `max`, or sums and counts, may go through recursion; aggregate the result elsewhere"
            )
            self.report.error("DL132", message, node, hint=hint)
        elif self.facts and (sums or len(ops) > 1):
            message = f"`{self.name}` aggregates what its rules derive, and also has facts of its own"
            hint = "put the facts into a relation that a rule reads"
            self.report.error("DL131", message, node, hint=hint)
        elif len(ops) > 1 and len(self.rules) > 1 and len(sums) < len(ops):
            message = (
                f"`{self.name}` has several rules and more than one aggregate, with `min` or `max` among them"
            )
            hint = "give the rules a relation of their own, and aggregate that with one rule"
            self.report.error("DL131", message, node, hint=hint)

    def _declared(self) -> None:
        signature = self.declared.relations[self.name]
        wrong: list[str] = [word for word in ("eqrel", "inline", "brie", "btree") if word in signature.qualifiers]
        if signature.choices:
            wrong.append("choice-domain")
        if wrong:
            message = f"`{self.name}` has an aggregate in its head and is declared `{wrong[0]}`"
            self.report.error("DL131", message, signature.node, hint=f"declare it without `{wrong[0]}`")

    # ── what it becomes ──────────────────────────────────────────────────────────────────────

    def best(self) -> Best | None:
        """The map that the relation is, unless one rule in one place decides it."""
        (column, op), *more = self.ops.items()
        if more or op not in BEST or not (self.recursive or self.facts or len(self.rules) > 1):
            return None
        return Best(self.name, column, op, bool(self.recursive))

    def read(self, atom: ast.Atom) -> list[list[ast.Formula]]:
        """What an atom stands for, once for each rule: that one binds the group."""
        columns = self.declared.relations[self.name].attributes
        group = {n: fresh(columns[n].name, atom) for n in range(len(columns)) if n not in self.ops}
        given: list[ast.Formula] = []
        for n, arg in enumerate(atom.args):
            if not isinstance(arg, ast.Underscore):
                parts = [] if n in group else [_Derivations(rule, group) for rule in self.rules]
                value = group[n] if n in group else _total(self.ops[n], n, parts, arg)
                given.append(ast.Constraint("=", arg, value, pos=arg.pos, end=arg.end))
        return [[*_Derivations(rule, group).formulas, *given] for rule in self.rules]

    def rewritten(self) -> list[FlatClause]:
        """A clause for each rule, with the aggregates in its body."""
        columns = self.declared.relations[self.name].attributes
        ops = self.ops
        group = {n: fresh(columns[n].name, self.rules[0].head) for n in range(len(columns)) if n not in ops}
        inner = [_Derivations(rule, group) for rule in self.rules]
        out = []
        for number, rule in enumerate(self.rules):
            assert rule.aggregated is not None
            parts = [inner[number]] if set(ops.values()) <= set(BEST) else inner
            head = rule.aggregated.head
            args = [
                group[n] if n in group else _total(ops[n], n, parts, head.args[n]) for n in range(len(columns))
            ]
            body = _Derivations(rule, group).formulas
            out.append(flat_clause(evolve(head, args=args), body, rule.origin))
            out[-1].false = rule.false
        return out


def _ops(rule: FlatClause) -> dict[int, str]:
    head = rule.aggregated.head if rule.aggregated is not None else rule.head
    return {n: arg.op for n, arg in enumerate(head.args) if isinstance(arg, ast.HeadAggregate)}


def _head_node(rule: FlatClause) -> ast.Atom:
    return rule.aggregated.head if rule.aggregated is not None else rule.head


class _Derivations:
    """The derivations of a rule as a conjunction, over names of its own and the group's."""

    def __init__(self, rule: FlatClause, group: dict[int, ast.Name]) -> None:
        assert rule.aggregated is not None
        head, body = rule.aggregated.head, rule.aggregated.body
        own = {
            node.name: fresh(node.name, node).name
            for part in (*head.args, *body)
            for node in everything_below(part)
            if isinstance(node, ast.Name)
        }
        self.args: list[ast.Term] = [renamed(arg, own) for arg in head.args]
        self.formulas: list[ast.Formula] = [_named(renamed(formula, own)) for formula in body]
        self.formulas += [
            ast.Constraint("=", name, self.args[n], pos=head.args[n].pos, end=head.args[n].end)
            for n, name in group.items()
        ]


def _named(formula: ast.Formula) -> ast.Formula:
    """A positive atom with a variable for each `_`: every match counts."""
    if not isinstance(formula, ast.Atom):
        return formula
    return evolve(formula, args=[fresh("_", a) if isinstance(a, ast.Underscore) else a for a in formula.args])


def _total(op: str, column: int, parts: list[_Derivations], at: ast.Term) -> ast.Term:
    """The value of an aggregate over the derivations of all rules."""
    if op != "mean" or len(parts) == 1:
        return _added([_aggregate(op, column, part, at) for part in parts], at)
    total = _added([_aggregate("sum", column, part, at, as_float=True) for part in parts], at)
    number = _added([_aggregate("count", column, part, at) for part in parts], at)
    floating = ast.Functor("to_float", [number], pos=at.pos, end=at.end)
    return ast.Functor("/", [total, floating], pos=at.pos, end=at.end)


def _aggregate(op: str, column: int, part: _Derivations, at: ast.Term, as_float: bool = False) -> ast.Aggregate:
    arg = part.args[column]
    assert isinstance(arg, ast.HeadAggregate)
    target = None if op == "count" else arg.target
    if as_float and target is not None:
        target = ast.Functor("to_float", [target], pos=at.pos, end=at.end)
    return ast.Aggregate(op, target, ast.And(list(part.formulas)), pos=at.pos, end=at.end)


def _added(terms: list[ast.Aggregate], at: ast.Term) -> ast.Term:
    out: ast.Term = terms[0]
    for term in terms[1:]:
        out = ast.Functor("+", [out, term], pos=at.pos, end=at.end)
    return out

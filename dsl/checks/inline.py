"""Replaces each use of an inlined relation by the bodies that define it.

An inlined relation need not be finite: `.decl even(x:number) inline`, `even(x) :- x % 2 = 0.` makes
sense wherever `x` is bound.  So inlining is part of the meaning, not an optimization. A use `r(t…)`
becomes one alternative per clause of `r`, with its head equated to the use.  Under `!` each clause
must fail; the checker allows this only if the clause has no variables of its own.

A view (`.view r`) is replaced likewise in what reads it, and keeps its clauses.  In an aggregate it
is replaced where a use has one match for each fact: the view has one clause, without variables of
its own.
"""

from __future__ import annotations

from itertools import product
from typing import Any

from attrs import evolve

from everlog.core.program.dependencies import components
from everlog.dsl import ast
from everlog.dsl.checks.clauses import FlatClause, Hoisted, Literal, fresh, names_of, names_of_literal, negated
from everlog.dsl.checks.declarations import Declarations
from everlog.dsl.checks.scopes import renamed
from everlog.dsl.checks.stratify import counter_in, counter_of, may_count
from everlog.dsl.diagnostics import Report
from everlog.dsl.walk import rebuilt

MAX_EXPANSIONS = 10_000
MAX_LITERALS = 200_000


def expand(clauses: list[FlatClause], declared: Declarations, report: Report) -> list[FlatClause]:
    """The clauses of relations that are not inlined, without inlined atoms and views."""
    inlined = [name for name, s in declared.relations.items() if s.unfolded]
    if not inlined:
        return clauses
    definitions: dict[str, list[FlatClause]] = {name: [] for name in inlined}
    for clause in clauses:
        if clause.head.name in inlined:
            definitions[clause.head.name].append(clause)
    kept = [c for c in clauses if not declared.relations[c.head.name].inline]
    if not _check(clauses, definitions, declared, report):
        return kept
    order = [name for group in components(_uses(definitions)) for name in group if name in inlined]
    made = 0
    for name in order:  # dependencies first, so their bodies have no inlined atoms
        definitions[name] = [e for c in definitions[name] for e in _expanded(c, definitions, report)]
        made += sum(len(clause.body) for clause in definitions[name])
        if made > MAX_LITERALS:
            message = f"inlined relations expand to more than {MAX_LITERALS} conditions"
            report.error("DL015", message, declared.relations[name].node)
            return kept
    return [e for c in kept for e in _expanded(c, definitions, report)]


def _uses(definitions: dict[str, list[FlatClause]]) -> dict[str, list[str]]:
    return {
        name: sorted({a.name for c in clauses for a in _atoms(c.body) if a.name in definitions})
        for name, clauses in definitions.items()
    }


def _atoms(body: list[Literal]) -> list[ast.Atom]:
    """The atoms of a body, also of aggregates in it."""
    out: list[ast.Atom] = []
    for literal in body:
        match literal:
            case Hoisted(body=inside):
                out += _atoms(inside)
            case ast.Atom():
                out.append(literal)
            case ast.Not(formula=ast.Atom() as atom):
                out.append(atom)
            case _:
                pass
    return out


def _expanded(clause: FlatClause, definitions: dict[str, list[FlatClause]], report: Report) -> list[FlatClause]:
    if not any(a.name in definitions for a in _atoms(clause.body)):
        return [clause]
    size, length = 1, 0
    for literal in clause.body:
        choices, longest = _growth(literal, definitions)
        size *= max(1, choices)
        length += longest
        if size > MAX_EXPANSIONS or size * length > MAX_LITERALS:
            what = f"{MAX_EXPANSIONS} alternatives" if size > MAX_EXPANSIONS else f"{MAX_LITERALS} conditions"
            report.error("DL015", f"inlining gives this rule more than {what}", clause.origin)
            return []
    alternatives = [_choices(literal, definitions) for literal in clause.body]
    return [evolve(clause, body=[x for part in choice for x in part]) for choice in product(*alternatives)]


def _growth(literal: Literal, definitions: dict[str, list[FlatClause]]) -> tuple[int, int]:
    """Lower bounds: the number of ways a literal can hold, and the longest of them."""
    match literal:
        case ast.Atom() if literal.name in definitions:
            found = [clause for clause in definitions[literal.name] if not clause.false]
            return len(found), len(literal.args) + max((len(clause.body) for clause in found), default=0)
        case ast.Not(formula=ast.Atom() as atom) if atom.name in definitions:
            found = [clause for clause in definitions[atom.name] if not clause.false]
            ways = 1
            for clause in found:
                ways = min(ways * max(1, len(clause.body)), MAX_EXPANSIONS + 1)
            return ways, len(found)
        case _:
            return 1, 1


def _choices(literal: Literal, definitions: dict[str, list[FlatClause]]) -> list[list[Literal]]:
    """The ways in which a literal can hold, each a conjunction."""
    match literal:
        case ast.Atom() if literal.name in definitions:
            return [_use(literal, clause) for clause in definitions[literal.name] if not clause.false]
        case ast.Not(formula=ast.Atom() as atom) if atom.name in definitions:
            failing = [_failure(atom, clause) for clause in definitions[atom.name] if not clause.false]
            return [[x for part in choice for x in part] for choice in product(*failing)]
        case Hoisted(body=body):
            inside = [x for each in body for x in _choices(each, definitions)[0]]
            return [[evolve(literal, body=inside)]]
        case _:
            return [[literal]]


def _use(atom: ast.Atom, clause: FlatClause) -> list[Literal]:
    """The body of `clause` with fresh variables and its head equated with `atom`."""
    names = {n.name for x in clause.body for n in names_of_literal(x)}
    names |= {n.name for a in clause.head.args for n in names_of(a)}
    names |= {n.name for x in clause.body if isinstance(x, Hoisted) for y in x.body for n in names_of_literal(y)}
    fresh_names = {n: fresh(n.split("@")[0], atom).name for n in names}
    out: list[Literal] = []
    plain = not any(isinstance(x, Hoisted) for x in clause.body)
    same: dict[str, Any] = {}  # fresh names that stand for a name of the use
    for formal, actual in zip(clause.head.args, atom.args, strict=True):
        if isinstance(actual, ast.Underscore):
            continue
        mine = renamed(formal, fresh_names)
        if plain and isinstance(mine, ast.Name) and isinstance(actual, ast.Name) and mine.name not in same:
            same[mine.name] = actual
        else:
            out.append(ast.Constraint("=", mine, actual, pos=atom.pos, end=atom.end))
    return [substituted(x, same) for x in out] + [substituted(renamed(x, fresh_names), same) for x in clause.body]


def _failure(atom: ast.Atom, clause: FlatClause) -> list[list[Literal]]:
    """The ways in which `clause` does not derive `atom`: one of its conditions fails."""
    binding: dict[str, Any] = {}
    conditions: list[Literal] = []
    for formal, actual in zip(clause.head.args, atom.args, strict=True):
        if isinstance(formal, ast.Name) and formal.name not in binding:
            binding[formal.name] = actual
        else:
            conditions.append(
                ast.Constraint("=", substituted(formal, binding), actual, pos=atom.pos, end=atom.end)
            )
    conditions += [substituted(x, binding) for x in clause.body]
    return [[negated(x)] for x in conditions]  # type: ignore[arg-type, list-item]


def substituted(node: Any, binding: dict[str, Any]) -> Any:
    """A copy in which variables are replaced by terms."""
    if isinstance(node, ast.Name):
        return binding.get(node.name, node)
    return rebuilt(node, lambda child: substituted(child, binding))


# ── what cannot be inlined ───────────────────────────────────────────────────────────────────


def _check(
    clauses: list[FlatClause], definitions: dict[str, list[FlatClause]], declared: Declarations, report: Report
) -> bool:
    before = len(report.items)
    _check_cycles(clauses, definitions, declared, report)
    what_is = {name: "view" if declared.relations[name].view else "inlined relation" for name in definitions}
    brings_variables = {name for name, found in definitions.items() if any(_own_variables(c) for c in found)}
    matched_once = {name for name, found in definitions.items() if what_is[name] == "view" and _is_one(found)}
    for clause in clauses:
        for literal in clause.body:
            if isinstance(literal, ast.Not) and isinstance(literal.formula, ast.Atom):
                atom = literal.formula
                if atom.name in brings_variables:
                    report.error(
                        "DL081",
                        f"{what_is[atom.name]} `{atom.name}` is negated but brings variables of its own",
                        literal,
                    )
                elif atom.name in definitions and any(isinstance(a, ast.Underscore) for a in atom.args):
                    message = f"`_` in a negated atom of the {what_is[atom.name]} `{atom.name}`"
                    report.error("DL081", message, literal)
            elif isinstance(literal, Hoisted):
                for inner in _atoms(literal.body):
                    fits = inner.name in matched_once and any(inner is x for x in _positive(literal))
                    if inner.name in definitions and not (fits and not _leaves_out(inner)):
                        message = f"{what_is[inner.name]} `{inner.name}` stands inside an aggregate"
                        report.error("DL082", message, inner)
    if may_count(report):
        views = {name for name in definitions if declared.relations[name].view}
        _check_counters(clauses, definitions, views, report)
    return len(report.items) == before


def _check_cycles(
    clauses: list[FlatClause], definitions: dict[str, list[FlatClause]], declared: Declarations, report: Report
) -> None:
    """Report relations that would be replaced for ever, and views that recursion goes through."""
    views = {name for name in definitions if declared.relations[name].view}
    found = [(group, _uses(definitions), "inlined relation") for group in components(_uses(definitions))]
    found = [each for each in found if views.isdisjoint(each[0])]
    if views:
        everything: dict[str, list[FlatClause]] = {name: [] for name in definitions}
        for clause in clauses:
            everything.setdefault(clause.head.name, []).append(clause)
        graph = _uses(everything)
        found += [(group, graph, "view") for group in components(graph) if not views.isdisjoint(group)]
    for group, graph, what in found:
        if len(group) > 1 or group[0] in graph[group[0]]:
            named = sorted(views.intersection(group)) if what == "view" else sorted(group)
            listed = ", ".join(f"`{name}`" for name in named)
            message = f"{what} {listed} depends on itself"
            if len(named) > 1:
                message = f"{what}s depend on each other: {listed}"
            report.error("DL080", message, declared.relations[named[0]].node)


def _check_counters(
    clauses: list[FlatClause], definitions: dict[str, list[FlatClause]], views: set[str], report: Report
) -> None:
    for clause in clauses:
        if clause.head.name in definitions and (counter := counter_of(clause)) is not None:
            message = f"`autoinc()` stands in a rule of the inlined relation `{clause.head.name}`"
            report.error("DL084", message, counter)
        for atom in _atoms(clause.body):
            if atom.name in definitions and (counter := counter_in([*atom.args])) is not None:
                message = f"`autoinc()` stands in a use of the inlined relation `{atom.name}`"
                report.error("DL084", message, counter)
            elif atom.name in views and (counter := counter_of(clause)) is not None:
                report.error("DL084", f"`autoinc()` counts facts of the view `{atom.name}`", counter)


def _is_one(clauses: list[FlatClause]) -> bool:
    """Whether each fact has one derivation: there is one clause, whose head has its variables."""
    if len(clauses) != 1 or clauses[0].false or _own_variables(clauses[0]):
        return False
    args = clauses[0].head.args
    return all(isinstance(a, ast.Name) for a in args) and len({n.name for a in args for n in names_of(a)}) == len(
        args
    )


def _positive(aggregate: Hoisted) -> list[ast.Atom]:
    """The atoms of an aggregate that are not negated, also of those inside it."""
    found: list[ast.Atom] = []
    for literal in aggregate.body:
        if isinstance(literal, Hoisted):
            found += _positive(literal)
        elif isinstance(literal, ast.Atom):
            found.append(literal)
    return found


def _leaves_out(atom: ast.Atom) -> bool:
    return any(isinstance(a, ast.Underscore) for a in atom.args)


def _own_variables(clause: FlatClause) -> bool:
    head = {n.name for a in clause.head.args for n in names_of(a)}
    return any(n.name not in head for x in clause.body for n in names_of_literal(x)) or any(
        isinstance(x, Hoisted) for x in clause.body
    )

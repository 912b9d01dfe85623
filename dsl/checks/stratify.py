"""Stratification: no relation depends on its own absence.

Negation and aggregation read which facts a relation *lacks*, so the relation must be complete
before.  If a relation reaches itself through one of them, there is no such order, and the report
prints the cycle.  Counters are also refused: a recursive rule would count for ever.
"""

from __future__ import annotations

from collections.abc import Iterator

from everlog.core.program.aggregates.growing import GROWING
from everlog.core.program.dependencies import components, cycle_through
from everlog.dsl import ast
from everlog.dsl.checks.clauses import FlatClause, Hoisted, Literal
from everlog.dsl.checks.declarations import Declarations
from everlog.dsl.diagnostics import Label, Report


def check_strata(clauses: list[FlatClause], declared: Declarations, report: Report) -> None:
    graph: dict[str, dict[str, None]] = {name: {} for name in declared.relations}
    strict: list[tuple[str, ast.Atom, str]] = []
    for clause in clauses:
        uses = graph[clause.head.name]
        for atom, use in uses_of(clause.body):
            uses[atom.name] = None
            if use:
                strict.append((clause.head.name, atom, use))
    counters = [(c, x) for c in clauses if (x := counter_of(c)) is not None] if may_count(report) else []
    planned = [c for c in clauses if c.origin.plan is not None]
    if not strict and not counters and not planned:
        return
    group = {name: i for i, names in enumerate(components(graph)) for name in names}
    for head, atom, use in strict:
        if group[head] == group[atom.name]:
            cycle = " → ".join(cycle_through(graph, head, atom.name))
            report.error(
                "DL045",
                f"`{head}` depends on itself through {use}: {cycle}",
                atom,
                Label(declared.relations[head].node.pos, declared.relations[head].node.end, "declared here"),
                hint=f"compute `{atom.name}` without `{head}`, or split the relation in two",
            )
    for clause, counter in counters:
        head = clause.head.name
        if any(group[a.name] == group[head] for a, _ in uses_of(clause.body)):
            report.error("DL044", "`autoinc()` stands in a recursive rule", counter)
    for clause in planned:
        _check_plan(clause, group, report)


def _check_plan(clause: FlatClause, group: dict[str, int], report: Report) -> None:
    """Check a recursive rule's plan: each order lists every atom once."""
    plan = clause.origin.plan
    assert plan is not None
    own = group[clause.head.name]
    atoms = [a for a, use in uses_of(clause.body) if not use]
    versions = sum(group[a.name] == own for a in atoms)
    if not versions or clause.dominating is not None:
        return  # Soufflé does not check these either
    for version, order in plan.orders:
        if version >= versions:
            message = f"the plan has an order for version {version}; the rule has versions 0 to {versions - 1}"
            report.error("DL058", message, plan)
        elif sorted(order) != list(range(1, len(atoms) + 1)):
            message = f"the plan does not list the {len(atoms)} atom(s) of the body, each once"
            report.error("DL058", message, plan, hint="leave `.plan` out: the engine orders joins itself")


def may_count(report: Report) -> bool:
    """Whether the text can contain a counter; most texts need no search."""
    return "autoinc" in report.source.text or "$" in report.source.text


def uses_of(body: list[Literal]) -> Iterator[tuple[ast.Atom, str]]:
    """The atoms of a body, each with the construct that needs it to be complete, if any."""
    for literal in body:
        match literal:
            case ast.Atom():
                yield literal, ""
            case ast.Not(formula=ast.Atom() as atom):
                yield atom, "negation"
            case Hoisted(body=inner, node=node):
                grows = isinstance(node, ast.Aggregate) and node.op in GROWING
                for atom, use in uses_of(inner):
                    yield atom, use if grows and use != "aggregation" else "aggregation"
            case _:
                pass


def counter_of(clause: FlatClause) -> ast.Counter | None:
    todo: list[object] = [*clause.head.args]
    for literal in clause.body:
        match literal:
            case ast.Atom(args=args) | ast.Not(formula=ast.Atom(args=args)):
                todo += args
            case ast.Constraint(left=left, right=right):
                todo += (left, right)
            case _:
                pass
    return counter_in(todo)


def counter_in(todo: list[object]) -> ast.Counter | None:
    """The last counter in some terms, if there is one."""
    while todo:
        term = todo.pop()
        match term:
            case ast.Counter():
                return term
            case ast.Functor(args=args) | ast.UserFunctor(args=args):
                todo += args
            case ast.Cast(term=inner):
                todo.append(inner)
            case _:
                pass
    return None

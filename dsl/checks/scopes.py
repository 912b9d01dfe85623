"""Which variables are grounded, and which an aggregate shares with its rule.

A positive atom grounds a variable, and so does an equality whose other side is grounded.  Inside an
aggregate, a variable that is grounded outside is that variable, unless the target names it. A
variable of the target, or one that occurs nowhere outside, is local and gets a fresh name.  A
variable that occurs outside but is grounded only inside is a *witness*: after `m = max n : {p(n,
y)}`, `y` takes the values that go with the maximum.  For a witness, the body is joined once more
outside, with its target equal to the result.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from attrs import evolve

from everlog.dsl import ast
from everlog.dsl.checks.clauses import (
    LEAVES,
    FlatClause,
    Hoisted,
    Literal,
    alternatives,
    fresh,
    hoist_body,
    names_of,
    names_of_literal,
    target_names,
)
from everlog.dsl.diagnostics import Diagnostic, Label, Report
from everlog.dsl.walk import everything_below, rebuilt, replaced


def resolve(clause: FlatClause, report: Report, head_grounded: bool = False) -> bool:
    """Scope a clause's aggregates in place; check that all variables are grounded.

    With `head_grounded` (a clause of an inlined relation) the head grounds its variables. Returns
    False if it reported an error.
    """
    if not head_grounded and _plainly_grounded(clause):
        return True
    start = {n.name for a in clause.head.args for n in names_of(a)} if head_grounded else set()
    if clause.dominating is not None:
        for atom in (clause.head, clause.dominating):
            start |= {n.name for a in atom.args for n in names_of(a)}
    known = start | _grounding_atoms(clause.body)
    complex_ = [x for x in clause.body if not isinstance(x, ast.Atom)]
    if complex_:
        level = _Level(clause.body, {n.name for n in _level_names(clause)}, known, report)
        clause.body = level.settle()
        known = level.known
        if level.failed:
            return False
    loose = [n for n in _level_names(clause) if n.name not in known]
    if not loose:
        return True
    reported: set[str] = set()
    written = [n for n in loose if clause.origin.pos <= n.pos < clause.origin.end]  # without inlined ones
    for name in written or loose:
        if name.name not in reported:
            reported.add(name.name)
            _report_ungrounded(name, clause, report)
    return False


def _plainly_grounded(clause: FlatClause) -> bool:
    """Whether positive atoms bind all variables, and nothing is nested: one pass."""
    known: set[str] = set()
    read: list[ast.Term] = list(clause.head.args)
    for literal in clause.body:
        if literal.__class__ is ast.Atom:
            for arg in literal.args:
                if arg.__class__ is ast.Name:
                    known.add(arg.name)
                else:
                    read.append(arg)
        elif literal.__class__ is ast.Constraint:
            read += (literal.left, literal.right)
        elif isinstance(literal, ast.Not) and isinstance(literal.formula, ast.Atom):
            read += literal.formula.args
        else:
            return False
    for term in read:
        if term.__class__ is ast.Name:
            if term.name not in known:
                return False
        elif term.__class__ not in LEAVES:
            return False
    return clause.dominating is None


def _level_names(clause: FlatClause) -> list[ast.Name]:
    out = [n for a in clause.head.args for n in names_of(a)]
    if clause.dominating is not None:
        out += [n for a in clause.dominating.args for n in names_of(a)]
    for literal in clause.body:
        out += names_of_literal(literal)
    return out


def _grounding_atoms(body: Iterable[Literal]) -> set[str]:
    return {a.name for x in body if isinstance(x, ast.Atom) for a in x.args if isinstance(a, ast.Name)}


class _Level:
    """One level of scope: the literals of a rule body or of an aggregate's body."""

    def __init__(self, body: list[Literal], occurring: set[str], known: set[str], report: Report) -> None:
        self.body, self.occurring, self.known, self.report = body, occurring, known, report
        self.failed = False

    def settle(self) -> list[Literal]:
        """Ground variables by equalities, ranges and aggregates, each when it is ready."""
        equalities = [x for x in self.body if isinstance(x, ast.Constraint) and x.op == "="]
        waiting = [x for x in self.body if isinstance(x, Hoisted)]
        extra: list[Literal] = []
        while True:
            self._propagate(equalities)
            ready = next((h for h in waiting if self._is_ready(h)), None)
            if ready is None:
                ready = next((h for h in waiting if self._shadow(h, equalities)), None)
            if ready is None:
                ready = next((h for h in waiting if self._has_witness(h)), None)
                if ready is None:
                    pulled = next((inner for h in waiting if (inner := self._pulled_out(h)) is not None), None)
                    if pulled is None:
                        break
                    waiting.append(pulled)
                    extra.append(pulled)
                    continue
                self._shadow_target(ready)
                exported = self._export_witness(ready)
                extra += exported
                equalities += [x for x in exported if isinstance(x, ast.Constraint) and x.op == "="]
                waiting += [x for x in exported if isinstance(x, Hoisted)]
                self.known |= _grounding_atoms(exported)
            waiting.remove(ready)
            self._shadow_target(ready)
            self._close(ready)
            self.known.add(ready.result.name)
        for hoisted in waiting:
            self._report_stuck(hoisted, waiting)
        return self.body + extra

    def _propagate(self, equalities: list[ast.Constraint]) -> None:
        changed = True
        while changed:
            changed = False
            for equality in equalities:
                for side, other in ((equality.left, equality.right), (equality.right, equality.left)):
                    if isinstance(side, ast.Name) and side.name not in self.known and self._grounds(other):
                        self.known.add(side.name)
                        changed = True

    def _grounds(self, term: ast.Term) -> bool:
        return not _has_underscore(term) and all(n.name in self.known for n in names_of(term))

    def _is_ready(self, hoisted: Hoisted) -> bool:
        if isinstance(hoisted.node, ast.Functor):
            return all(n.name in self.known for n in names_of(hoisted.node))
        if hoisted.closed:
            return hoisted.outer <= self.known
        shared = _inner_names(hoisted.node) & self.occurring
        return shared <= self.known

    def _shadow(self, hoisted: Hoisted, equalities: list[ast.Constraint]) -> bool:
        """`y = min y : {p(y)}`: a variable that only the result grounds is local inside."""
        node = hoisted.node
        if not isinstance(node, ast.Aggregate) or hoisted.closed:
            return False
        probe = _Level(self.body, set(), self.known | {hoisted.result.name}, self.report)
        probe._propagate(equalities)
        loose = (_inner_names(node) & self.occurring) - self.known
        hidden = loose & probe.known
        if hidden:
            hoisted.node = renamed(node, {n: fresh(n, node).name for n in hidden})
        return bool(hidden) and hidden == loose

    def _shadow_target(self, hoisted: Hoisted) -> None:
        """`p(x), n = sum x : {q(x)}`: a variable of the target is local.

        A variable of the same name outside is another one.
        """
        shadowed = hoisted.targets & self.occurring & self.known
        if shadowed and isinstance(hoisted.node, ast.Aggregate) and not hoisted.closed:
            hoisted.node = renamed(hoisted.node, {n: fresh(n, hoisted.node).name for n in sorted(shadowed)})
            hoisted.targets -= shadowed

    def _has_witness(self, hoisted: Hoisted) -> bool:
        node = hoisted.node
        if not isinstance(node, ast.Aggregate) or node.op not in ("min", "max") or hoisted.closed:
            return False
        loose = (_inner_names(node) & self.occurring) - self.known
        body = _conjunction(node, self.report)
        if body is None:
            return False
        known = self.known | _grounding_atoms(body) | {x.result.name for x in body if isinstance(x, Hoisted)}
        probe = _Level(body, set(), known, self.report)
        probe._propagate([x for x in body if isinstance(x, ast.Constraint) and x.op == "="])
        return loose <= probe.known

    def _export_witness(self, hoisted: Hoisted) -> list[Literal]:
        """The body again, outside: its witnesses keep their names, the rest is renamed."""
        node = hoisted.node
        assert isinstance(node, ast.Aggregate)
        assert node.target is not None
        witnesses = (_inner_names(node) & self.occurring) - self.known
        body = _conjunction(node, self.report) or []
        fresh_names = {n: fresh(n, node).name for n in _inner_names(node) - self.occurring}
        copy = [renamed(x, fresh_names) for x in body]
        target = renamed(node.target, fresh_names)
        copy.append(ast.Constraint("=", target, hoisted.result, pos=node.pos, end=node.end))
        hide = {n: fresh(n, node).name for n in witnesses}
        hoisted.node = renamed(node, hide)
        return copy

    def _pulled_out(self, hoisted: Hoisted) -> Hoisted | None:
        """Inner `min` and `max` that do not need the aggregate around them, moved out.

        Their witnesses are then witnesses at this level: `count : {p(x), x > min y : {q(y, w)}}`
        gives w as `m = min y : {q(y, w)}, count : {p(x), x > m}` does.
        """
        node = hoisted.node
        if not isinstance(node, ast.Aggregate) or hoisted.closed:
            return None
        loose = (_inner_names(node) & self.occurring) - self.known
        for inner in _aggregates_in(node.body):
            rest = replaced(node, inner, ast.Underscore())
            shared = _inner_names(inner) & _inner_names(rest)
            if inner.op in ("min", "max") and loose & _inner_names(inner) and shared <= self.known:
                result = fresh(inner.op, inner)
                hoisted.node, hoisted.had_aggregate = replaced(node, inner, result), True
                self.occurring.add(result.name)
                return Hoisted(result, inner, targets=target_names(inner))
        return None

    def _close(self, hoisted: Hoisted) -> None:
        """Settle the body of an aggregate: fresh names for locals and wildcards."""
        node = hoisted.node
        if not isinstance(node, ast.Aggregate) or hoisted.closed:
            return
        local = _inner_names(node) - self.occurring
        node = renamed(node, {n: fresh(n, node).name for n in local})
        hoisted.node = node
        body = _conjunction(node, self.report)
        if body is None:
            self.failed = True
            return
        if _counts_tuples(body) and not hoisted.had_aggregate:
            body = [_named_wildcards(x) for x in body]
        names = {n.name for x in body for n in names_of_literal(x)} | {n.name for n in names_of(node.target)}
        outside = self.known & _inner_names(node)
        level = _Level(body, names | self.known, outside | _grounding_atoms(body), self.report)
        hoisted.body, hoisted.outer, hoisted.closed = level.settle(), frozenset(outside), True
        self.failed = self.failed or level.failed
        reported: set[str] = set()
        for name in [n for x in hoisted.body for n in names_of_literal(x)] + list(names_of(node.target)):
            if name.name not in level.known and name.name not in reported:
                reported.add(name.name)
                self.failed = True
                _report_name(self.report, name, "is not grounded inside the aggregate")

    def _report_stuck(self, hoisted: Hoisted, waiting: list[Hoisted]) -> None:
        self.failed = True
        node = hoisted.node
        if isinstance(node, ast.Functor):
            for name in names_of(node):
                if name.name not in self.known:
                    _report_name(self.report, name, "is not grounded, so the range has no bounds")
            return
        loose = (_inner_names(node) & self.occurring) - self.known
        inside = _grounding_atoms(_conjunction(node, self.report) or [])
        others = {h.result.name for h in waiting if h is not hoisted}
        for name in _all_names(node):
            if name.name not in loose:
                continue
            loose.discard(name.name)
            if others & self._depends(name.name):
                message = f"aggregates depend on each other through `{name.name}`"
                self.report.items.append(Diagnostic("DL042", message, name.pos, name.end))
            elif name.name not in inside and not _aggregates_in(node.body):
                _report_name(self.report, name, "is not grounded")
            else:
                message = f"`{name.name}` is grounded only inside this `{node.op}`, but used outside it"
                hint = "ground it by an atom outside the aggregate; only min and max give witnesses"
                self.report.items.append(Diagnostic("DL041", message, name.pos, name.end, hint=hint))

    def _depends(self, name: str) -> set[str]:
        return {
            n.name
            for x in self.body
            if isinstance(x, ast.Constraint) and any(m.name == name for m in names_of_literal(x))
            for n in names_of_literal(x)
        }


# ── helpers ──────────────────────────────────────────────────────────────────────────────────


def _conjunction(node: ast.Aggregate, report: Report) -> list[Literal] | None:
    bodies = alternatives(node.body, report, node)
    if not bodies:
        return None
    if len(bodies) != 1:
        report.error(
            "DL018",
            "a disjunction inside an aggregate is not supported",
            node,
            hint="give the disjunction a relation of its own and aggregate over that",
        )
        return None
    literals, possible = hoist_body(bodies[0])
    if not possible:  # `false`: never holds
        zero, one = ast.Number("0", node.pos, node.end), ast.Number("1", node.pos, node.end)
        literals.append(ast.Constraint("=", zero, one, pos=node.pos, end=node.end))
    return literals


def _all_names(node: Any) -> list[ast.Name]:
    """Every variable below a node, aggregates included."""
    return [n for n in everything_below(node) if isinstance(n, ast.Name)]


def _inner_names(node: Any) -> set[str]:
    return {n.name for n in _all_names(node)}


def _aggregates_in(node: Any) -> list[ast.Aggregate]:
    """The aggregates below a node, outermost only."""
    return [n for n in everything_below(node, stop=ast.Aggregate) if isinstance(n, ast.Aggregate)]


def _has_underscore(term: ast.Term) -> bool:
    return any(isinstance(n, ast.Underscore) for n in everything_below(term, stop=ast.Aggregate))


def renamed(node: Any, names: dict[str, str]) -> Any:
    """A copy in which variables are replaced, at every depth."""

    def go(node: Any) -> Any:
        match node:
            case ast.Name(name=name):
                return evolve(node, name=names[name]) if name in names else node
            case Hoisted():
                return evolve(
                    node,
                    result=go(node.result),
                    node=go(node.node),
                    body=[go(x) for x in node.body],
                    outer=frozenset(names.get(n, n) for n in node.outer),
                    targets=frozenset(names.get(n, n) for n in node.targets),
                )
            case _:
                return rebuilt(node, go)

    return go(node) if names else node


def _counts_tuples(body: list[Literal]) -> bool:
    """Whether `_` counts: `count : {p(x, _)}` counts the facts of p.

    In a body of several atoms, of an atom with a repeated variable, or with an aggregate or a range
    inside, only the values of named variables count.  (Soufflé does the same: it first puts those
    in a relation.)
    """
    atoms = [x for x in body if isinstance(x, ast.Atom)]
    if len(atoms) > 1 or any(isinstance(x, Hoisted) for x in body):
        return False
    names = [n.name for atom in atoms for n in names_of_literal(atom)]
    return len(names) == len(set(names))


def _named_wildcards(literal: Literal) -> Literal:
    """The literal with a variable for each `_` in a positive atom."""
    if isinstance(literal, ast.Atom) and any(isinstance(a, ast.Underscore) for a in literal.args):
        return evolve(literal, args=[fresh("_", a) if isinstance(a, ast.Underscore) else a for a in literal.args])
    return literal


def _report_name(report: Report, name: ast.Name, why: str) -> None:
    shown = name.name.split("@")[0]
    report.items.append(Diagnostic("DL040", f"variable `{shown}` {why}", name.pos, name.end))


def _report_ungrounded(name: ast.Name, clause: FlatClause, report: Report) -> None:
    shown = name.name.split("@")[0]
    labels = []
    for literal in clause.body:
        if isinstance(literal, ast.Not):
            labels += [
                Label(n.pos, n.end, f"here `{shown}` is under `!`, which binds nothing")
                for n in names_of_literal(literal)
                if n.name == name.name and n.pos != name.pos
            ]
    in_head = any(n.pos == name.pos for a in clause.head.args for n in names_of(a))
    message = (
        f"head variable `{shown}` is not bound by the body" if in_head else f"variable `{shown}` is not grounded"
    )
    hint = f"add an atom that binds `{shown}`, or an equality with bound values"
    report.items.append(Diagnostic("DL040", message, name.pos, name.end, tuple(labels[:3]), hint))

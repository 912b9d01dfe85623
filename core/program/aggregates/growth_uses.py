"""Which uses of running totals and of lattice values are sound in a recursion.

A sum or count over relations of its own unit may only grow, and may only be compared so that it
keeps true what was true: addends that are not negative, `s > 50`, `degree - n < k`.

A value of a lattice may only be passed on, to a lattice column of the head, or to functors of the
user, which are taken to be monotone; `everlog check --try` tries that on the values of the data.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from everlog.core.program.aggregates.best_values import Misuse, Uses, as_written, best_maps
from everlog.core.program.aggregates.growing import GROWING, grows_through
from everlog.core.program.bodies import variables_of_literal
from everlog.core.program.dependencies import Unit
from everlog.core.program.program import (
    Aggregate,
    Atom,
    Call,
    Comparison,
    Literal,
    Negation,
    Program,
    Range,
    Rule,
    Term,
    Variable,
    Wildcard,
    atoms_of,
    variables_of,
)


def misuse_of_growth(program: Program, unit: Unit) -> Misuse | None:
    """The first use of a running total or lattice value in a unit that is not sound."""
    for rule, literal in grows_through(unit):
        found = _inside(program, unit, rule, literal) or _Totals(program, unit, rule).misuse()
        if found is not None:
            return found
    return next(_lattice_misuses(program, unit), None)


# ── sums and counts ──────────────────────────────────────────────────────────────────────────


def _inside(program: Program, unit: Unit, rule: Rule, literal: Aggregate) -> Misuse | None:
    """What is wrong in the braces."""
    name = next(a.relation for a, _ in atoms_of(literal.body) if a.relation in unit.relations)

    def wrong(why: str, hint: str) -> Misuse:
        return Misuse(rule, literal, literal.result.name, as_written(why), as_written(hint))

    if literal.op not in GROWING:
        return wrong(
            f"`{literal.op}` over `{name}`, which depends on it, has no single meaning",
            "in braces only `sum` and `count` may go through recursion; put `min` and `max` into the head",
        )
    for inner in literal.body:
        own = any(a.relation in unit.relations for a, _ in atoms_of((inner,)))
        if own and isinstance(inner, Negation | Aggregate):
            return wrong(
                f"`{inner}` in the braces may cease to hold when `{name}` grows",
                "count what has been derived, not what has not: `total - n < k` where `n` counts it",
            )
    bound = {v.name for x in literal.body if isinstance(x, Atom) for a in x.args for v in variables_of(a)}
    equalities = [x for x in literal.body if isinstance(x, Comparison) and x.op == "="]
    bound |= {v.name for x in equalities for v in variables_of_literal(x)}
    free = [v for v in literal.outer if v.name not in bound]
    if free:
        return wrong(
            f"`{free[0]}` is not bound in the braces, which go through recursion",
            f"read `{free[0]}` from a relation in the braces, too",
        )
    if not set(unit.relations).isdisjoint(best_maps(program, unit.relations)):
        why = f"`{name}` depends on itself through a total and through `min` or `max`"
        return wrong(why, "split the recursion")
    target = literal.target
    inner_rule = Rule(Atom("", ()), literal.body, rule.name, rule.origin)
    if literal.op == "sum" and target is not None and not Uses(program, inner_rule, {}).is_at_least_zero(target):
        shown = target if isinstance(target, Variable) else "what is added"
        return wrong(
            f"`{literal.op} {target}` may become smaller when `{name}` grows: `{target}` may be negative",
            f"add `{shown} >= 0` to the body that is summed, or declare its column `unsigned`",
        )
    return None


class _Totals(Uses):
    """The uses of totals in one rule: they move up, and never into the head."""

    def __init__(self, program: Program, unit: Unit, rule: Rule) -> None:
        super().__init__(program, rule, {})
        self.unit = unit

    def misuse(self) -> Misuse | None:
        for literal in self.rule.body:
            if isinstance(literal, Aggregate) and any(
                a.relation in self.unit.relations for a, _ in atoms_of(literal.body)
            ):
                self.moves[literal.result.name] = 1
                self.of[literal.result.name] = next(
                    a.relation for a, _ in atoms_of(literal.body) if a.relation in self.unit.relations
                )
                self.what[literal.result.name] = f"the {literal.op} over"
        found = self._joined_totals() or self.bound_by_equality()
        for literal in self.rule.body:
            found = found or self._used(literal)
        return found or self.unused(None, self.rule.head.args, "is a column of the head")

    def _joined_totals(self) -> Misuse | None:
        for literal in self.rule.body:
            if isinstance(literal, Atom):
                for arg in literal.args:
                    if isinstance(arg, Variable) and arg.name in self.moves:
                        return self.unused(literal, (arg,), "is joined with a column")
        return None

    def _used(self, literal: Literal) -> Misuse | None:
        if isinstance(literal, Aggregate) and literal.result.name in self.moves:
            return self.unused(literal, literal.outer, "is used in an aggregate")
        return self.use_of(literal)


# ── lattices ─────────────────────────────────────────────────────────────────────────────────


def _lattice_misuses(program: Program, unit: Unit) -> Iterator[Misuse]:
    columns = {
        name: {column for column, _ in program.relations[name].lattices}
        for name in unit.relations
        if program.relations[name].lattices
    }
    for rule in unit.rules if columns else ():
        yield from _of_rule(rule, columns)


def _of_rule(rule: Rule, columns: Mapping[str, set[int]]) -> Iterator[Misuse]:
    values: dict[str, str] = {}
    count: dict[str, int] = {}
    for literal in rule.body:
        if isinstance(literal, Atom):
            for n, arg in enumerate(literal.args):
                for v in variables_of(arg):
                    count[v.name] = count.get(v.name, 0) + 1
                if n not in columns.get(literal.relation, ()) or isinstance(arg, Wildcard):
                    continue
                if not isinstance(arg, Variable):
                    why = f"`{literal}` asks for one value of `{literal.relation}`, which may still grow"
                    yield Misuse(rule, literal, str(arg), why, "compare it by a functor: `@contains(v, 1) = 1`")
                    continue
                values[arg.name] = literal.relation
    for name, relation in values.items():
        if count[name] > 1:
            why = f"`{name}`, a value of `{relation}`, is joined with another column, but may still grow"
            yield Misuse(rule, None, name, why, "give it a variable of its own, and combine both by a functor")
    grown = _made_of(rule, values)
    for literal in rule.body:
        yield from _lattice_use(rule, literal, grown)
    head = columns.get(rule.head.relation, set())
    for n, arg in enumerate(rule.head.args):
        used = [v.name for v in variables_of(arg) if v.name in grown]
        if used and n not in head:
            why = f"`{used[0]}`, a value of `{grown[used[0]]}`, is a key of the head, but may still grow"
            yield Misuse(rule, None, used[0], why, "use it in another relation, after the recursion")
        elif used and not _passes(arg):
            yield _computed(rule, None, arg, used[0])


def _made_of(rule: Rule, values: Mapping[str, str]) -> dict[str, str]:
    """The values, and the variables that equalities make of them."""
    out = dict(values)
    bound = {v.name for x in rule.body if isinstance(x, Atom) for a in x.args for v in variables_of(a)}
    for _ in rule.body:
        for x in rule.body:
            if not isinstance(x, Comparison) or x.op != "=":
                continue
            for one, other in ((x.left, x.right), (x.right, x.left)):
                if isinstance(one, Variable) and one.name not in bound and one.name not in out:
                    made_of = [out[v.name] for v in variables_of(other) if v.name in out]
                    if made_of:
                        out[one.name] = made_of[0]
    return out


def _lattice_use(rule: Rule, literal: Literal, grown: Mapping[str, str]) -> Iterator[Misuse]:
    used = [v.name for v in variables_of_literal(literal) if v.name in grown]
    if not used or isinstance(literal, Atom):
        return
    name = used[0]
    match literal:
        case Comparison("=", Variable(one), other) if one in grown and one not in _read(rule):
            if not _passes(other):
                yield _computed(rule, literal, other, name)
        case Comparison("=", other, Variable(one)) if one in grown and one not in _read(rule):
            if not _passes(other):
                yield _computed(rule, literal, other, name)
        case Comparison(left=left, right=right) if _is_test(left, right, grown) or _is_test(right, left, grown):
            pass
        case Comparison():
            why = f"`{literal}` may cease to hold when the value of `{grown[name]}` grows"
            yield Misuse(rule, literal, name, why, f"ask a functor: `@contains({name}, 1) = 1`")
        case Negation() | Aggregate() | Range():
            why = f"`{name}`, a value of `{grown[name]}`, is used in `{literal}`, but may still grow"
            yield Misuse(rule, literal, name, why, "use it in another relation, after the recursion")


def _read(rule: Rule) -> set[str]:
    return {v.name for x in rule.body if isinstance(x, Atom) for a in x.args for v in variables_of(a)}


def _passes(term: Term) -> bool:
    """Whether a term is a value, or a functor of the user applied to such terms."""
    match term:
        case Call(name=name, args=args):
            return name.startswith("@") and all(map(_passes, args))
        case _:
            return True


def _is_test(one: Term, other: Term, grown: Mapping[str, str]) -> bool:
    """Whether a functor of the user is compared with what does not grow."""
    asks = isinstance(one, Call) and one.name.startswith("@") and _passes(one)
    return asks and not any(v.name in grown for v in variables_of(other))


def _computed(rule: Rule, literal: Literal | None, term: Term, name: str) -> Misuse:
    why = f"`{term}` computes with a value of a lattice, whose order only its functors know"
    return Misuse(rule, literal, name, why, f"write a functor: `@f({name})`; `everlog check --try` tries it")

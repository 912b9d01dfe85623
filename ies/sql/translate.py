"""From terms of the calculus to SQL, by evaluating them symbolically.

A comprehension opens its generators and combines their tables and conditions; `exists`, `all`,
`in`, `subset` and equality of sets become [NOT] EXISTS; a conditional becomes CASE, or a condition
in each branch of a set; a function is inlined.  Σ adds over elements, not over rows: where two rows
of the tables may give one element, the query uses SELECT DISTINCT; where elements hold sets, only
the least row among those that give equal elements counts (rows of tables are ordered).

Source: Libkin and Wong, Section 2; Wong 1996 (normal forms).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import assert_never

from attrs import define, field

from everlog.ies.nrc import terms as nrc
from everlog.ies.nrc.terms import Definition, Pattern, Term
from everlog.ies.sql.errors import SqlError
from everlog.ies.sql.select import Queries, with_condition
from everlog.ies.sql.symbolic_values import (
    EMPTY,
    Branch,
    From,
    Scalar,
    SetVal,
    Tup,
    Val,
    as_set,
    conjunction,
    determined,
    disjunction,
    flat,
    like,
    mentioned,
    negation,
    scalar,
)

Environment = Mapping[str, Val]


@define(eq=False)
class Translator(Queries):
    """Writes terms in one dialect; `tables` maps the names of relations."""

    definitions: Mapping[str, Definition]
    tables: Environment = field(factory=dict, kw_only=True)

    # ── terms ────────────────────────────────────────────────────────────────────────────────────

    def value(self, term: Term, env: Environment) -> Val:
        match term:
            case nrc.Var(name):
                return env[name]
            case nrc.Const(value):
                return self.dialect.constant(value)
            case nrc.Tuple(parts):
                return Tup(tuple(self.value(part, env) for part in parts))
            case nrc.Project(of, index):
                whole = self.value(of, env)
                if not isinstance(whole, Tup):
                    raise SqlError(f"projection .{index} of what is no tuple; the system was not type-checked")
                return whole.parts[index - 1]
            case nrc.Empty():
                return EMPTY
            case nrc.Single(of):
                element = self.value(of, env)
                return SetVal(lambda: [Branch((), (), element)])
            case nrc.Union(left, right):
                both = self.set(left, env), self.set(right, env)
                return SetVal(lambda: [branch for one in both for branch in one.open()])
            case nrc.BigUnion(body, pattern, source):
                return self._union_over(body, pattern, self.set(source, env), env)
            case nrc.Sum(body, pattern, source):
                return self._total(body, (nrc.Generator(pattern, source),), env)
            case nrc.Equal(left, right):
                return self.equal(self.value(left, env), self.value(right, env))
            case nrc.If(condition, then, other):
                return self._choice(self.truth(condition, env), then, other, env)
            case nrc.Arith(op, left, right, modulus):
                a, b = scalar(self.value(left, env)), scalar(self.value(right, env))
                return self.dialect.arithmetic(op, a, b, modulus, self.in_trigger)
            case nrc.AtMost(left, right):
                return self.compared("<=", self.value(left, env), self.value(right, env))
            case _:
                return self._short(term, env)

    def _short(self, term: nrc.Short, env: Environment) -> Val:
        match term:
            case nrc.Comprehension(head, qualifiers):
                return SetVal(lambda: self.branches(head, qualifiers, env))
            case nrc.SumOf(head, qualifiers):
                return self._total(head, qualifiers, env)
            case nrc.Less(left, right):
                return self.compared("<", self.value(left, env), self.value(right, env))
            case nrc.Exists(qualifiers):
                return self.any_of(self.branches(nrc.Const(True), qualifiers, env))
            case nrc.ForAll(condition, qualifiers):
                return negation(
                    self.any_of(self.branches(nrc.Const(True), (*qualifiers, nrc.Not(condition)), env))
                )
            case nrc.In(element, of):
                return self.member(self.value(element, env), self.set(of, env))
            case nrc.Minus(left, right):
                return self._kept(self.set(left, env), self.set(right, env), negation)
            case nrc.Intersect(left, right):
                return self._kept(self.set(left, env), self.set(right, env), lambda found: found)
            case nrc.Subset(left, right):
                return self.subset(self.set(left, env), self.set(right, env))
            case nrc.And(left, right):
                return conjunction((self.truth(left, env), self.truth(right, env)))
            case nrc.Or(left, right):
                return disjunction((self.truth(left, env), self.truth(right, env)))
            case nrc.Not(of):
                return negation(self.truth(of, env))
            case nrc.Let(pattern, value, body):
                return self.value(body, self.bound(pattern, self.value(value, env), env))
            case nrc.Call(function, arguments):
                made = self.definitions[function]
                given = (self.value(argument, env) for argument in arguments)
                return self.value(made.body, {**self.tables, **dict(zip(made.parameters, given, strict=True))})
            case _:
                assert_never(term)

    def set(self, term: Term, env: Environment) -> SetVal:
        return as_set(self.value(term, env))

    def truth(self, term: Term, env: Environment) -> Scalar:
        return scalar(self.value(term, env))

    def bound(self, pattern: Pattern, value: Val, env: Environment) -> Environment:
        """The environment in which a pattern's names are bound to the parts of a value."""
        out = dict(env)

        def bind(pattern: Pattern, value: Val) -> None:
            match pattern:
                case nrc.Bind(name):
                    if name != "_":
                        out[name] = value
                case nrc.Parts(parts):
                    assert isinstance(value, Tup)
                    for part, inner in zip(parts, value.parts, strict=True):
                        bind(part, inner)

        bind(pattern, value)
        return out

    # ── sets ─────────────────────────────────────────────────────────────────────────────────────

    def branches(self, head: Term, qualifiers: Sequence[nrc.Qualifier], env: Environment) -> list[Branch]:
        """{head | qualifiers}, fused."""
        if not qualifiers:
            return [Branch((), (), self.value(head, env))]
        first, *rest = qualifiers
        if not isinstance(first, nrc.Generator):
            condition = self.truth(first, env)
            if condition.constant is False:
                return []
            return [with_condition(condition, branch) for branch in self.branches(head, rest, env)]
        return [
            Branch((*outer.froms, *inner.froms), (*outer.conditions, *inner.conditions), inner.head)
            for outer in self.set(first.source, env).open()
            for inner in self.branches(head, rest, self.bound(first.pattern, outer.head, env))
        ]

    def _union_over(self, body: Term, pattern: Pattern, source: SetVal, env: Environment) -> SetVal:
        def opened() -> list[Branch]:
            return [
                Branch((*outer.froms, *inner.froms), (*outer.conditions, *inner.conditions), inner.head)
                for outer in source.open()
                for inner in self.set(body, self.bound(pattern, outer.head, env)).open()
            ]

        return SetVal(opened)

    def _kept(self, left: SetVal, right: SetVal, test: Callable[[Scalar], Scalar]) -> SetVal:
        def opened() -> list[Branch]:
            each = ((branch, test(self.member(branch.head, right))) for branch in left.open())
            return [
                with_condition(condition, branch) for branch, condition in each if condition.constant is not False
            ]

        return SetVal(opened)

    def _choice(self, condition: Scalar, then: Term, other: Term, env: Environment) -> Val:
        if condition.constant is not None:
            return self.value(then if condition.constant else other, env)
        return self._chosen(condition, self.value(then, env), self.value(other, env))

    def _chosen(self, condition: Scalar, then: Val, other: Val) -> Val:
        match then, other:
            case Scalar(), Scalar():
                if then == other:
                    return then
                if then.kind == "bool":
                    yes = conjunction((condition, then))
                    return disjunction((yes, conjunction((negation(condition), other))))
                text = f"CASE WHEN {condition.text} THEN {then.text} ELSE {other.text} END"
                each = (condition, then, other)
                heavy, whole = any(one.heavy for one in each), then.whole and other.whole
                return Scalar(text, then.kind, columns=mentioned(each), heavy=heavy, whole=whole)
            case Tup(parts), Tup(others):
                return Tup(tuple(self._chosen(condition, a, b) for a, b in zip(parts, others, strict=True)))
            case SetVal(), SetVal():
                no = negation(condition)
                return SetVal(
                    lambda: (
                        [with_condition(condition, b) for b in then.open()]
                        + [with_condition(no, b) for b in other.open()]
                    )
                )
            case _:
                raise SqlError("the two sides of a conditional differ in type; the system was not type-checked")

    # ── Σ ────────────────────────────────────────────────────────────────────────────────────────

    def _total(self, head: Term, qualifiers: Sequence[nrc.Qualifier], env: Environment) -> Scalar:
        return self._sum(head, qualifiers, env, (), ())

    def _sum(
        self,
        head: Term,
        qualifiers: Sequence[nrc.Qualifier],
        env: Environment,
        froms: tuple[From, ...],
        conditions: tuple[Scalar, ...],
    ) -> Scalar:
        if not qualifiers:
            match head:
                case nrc.If(condition, then, nrc.Const(0)):
                    conditions = (*conditions, self.truth(condition, env))
                    return self._added(self.truth(then, env), froms, conditions)
                case _:
                    return self._added(self.truth(head, env), froms, conditions)
        first, *rest = qualifiers
        if not isinstance(first, nrc.Generator):
            return self._sum(head, rest, env, froms, (*conditions, self.truth(first, env)))
        source = self.set(first.source, env)
        branches = [branch for branch in source.open() if conjunction(branch.conditions).constant is not False]
        if not branches:
            return self.dialect.constant(0)
        if len(branches) == 1 and _one_row_each(branches[0]):
            (branch,) = branches
            inner = self.bound(first.pattern, branch.head, env)
            return self._sum(head, rest, inner, froms + branch.froms, conditions + branch.conditions)
        if all(flat(branch.head) is not None for branch in branches):
            derived, element = self._derived(branches)
            if not {alias for alias, _ in derived.free} & {one.alias for one in froms}:
                inner = self.bound(first.pattern, element, env)
                return self._sum(head, rest, inner, (*froms, derived), conditions)
        elif not froms and not conditions:
            out = self.dialect.constant(0)
            for number in range(len(branches)):
                branch = self._representative(source, number)
                inner = self.bound(first.pattern, branch.head, env)
                more = self._sum(head, rest, inner, branch.froms, branch.conditions)
                out = self.dialect.arithmetic("+", out, more, 0, self.in_trigger)
            return out
        # it depends on the current tables: the rest is a separate sum for each of their rows
        return self._added(self._sum(head, qualifiers, env, (), ()), froms, conditions)

    def _derived(self, branches: Sequence[Branch]) -> tuple[From, Val]:
        """The distinct elements of flat branches, as a query to range over."""
        width = len(flat(branches[0].head) or ())
        names = tuple(f"c{n}" for n in range(1, width + 1))
        text, free = self.select(branches, names)
        alias = self.fresh()
        kinds = tuple(one.kind for one in flat(branches[0].head) or ())
        element = like(branches[0].head, (self.cell(alias, n, kind) for n, kind in zip(names, kinds, strict=True)))
        return From(alias, f"({text})", names, kinds, free=free), element

    def _representative(self, source: SetVal, number: int) -> Branch:
        """One branch of a set, without rows whose element an earlier branch or row gives."""
        here = source.open()[number]
        conditions = list(here.conditions)
        for earlier, other in enumerate(source.open()[: number + 1]):
            same = with_condition(self.equal(other.head, here.head), other)
            if earlier == number:
                same = with_condition(self.before(other.froms, here.froms), same)
            conditions.append(negation(self.exists(same)))
        return Branch(here.froms, tuple(conditions), here.head)

    def _added(self, body: Scalar, froms: Sequence[From], conditions: Sequence[Scalar]) -> Scalar:
        """The sum of the body over the rows that satisfy the conditions."""
        where = conjunction(conditions)
        if where.constant is False or body.constant == 0:
            return self.dialect.constant(0)
        if not froms:
            return body if where.constant is True else scalar(self._chosen(where, body, self.dialect.constant(0)))
        rest, columns = self.clauses(froms, where)
        inner = {one.alias for one in froms}
        columns |= {column for column in body.columns if column[0] not in inner}
        if body.constant == 1:
            counted = "count(*)" if self.dialect.name != "postgres" else "count(*)::NUMERIC"
            return Scalar(f"(SELECT {counted}{rest})", "num", columns=columns, heavy=True)
        # The body needs a query of its own: a sum of outer columns only would belong to the outer
        # query.
        alias = self.fresh()
        text = f"(SELECT COALESCE(SUM({alias}.v), 0) FROM (SELECT {body.text} AS v{rest}) AS {alias})"
        return Scalar(text, "num", columns=columns, heavy=True, whole=body.whole)


def _one_row_each(branch: Branch) -> bool:
    """Whether each element of a branch comes from one row only."""
    where = conjunction(branch.conditions)
    return determined(branch.froms, where.parts or (where,), _columns_of(branch.head))


def _columns_of(value: Val) -> list[Scalar]:
    """The scalars of a value outside its sets."""
    match value:
        case Scalar():
            return [value]
        case Tup(parts):
            return [one for part in parts for one in _columns_of(part)]
        case SetVal():
            return []

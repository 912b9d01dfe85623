"""Which strategy keeps the join of a rule that is not recursive, and why.

| body | facts come and go | facts only come |
|---|---|---|
| hierarchical | view tree; below a sum delta, then the view tree (`auto`) | the same |
| acyclic or cyclic | delta, then the view with the smallest exponent (`auto`) | calibrated bags |

First-order delta needs no structure of its own, so it also serves where it does exactly what the
view tree would: two atoms, each of whose own variables is shown by the head.  Then every match of
an update is an answer that changes, and the indexes of the two atoms are the view tree.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from attrs import evolve, frozen

from everlog.core.classify.classes import is_hierarchical
from everlog.core.classify.query import Query, merged_variables, query_of
from everlog.core.joins.exponents import refuge_of, update_exponent
from everlog.core.joins.join_strategies import AUTO, CALIBRATED, DELTA, GENERATIONS, JOINS, NAIVE, VIEW_TREE
from everlog.core.joins.untold import Shown
from everlog.core.program import (
    Aggregate,
    Atom,
    Call,
    Comparison,
    Constant,
    Kind,
    Literal,
    Negation,
    Program,
    Rule,
    Term,
    Variable,
    atoms_of,
    variables_of,
    written_body,
)
from everlog.core.program.bodies import variables_of_literal

NOTHING_BETTER = "not hierarchical, and no view of the join has a smaller exponent than delta"


@frozen
class JoinChoice:
    """The strategy of one rule, and the reason for it; for a rule of `auto`, its moves so far."""

    strategy: str
    why: str
    moves: tuple[str, ...] = ()


@frozen
class Wanted:
    """What a rule wants of its join.

    For a sum, `rule` has 1 in the place of what is summed, which is a product of variables: a view
    with totals runs it.  For a mean, and for sums of `floats`, such a view gives the total and the
    number of what is `averaged`.  `refused` says why totals do not serve a sum or a mean.
    """

    rule: Rule
    shown: Shown
    summed: tuple[str, ...] = ()
    averaged: str = ""
    floats: bool = False
    refused: str = ""

    @property
    def adds_up(self) -> bool:
        """Whether totals serve it, and no value is needed by itself."""
        return bool(self.summed or self.averaged)


def wanted(rule: Rule, op: str = "", kind: Kind | None = None) -> Wanted:
    """For the derivations of facts, or for an aggregate `op` over the last column of the head.

    Counts, sums and means are linear: a view may give totals instead of values.  Products of floats
    are rounded one by one, so that no total of them follows from totals of their factors.

    >>> from everlog.core.program import Kind, Variable
    >>> a, x = Variable("a"), Variable("x")
    >>> rule = Rule(Atom("@sum", (a, x)), (Atom("r", (a,)), Atom("s", (a, x))))
    >>> found = wanted(rule, "sum", Kind.NUMBER)
    >>> print(found.rule.head, *found.summed, *found.shown.variables)
    @sum(a, 1) x a
    """
    query, summed = query_of(rule), tuple[str, ...]()
    whole, floats = kind in (Kind.NUMBER, Kind.UNSIGNED), kind is Kind.FLOAT
    averaged = refused = ""
    factors = factors_of(rule.head.args[-1]) if op in ("sum", "mean") and (whole or floats) else ()
    if floats and op in ("sum", "mean") and not factors:
        refused = "what is computed of floats is rounded for each match, so that totals do not serve it"
    if factors and set(factors) <= set(query.variables):
        counted = evolve(rule, head=evolve(rule.head, args=(*rule.head.args[:-1], Constant(1, Kind.NUMBER))))
        if not set(factors) & set(shown_variables(counted, query_of(counted))):  # no test above asks for them
            if op == "sum" and whole:
                summed, rule, query = factors, counted, query_of(counted)
            elif len(factors) == 1:
                averaged = factors[0]
    told = op == "count" or (op == "sum" and whole) or (not op and query.free == set(query.variables))
    told = told or bool(averaged)
    shown = Shown(frozenset(shown_variables(rule, query)) - {averaged}, told and shows_head_only(rule))
    return Wanted(rule, shown, summed, averaged, floats and bool(averaged), refused)


def factors_of(target: Term) -> tuple[str, ...]:
    """The variables of whole numbers whose product is a term; none if it is no such product.

    Products wrap to 64 bits, and so does their sum: it does not matter when.

    >>> x, y, number = Variable("x"), Variable("y"), (Kind.NUMBER, Kind.NUMBER)
    >>> factors_of(Call("*", (Call("*", (x, y), *number), x), *number))
    ('x', 'y', 'x')
    >>> factors_of(Call("+", (x, y), *number))
    ()
    """
    if isinstance(target, Variable):
        return (target.name,)
    if isinstance(target, Call) and target.name == "*" and target.kind in (Kind.NUMBER, Kind.UNSIGNED):
        parts = [factors_of(arg) for arg in target.args]
        return tuple(v for part in parts for v in part) if all(parts) else ()
    return ()


def choose(
    rule: Rule, program: Program, growing: Collection[str], wish: str = "", want: Wanted | None = None
) -> JoinChoice:
    """The strategy for a rule in normal form.  `growing` are the relations that lose no facts."""
    want = want or wanted(rule)
    found = _chosen(rule, program, growing, wish, want)
    if want.refused and not wish and len(query_of(rule).atoms) > 1:
        return evolve(found, why=f"{found.why}; {want.refused}")
    return found


def _chosen(rule: Rule, program: Program, growing: Collection[str], wish: str, want: Wanted) -> JoinChoice:
    if wish:
        return JoinChoice(wish, "asked for")
    if sum(isinstance(literal, Atom) for literal in rule.body) < 2:
        return JoinChoice(DELTA, "no join")
    query = query_of(rule)
    obstacle = structural_obstacle(rule, program)
    if obstacle:
        return JoinChoice(DELTA, obstacle)
    if is_hierarchical(query):
        if is_its_own_view_tree(rule, query):
            if want.adds_up and not JOINS[VIEW_TREE].refusal(query):
                return JoinChoice(AUTO, "hierarchical, and a sum, whose totals may be kept")
            return JoinChoice(DELTA, "hierarchical; of two atoms, the indexes of delta are the view tree")
        if update_exponent(DELTA, query, want.shown) == 0:
            return JoinChoice(DELTA, "hierarchical; each atom has all variables, so an update looks rows up")
        refusal = JOINS[VIEW_TREE].refusal(query)
        if refusal:
            return JoinChoice(DELTA, refusal)
        if want.summed:  # delta needs no structure for it, and is quicker while few matches change
            return JoinChoice(AUTO, "hierarchical, and a sum, whose totals may be kept")
        return JoinChoice(VIEW_TREE, "hierarchical")
    if all(atom.relation in growing for atom in query.atoms):
        refusal = JOINS[CALIBRATED].refusal(query)
        return JoinChoice(DELTA, refusal) if refusal else JoinChoice(CALIBRATED, "its facts only come")
    refuge = refuge_of(query, want.shown)
    if refuge == DELTA:
        return JoinChoice(DELTA, JOINS[GENERATIONS].refusal(query) or NOTHING_BETTER)
    if update_exponent(refuge, query, want.shown) > update_exponent(DELTA, query, want.shown):
        return JoinChoice(DELTA, NOTHING_BETTER)
    return JoinChoice(AUTO, "not hierarchical, and facts may go")


def refusal_of(rule: Rule, program: Program, wish: str) -> str:
    """Why a strategy for joins cannot keep a rule; nothing if it can."""
    if wish in (DELTA, NAIVE):
        return ""
    return structural_obstacle(rule, program) or JOINS[wish].refusal(query_of(rule))


def structural_obstacle(rule: Rule, program: Program) -> str:
    """Why no view of its join can keep a rule; nothing if one can."""
    positive = {literal.relation for literal in rule.body if isinstance(literal, Atom)}
    for literal in written_body(rule.body):
        match literal:
            case Atom(args=args) if any(isinstance(arg, Call) for arg in args):
                return f"`{literal}` computes an argument"
            case Negation() | Aggregate():
                for atom, _ in atoms_of((literal,)):
                    if atom.relation in positive:
                        return f"`{atom.relation}` is joined and also stands in `{literal}`"
            case _:
                pass
    for name in sorted(positive):
        if name in program.relations and program.relations[name].equivalence:
            return f"`{name}` is an equivalence relation, whose pairs are not stored one by one"
    if merged_variables(rule):
        return "an equality joins two of its variables"
    return ""


def is_its_own_view_tree(rule: Rule, query: Query) -> bool:
    """Whether every match that first-order delta finds is an answer that changes."""
    if len(query.atoms) > 2:
        return False
    one, other = (set(atom.variables) for atom in query.atoms)
    return one ^ other <= set(shown_variables(rule, query))


def selections(rule: Rule) -> dict[int, list[Comparison]]:
    """Comparisons of columns of one atom with constants, by the number of that atom.

    >>> from everlog.core.program import Constant, Kind, Variable
    >>> x, y = Variable("x"), Variable("y")
    >>> large = Comparison(">", y, Constant(7, Kind.NUMBER), Kind.NUMBER)
    >>> {n: [str(c) for c in found] for n, found in selections(
    ...     Rule(Atom("q", (x,)), (Atom("r", (x,)), Atom("s", (x, y)), large))).items()}
    {1: ['y > 7']}
    """
    scopes = [{v for a in x.args for v in variables_of(a)} for x in rule.body if isinstance(x, Atom)]
    found: dict[int, list[Comparison]] = {}
    for literal in rule.body:
        if isinstance(literal, Comparison) and _is_plain(literal):
            used = {side for side in (literal.left, literal.right) if isinstance(side, Variable)}
            home = next((number for number, scope in enumerate(scopes) if used and used <= scope), None)
            if home is not None:
                found.setdefault(home, []).append(literal)
    return found


def _is_plain(literal: Comparison) -> bool:
    """Whether a comparison computes nothing, and means the same in Python."""
    ops = {"=", "!="} if literal.kind is Kind.SYMBOL else {"=", "!=", "<", "<=", ">", ">="}
    sides = isinstance(literal.left, Variable | Constant) and isinstance(literal.right, Variable | Constant)
    return sides and literal.op in ops and literal.kind is not Kind.FLOAT


def above_the_join(rule: Rule) -> list[Literal]:
    """The literals of a body that are neither atoms nor selections from one."""
    selected = [literal for found in selections(rule).values() for literal in found]
    body = written_body(rule.body)
    return [x for x in body if not isinstance(x, Atom) and not any(x is s for s in selected)]


def shown_variables(rule: Rule, query: Query) -> tuple[str, ...]:
    """The variables of the join that the head or what stands above the join asks for."""
    above = {v.name for literal in above_the_join(rule) for v in variables_of_literal(literal)}
    return tuple(v for v in query.variables if v in query.free or v in above)


def shows_head_only(rule: Rule) -> bool:
    """Whether nothing stands above the join, and the head computes nothing."""
    return not above_the_join(rule) and not any(isinstance(arg, Call) for arg in rule.head.args)


def growing_relations(program: Program) -> frozenset[str]:
    """The relations that lose no facts.

    They are declared `.insert_only`, or derived from such relations without negation.  A user may
    still insert into a derived relation and delete again: that is kept up to date, but the promised
    cost does not cover it.
    """
    if not any(relation.insert_only for relation in program.relations.values()):
        return frozenset()
    readers: dict[str, list[Rule]] = {}
    derived: set[str] = set()
    for rule in program.rules:
        derived.add(rule.head.relation)
        for atom, _ in atoms_of(rule.body):
            readers.setdefault(atom.relation, []).append(rule)
    grows = derived | {name for name, relation in program.relations.items() if relation.insert_only}
    shrinking = {name for name, relation in program.relations.items() if relation.choices or name not in grows}
    shrinking |= {*program.limits, *(s.dominated.relation for s in program.subsumptions)}
    shrinking |= {rule.head.relation for rule in program.rules if not _only_adds(rule.body)}
    waiting = list(shrinking)
    while waiting:
        for rule in readers.get(waiting.pop(), ()):
            if rule.head.relation not in shrinking:
                shrinking.add(rule.head.relation)
                waiting.append(rule.head.relation)
    return frozenset(program.relations.keys() - shrinking)


def _only_adds(body: Iterable[Literal]) -> bool:
    return not any(isinstance(literal, Negation | Aggregate) for literal in body)

"""Checks the derivations that an engine names, without asking it for a proof.

`engine.check()` asserts that ranks and counts are right.  Here the last step of each fact is
verified: it is an instance of a rule, its body holds in the current state, and the fact does not
depend on itself.
"""

from __future__ import annotations

from typing import Any

from everlog.core.engine import Engine
from everlog.core.engine.keepers.flow.flowing import FlowKeeper
from everlog.core.engine.keepers.keeper import Keeper
from everlog.core.engine.keepers.recursive.ranked import RankedKeeper
from everlog.core.engine.keepers.recursive.ranked_python import PythonRankedKeeper
from everlog.core.engine.network import Network
from everlog.core.evaluate.reference import NaiveEvaluation
from everlog.core.program import Aggregate, Atom, Negation, Row, Rule, Variable

Fact = tuple[str, Row]


def assert_explained(engine: Engine) -> None:
    """Check that every fact of a recursive unit with ranks has a true, well-founded derivation."""
    network = engine._network
    naive = NaiveEvaluation(network.plan.program)
    for keeper in network.keepers:
        if isinstance(keeper, RankedKeeper | PythonRankedKeeper) and keeper.proven:
            used: dict[Fact, list[Fact]] = {}
            for name in keeper.relations:
                for row in list(keeper.store.tables[name].rows()):
                    used[name, row] = _used(network, naive, keeper, name, row)
            _assert_well_founded(used)
        elif isinstance(keeper, FlowKeeper):
            _assert_well_founded({(keeper.name, row): _way(keeper, row) for row in _rows(keeper)})


def _rows(keeper: FlowKeeper) -> list[Row]:
    return list(keeper.store.tables[keeper.name].rows())


def _way(keeper: FlowKeeper, row: Row) -> list[Fact]:
    """The predecessor of a fact on its path from the source, if it has one."""
    known = keeper.derivation_of(keeper.name, row) if row not in keeper.given[keeper.name] else None
    if known is None:
        assert row in keeper.given[keeper.name], f"{row} is not given"
        return []
    shape = keeper.shape
    node, element = row[shape.key], row[shape.value]
    tables = keeper.store.tables
    for source in keeper.sources:
        if source.rule == known[0]:
            copied = (node, element) if source.key == 0 else (element, node)
            assert copied in set(tables[source.relation].rows())
            return []
    (step,) = [step for step in keeper.steps if step.rule == known[0]]
    before = keeper._paths[element, node]
    assert ((before, node) if step.start == 0 else (node, before)) in set(tables[step.relation].rows())
    return [(keeper.name, shape.row(before, element))]


def _used(network: Network, naive: NaiveEvaluation, keeper: Keeper, name: str, row: Row) -> list[Fact]:
    """The facts of its own unit that the derivation of a fact used."""
    known = keeper.derivation_of(name, row)
    if known is None:
        assert row in keeper.given[name], f"{name}{row} has no derivation"
        return []
    rule = network.rules[known[0]]
    binding: dict[str, Any] = dict(known[1])
    binding |= {a.name: x for a, x in zip(rule.head.args, row, strict=True) if isinstance(a, Variable)}
    assert rule.head.relation == name, f"{name}{row} by {rule}"
    assert naive.row(rule.head.args, binding) == row, f"{name}{row} by {rule} with {binding}"
    return _body(network, naive, keeper, rule, binding)


def _body(
    network: Network, naive: NaiveEvaluation, keeper: Keeper, rule: Rule, binding: dict[str, Any]
) -> list[Fact]:
    used = []
    for literal in rule.body:
        match literal:
            case Atom(relation, args):
                fact = naive.row(args, binding)
                assert _has(network, relation, fact), f"{rule} used {relation}{fact}, which is not there"
                if relation in keeper.relations:
                    used.append((relation, fact))
            case Negation(Atom(relation, args)):
                fact = naive.row(args, binding)
                assert not _has(network, relation, fact), f"{rule} used that {relation}{fact} is not there"
            case Aggregate(result=result, outer=outer, op=op, body=(Atom(relation),)):
                group = tuple(binding[v.name] for v in outer)
                default = 0 if op in ("count", "sum") else None
                value = network.store.values[relation].get(group[0] if len(group) == 1 else group, default)
                assert value == binding[result.name], f"{rule} used {relation}{group} = {binding[result.name]}"
            case _:
                assert next(naive.matches(literal, binding), None) is not None, f"{literal} with {binding}"
    return used


def _has(network: Network, relation: str, row: Row) -> bool:
    return next(iter(_matching(network, relation, row)), None) is not None


def _matching(network: Network, relation: str, row: Row) -> list[Row]:
    table = network.store.tables[relation]
    return [row] if row in table else []


def _assert_well_founded(used: dict[Fact, list[Fact]]) -> None:
    """Every fact leads to facts that used none of their unit, and never to itself."""
    done: set[Fact] = set()
    for root in used:
        path: set[Fact] = set()
        stack: list[tuple[Fact, bool]] = [(root, False)]
        while stack:
            fact, leaving = stack.pop()
            if leaving:
                path.discard(fact)
                done.add(fact)
            elif fact not in done:
                assert fact not in path, f"{fact} is derived from itself"
                path.add(fact)
                stack.append((fact, True))
                stack += [(below, False) for below in used[fact]]

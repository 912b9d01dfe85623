"""Checks a proof: every step is an instance of its rule, every leaf is true.

The checker shares no code with the search.  It puts literals to the reference evaluator, with all
variables bound, over the present facts; so a proof that passes is valid, whatever code built it.
"""

from __future__ import annotations

from everlog.core.evaluate.reference import NaiveEvaluation
from everlog.core.program import Atom, Row, Wildcard, written_body
from everlog.core.program.bodies import Binding
from everlog.core.program.functors import COMPARISONS
from everlog.core.proofs.evidence import Evidence, draws
from everlog.core.proofs.proof import AUXILIARY, EQUIVALENCE, GIVEN, JOINED, RULE, Condition, Proof
from everlog.core.proofs.solve import names_in

same = COMPARISONS["="]


def verify(engine: Evidence, proof: Proof) -> None:
    """Assert that a proof proves its fact in the present state.

      V1  every fact is in its relation, or was dropped from one with subsumption;
      V2  a given fact is a base fact, one of an auxiliary relation is in it; neither has children;
      V3  a rule is of the program; its head under the binding is the fact, and the children are its
          body under the binding, literal by literal;
      V4  every other literal of that body is true;
      V5  the pairs below an equivalence lead from one side to the other;
      V6  no fact is needed for its own proof;
      V7  a joined fact is what the facts below it are, joined.

    Cost: linear in the proof, after grouping the facts of the relations that it reads.
    """
    checker = _Checker(engine)
    for one in proof.proofs():
        checker.node(one)
    _assert_acyclic(proof)


class _Checker(NaiveEvaluation):
    def __init__(self, engine: Evidence) -> None:
        super().__init__(engine.program)
        self._engine = engine
        self._loaded: set[str] = set()
        self._better = {subsumption.dominated.relation for subsumption in engine.program.subsumptions}
        self._better |= self.joined.keys()

    def grouped(self, name: str, columns: tuple[int, ...]) -> dict[Row, list[Row]]:
        if name not in self._loaded:
            self._loaded.add(name)
            self.facts[name] = list(self._engine.tables[name].rows())
        return super().grouped(name, columns)

    def is_there(self, relation: str, row: Row) -> bool:
        return row in self.grouped(relation, tuple(range(len(row))))

    def node(self, proof: Proof) -> None:
        there = self.is_there(proof.relation, proof.row)
        assert there is not proof.dropped, f"V1: {proof.fact}"
        assert there or proof.relation in self._better, f"V1: {proof.fact} is not there"
        if proof.reason == GIVEN:
            assert proof.row in self._engine.given(proof.relation), f"V2: {proof.fact} is not given"
            assert not proof.children, f"V2: {proof.fact}"
        elif proof.reason == AUXILIARY:
            assert self._engine.program.relations[proof.relation].auxiliary_of, (
                f"V2: {proof.fact} is no auxiliary fact"
            )
            assert not proof.children, f"V2: {proof.fact}"
        elif proof.reason == EQUIVALENCE:
            self.chain(proof)
        elif proof.reason == JOINED:
            parts = [child.row for child in proof.children if isinstance(child, Proof)]
            joined = self.joined[proof.relation]
            assert list(joined.facts(parts).values()) == [proof.row], f"V7: {proof.fact} is not joined of {parts}"
        else:
            assert proof.reason == RULE, f"V3: {proof.reason}"
            self.inference(proof)

    def inference(self, proof: Proof) -> None:
        rule, binding = proof.rule, dict(proof.binding)
        assert rule is not None, f"V3: {proof.fact} by no rule"
        assert rule in self.program.rules_of(proof.relation), f"V3: {rule}"
        for arg, value in zip(rule.head.args, proof.row, strict=True):
            assert draws((arg,)) or same(self.value(arg, binding), value), f"V3: {proof.fact} by {rule}"
        for literal, child in zip(written_body(rule.body), proof.children, strict=True):
            assert names_in(literal) <= binding.keys(), f"V3: not bound in {literal}"
            if isinstance(literal, Atom):
                assert isinstance(child, Proof), f"V3: no proof for {literal}"
                self.premise(literal, child, binding)
            else:
                assert isinstance(child, Condition), f"V4: {literal}"
                true = draws((), (literal,)) or next(self.matches(literal, binding), None) is not None
                assert true, f"V4: {literal} does not hold with {binding}"

    def premise(self, atom: Atom, child: Proof, binding: Binding) -> None:
        assert atom.relation == child.relation, f"V3: {child.fact} for {atom}"
        for arg, value in zip(atom.args, child.row, strict=True):
            if not isinstance(arg, Wildcard):
                assert same(self.value(arg, binding), value), f"V3: {child.fact} for {atom}"

    def chain(self, proof: Proof) -> None:
        assert self.program.relations[proof.relation].equivalence, f"V5: {proof.relation}"
        here, end = proof.row
        pairs = [child.row for child in proof.children if isinstance(child, Proof)]
        assert pairs, f"V5: {proof.fact} from nothing"
        if same(here, end):
            assert any(same(here, value) for value in pairs[0]), f"V5: {proof.fact}"
            return
        for child in proof.children:
            assert isinstance(child, Proof), f"V5: {proof.fact}"
            assert child.relation == proof.relation, f"V5: {proof.fact}"
            one, other = child.row
            assert same(here, one) or same(here, other), f"V5: {proof.fact} breaks at {child.fact}"
            here = other if same(here, one) else one
        assert same(here, end), f"V5: {proof.fact} ends at {here}"


def _assert_acyclic(root: Proof) -> None:
    """V6, by a walk with an explicit stack: facts could be circular, objects cannot."""
    on_path: set[tuple[str, Row]] = set()
    done: set[int] = set()
    stack: list[tuple[Proof, bool]] = [(root, False)]
    while stack:
        proof, leaving = stack.pop()
        fact = proof.relation, proof.row
        if leaving:
            on_path.discard(fact)
            done.add(id(proof))
        elif id(proof) not in done:
            assert fact not in on_path, f"V6: {proof.fact} is needed for itself"
            on_path.add(fact)
            stack.append((proof, True))
            stack.extend((child, False) for child in proof.children if isinstance(child, Proof))

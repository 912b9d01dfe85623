"""A proof: a fact, the rule and values that derive it, and proofs of its facts.

A fact has one proof within a proof, so what reads as a tree is a graph without cycles.  It is built
from the leaves up and never changed.  A chain of a hundred thousand facts is an ordinary proof, so
no function here is recursive.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from attrs import field, frozen

from everlog.core.program import Row, Rule, Value
from everlog.core.program.shown import shown_name
from everlog.core.proofs import render
from everlog.core.proofs.notation import rule_text

GIVEN, RULE, EQUIVALENCE, AUXILIARY = "given", "rule", "equivalence", "auxiliary"
JOINED = "joined"


class NotDerived(ValueError):
    """There is no proof, since the fact is not there.

    `ask` is what the user may ask instead, as it is written where the question came from.
    """

    def __init__(self, fact: str, ask: str = "why_not") -> None:
        self.fact = fact
        shown = fact if len(fact) <= 200 else f"{fact[:199]}…"
        super().__init__(f"{shown} is not there, so nothing proves it; `{ask}` says what is missing")


@frozen(eq=False)
class Condition:
    """What a rule needed besides facts: absence, comparison, range or aggregate.

    For an aggregate it has the number of matches, and some of them.
    """

    kind: str
    label: str
    matches: int | None = None
    samples: tuple[str, ...] = ()
    branches: tuple[render.Branch, ...] = field(default=(), init=False)

    @property
    def remark(self) -> str:
        if self.matches is None:
            return ""
        number = "1 match" if self.matches == 1 else f"{self.matches} matches"
        more = ("…",) if self.matches > len(self.samples) else ()
        return f"{number}: {'; '.join(self.samples + more)}" if self.samples else number

    def data(self) -> dict[str, object]:
        found: dict[str, object] = {"kind": self.kind, "text": self.label}
        if self.matches is None:
            return found
        return {**found, "matches": self.matches, "samples": list(self.samples)}


@frozen(eq=False, repr=False)
class Proof:
    """Why a fact is there.

    `reason` is `given` (a base fact), `rule` (an instance of `rule` under `binding`; `children` are
    the literals of its body, in order), `equivalence` (`children` are pairs that lead from one side
    to the other), `joined` (`children` are the facts of its key whose values were joined) or
    `auxiliary` (a system keeps the relation; its facts are not derived).  A `dropped` fact took
    part in deriving others before a better one replaced it.
    """

    relation: str
    row: Row
    fact: str
    reason: str = GIVEN
    rule: Rule | None = None
    binding: Mapping[str, Value] = field(factory=dict)
    children: tuple[Proof | Condition, ...] = ()
    dropped: bool = False

    def __repr__(self) -> str:
        return f"<Proof of {self.fact}, {self.reason if self.rule is None else self.rule.name or 'rule'}>"

    # ── walks ────────────────────────────────────────────────────────────────────────────────

    def proofs(self) -> Iterator[Proof]:
        """This proof and every other in it, once each."""
        return (branch for branch in render.graph_of(self) if isinstance(branch, Proof))

    def given(self) -> list[tuple[str, Row]]:
        """The base facts that this proof rests on."""
        return [(proof.relation, proof.row) for proof in self.proofs() if proof.reason == GIVEN]

    # ── how it is shown ──────────────────────────────────────────────────────────────────────

    @property
    def label(self) -> str:
        return self.fact

    @property
    def branches(self) -> tuple[Proof | Condition, ...]:
        return self.children

    @property
    def remark(self) -> str:
        if self.rule is not None:
            text = rule_text(self.rule)
        elif self.reason == EQUIVALENCE:
            text = f"{self.relation} is an equivalence"
        elif self.reason == JOINED:
            text = "joined of what was derived for its key"
        elif self.reason == AUXILIARY:
            text = "kept by a system of auxiliary relations"
        else:
            text = self.reason
        return f"{text}   (replaced since by a better fact)" if self.dropped else text

    def data(self) -> dict[str, object]:
        row = [render.json_value(value) for value in self.row]
        out: dict[str, object] = {"fact": self.fact, "relation": self.relation, "row": row, "reason": self.reason}
        if self.rule is not None:
            out["rule"] = rule_data(self.rule)
            out["binding"] = binding_data(self.binding)
        if self.dropped:
            out["dropped"] = True
        return out

    def text(self, depth: int | None = render.DEPTH, lines: int | None = render.LINES) -> str:
        """An indented tree, cut below `depth` and after `lines`."""
        return render.as_text(self, depth, lines)

    def to_json(self) -> dict[str, object]:
        """`{"root": 0, "nodes": […]}`: a node's children are ids."""
        return render.as_json(self)

    def to_dot(self) -> str:
        """A graph for Graphviz."""
        return render.as_dot(self, f"why {self.fact}")

    def __str__(self) -> str:
        return self.text()


def rule_data(rule: Rule) -> dict[str, object]:
    """A rule in JSON."""
    return {"name": rule.name, "text": rule.written, "file": rule.origin.file, "line": rule.origin.line}


def binding_data(binding: Mapping[str, Value]) -> dict[str, object]:
    """The variables that the author of a rule named, with their values."""
    named = {shown_name(name): render.json_value(value) for name, value in binding.items()}
    return {name: named[name] for name in sorted(named) if name != "_"}

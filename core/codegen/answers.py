"""Queries: a body as a generator, which yields its answers one by one.

What is good for a rule, whole sets at a time, is bad for whoever waits for the first answer.  So here
every variable is a loop: no set is made and no relation is projected before the first answer, and the
work between two answers is that of the nested loops between them.  The same answer may be yielded
several times; `may_repeat` says whether it can be.

Reads: core.codegen.rules.  Read by: core.engine.asking.
"""

from __future__ import annotations

from attrs import define

from everlog.core import program as p
from everlog.core.codegen.agenda import variables_of_literal
from everlog.core.codegen.rules import RuleWriter
from everlog.core.codegen.writer import tuple_text
from everlog.core.program import Atom, Constant, Literal, Rule, Variable, Wildcard
from everlog.core.tables import Columns

ASKED = "asked in "  # before a relation's name: an index that need not be there as a whole


def may_repeat(rule: Rule) -> bool:
    """Whether two ways to make the body hold may give the same answer.

    >>> x, y = Variable("x"), Variable("y")
    >>> head, body = Atom("q", (x,)), (Atom("e", (x, y)),)
    >>> may_repeat(Rule(head, body)), may_repeat(Rule(Atom("q", (y, x)), body))
    (True, False)
    """
    shown = set(rule.head.args)
    for literal in rule.body:
        if any(variable not in shown for variable in variables_of_literal(literal)):
            return True
        if isinstance(literal, Atom) and any(isinstance(arg, Wildcard) for arg in literal.args):
            return True
    return False


@define
class AnswerWriter(RuleWriter):
    """Writes a generator of answers."""

    def variables_to_keep(self, rule: Rule, body: list[Literal]) -> frozenset[Variable]:
        """All: a variable that vanishes does so in a union, which would be made at once."""
        return frozenset(v for x in body for v in variables_of_literal(x)) | super().variables_to_keep(rule, body)

    def emit_head(self, head: Atom) -> None:
        self.line(f"yield {tuple_text([self.expr(arg) for arg in head.args])}")

    def restricted(self, container: str, variable: Variable) -> str:
        return container

    def split(self, container: str) -> None:
        super().split(container)
        caller = self.pending[-1][2]
        call = caller[-1].lstrip()
        caller[-1] = f"{caller[-1][: -len(call)]}yield from {call}"

    def atom(self, atom: Atom) -> None:
        """A relation of which nothing is known yet is gone through as it is, with columns nobody asks for."""
        new = any(self.is_new(arg) for arg in atom.args)
        known = any(isinstance(arg, Constant | p.Call) or arg in self.bound for arg in atom.args)
        if new and not known:
            self.scan(atom)
        else:
            super().atom(atom)

    def index(self, relation: str, key: Columns, rest: Columns) -> str:
        """Indexes are asked for keys one by one, so that whoever binds the code may do without building them."""
        return super().index(ASKED + relation if key else relation, key, rest)

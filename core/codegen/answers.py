"""Queries: a body as a generator, which yields its answers one by one.

Whole sets at a time are fast for a rule, but delay the first answer of a query.  So here every
variable is a loop: no set is built and no relation is projected before the first answer, and the
work between two answers is that of the nested loops between them.  The same answer may be yielded
several times; `may_repeat` says whether it can be.
"""

from __future__ import annotations

from attrs import define

from everlog.core import program as p
from everlog.core.codegen.rule_code import RuleWriter, Yielding
from everlog.core.program import Atom, Constant, Rule, Wildcard
from everlog.core.program.bodies import variables_of_literal
from everlog.core.storage.shape import Columns

LAZY = "lazily "  # before the name of a relation: its index need not be there as a whole


def may_repeat(rule: Rule) -> bool:
    """Whether two ways to make the body hold may give the same answer.

    >>> x, y = p.Variable("x"), p.Variable("y")
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
class AnswerWriter(Yielding, RuleWriter):
    """Writes a generator of answers."""

    def atom(self, atom: Atom) -> None:
        """Scan a relation as it is stored while none of its columns is bound."""
        new = any(self.is_new(arg) for arg in atom.args)
        known = any(isinstance(arg, Constant | p.Call) or arg in self.bound for arg in atom.args)
        if new and not known:
            self.scan(atom)
        else:
            super().atom(atom)

    def index(self, relation: str, key: Columns, rest: Columns) -> str:
        """Mark an index that is asked key by key: the binder may do without building it."""
        return super().index(LAZY + relation if key else relation, key, rest)

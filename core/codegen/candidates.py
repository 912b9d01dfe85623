"""Rules that offer values to a map: of several candidates for a key the best one counts.

The head of such a rule is `(value, key…)`.  `_new` is a dict, and each derivation leaves in it the
best value so far of its key, so a rule that derives a key many times returns it once.
"""

from __future__ import annotations

from typing import Any

from attrs import define

from everlog.core.codegen.derivations import LivingWriter
from everlog.core.codegen.rule_code import RuleWriter
from everlog.core.codegen.writer import key_text, tuple_text
from everlog.core.program import Atom


class _Offers:
    """Writes the head of a rule that offers values."""

    better = "<"

    def emit_head(self: Any, head: Atom) -> None:
        self.line(f"_v = {self.expr(head.args[0])}")
        self.line(f"_k = {key_text([self.expr(arg) for arg in head.args[1:]])}")
        self.line("_a = _new.get(_k)")
        self.line(f"if _a is None or _v {self.better} _a or _v != _v: _new[_k] = _v")


@define
class LeastWriter(_Offers, RuleWriter):
    """Least candidates, in an evaluation of the whole program."""


@define
class GreatestWriter(_Offers, RuleWriter):
    """Greatest candidates, in an evaluation of the whole program."""

    better = ">"


@define
class LivingLeastWriter(_Offers, LivingWriter):
    """Least candidates, in a living program."""


@define
class LivingGreatestWriter(_Offers, LivingWriter):
    """Greatest candidates, in a living program."""

    better = ">"


class _Rows:
    """Writes the head of a rule that derives rows."""

    def emit_head(self: Any, head: Atom) -> None:
        self.line(f"_new.add({tuple_text([self.expr(arg) for arg in head.args])})")


@define
class RowWriter(_Rows, RuleWriter):
    """`_new` is a set of rows, in an evaluation of the whole program."""


@define
class LivingRowWriter(_Rows, LivingWriter):
    """`_new` is a set of rows, one for each derivation that the head tells apart."""

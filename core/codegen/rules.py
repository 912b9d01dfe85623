"""Rules: the body, then the head at the bottom; and aggregates, which are bodies with a sum.

Reads: core.codegen.joins, core.codegen.body.  Read by: core.seminaive.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from itertools import product
from typing import Any

from attrs import define

from everlog.core import program as p
from everlog.core.codegen.agenda import variables_of_literal
from everlog.core.codegen.body import aggregated_sets, delta_position, set_variables, without_calls
from everlog.core.codegen.joins import JoinWriter
from everlog.core.codegen.writer import Compiled, NoSet, one_line, tuple_text
from everlog.core.program import (
    Aggregate,
    Atom,
    Literal,
    Rule,
)
from everlog.core.tables import Shape


def compile_rule(
    rule: Rule,
    delta: int | None,
    shapes: Mapping[str, Shape],
    sizes: Mapping[str, int],
    functors: Mapping[str, p.Functor],
    writer: Callable[..., RuleWriter] | None = None,
    sets: bool = True,
    known: bool = False,
) -> Compiled:
    """The function that derives `rule`; with `delta` the body atom at that position reads Δ.

    `writer` says what becomes of a derivation (see `core.codegen.derivations`); by default its
    fact is added to a set.  Without `sets` no variable is one: better where Δ has few facts of a key.  With
    `known`, sets of facts are left out that the head's relation has: most of what a recursion derives.
    """
    body = without_calls(rule.body)
    make = writer or RuleWriter
    candidates = set_variables(rule, body, delta, shapes) if sets else []
    for candidate in [*candidates, None]:
        try:
            return make(shapes, sizes, functors, candidate, known=known).rule(rule, body, delta)
        except NoSet:
            continue
    raise AssertionError("a rule without set variable always compiles")


def compile_late(
    rule: Rule,
    delta: int,
    shapes: Mapping[str, Shape],
    sizes: Mapping[str, int],
    functors: Mapping[str, p.Functor],
    known: bool,
) -> Compiled | None:
    """The function that derives `rule` from another atom than Δ, by one union of fans of Δ each time.

    Where Δ has many keys those are fewer and larger operations: `points_to(v, o) :- load(v, p), points_to(p, q),
    Δ(q, o)` is one union for each load.  None if the rule has no such form.
    """
    body = without_calls(rule.body)
    position = delta_position(rule.body, body, delta)
    assert position is not None
    atom = body[position]
    if not isinstance(atom, Atom) or sum(literal is atom for literal in body) > 1:
        return None
    for candidate, turned in product(set_variables(rule, body, None, shapes), (True, False)):
        try:
            writer = RuleWriter(shapes, sizes, functors, candidate, known=known, late=atom, turned=turned)
            found = writer.rule(rule, body, delta)
        except NoSet:
            continue
        unions, scans = "_fans(_delta, " in found.source, found.source.count(".items():")
        if found.driver is not None and unions and scans == 1:
            return found
    return None


@define
class RuleWriter(JoinWriter):
    """Writes rules and aggregates."""

    def rule(self, rule: Rule, body: list[Literal], delta: int | None) -> Compiled:
        position = delta_position(rule.body, body, delta)
        self.kept = self.variables_to_keep(rule, body)
        self.join(body, position, lambda: self.emit_head(rule.head))
        name = re.sub(r"\W", "_", rule.name or rule.head.relation) + ("" if delta is None else f"_delta{delta}")
        return self.finish(rule, name, delta)

    def variables_to_keep(self, rule: Rule, body: list[Literal]) -> frozenset[p.Variable]:
        """What the head needs; any other variable may vanish in a union of sets."""
        return frozenset(v for arg in rule.head.args for v in p.variables_of(arg))

    def finish(self, rule: Rule, name: str, delta: int | None) -> Compiled:
        order = list(self.accesses.values())
        version = "" if delta is None else f"   Δ at body atom {delta + 1}"
        text = [f"def make({', '.join(order)}):", f"    # {one_line(str(rule))}{version}"]
        text += self.helpers
        text += [f"    def {name}(_delta, _new):", *(f"    {line}" for line in self.lines), f"    return {name}"]
        source = "\n".join(text)
        scope: dict[str, Any] = dict(self.expressions.scope)
        exec(compile(source, f"<rule {rule.name}>", "exec"), scope)  # our own text, made above
        name = self.driver.partition(".")[0]
        driver = order.index(name) if self.late is not None and name in order else None
        from_delta = re.match(r"    for .* in _delta\b", self.lines[0]) is not None
        return Compiled(source, tuple(self.accesses), scope["make"], driver, self.only_new, from_delta)

    # ── heads ────────────────────────────────────────────────────────────────────────────────

    def emit_head(self, head: Atom) -> None:
        shape = self.shapes[head.relation]
        if self.set_variable is not None:
            self.emit_set(head, shape)
            return
        values = [self.expr(a) for a in head.args]
        self.emit_row(shape, values)

    def emit_row(self, shape: Shape, values: list[str]) -> None:
        if shape.arity != 2:
            value = values[0] if shape.arity == 1 else tuple_text(values)
            if not self.emit_comprehension(value):
                self.line(f"_new.add({value})")
        else:
            key, fan = values[shape.key], values[shape.fan]
            self.line(f"_k = {key}")
            self.line("_a = _new.get(_k)")
            self.line(f"if _a is None: _new[_k] = {{{fan}}}")
            self.line(f"else: _a.add({fan})")

    def emit_comprehension(self, value: str, into: str = "_new.update") -> bool:
        """The innermost loop, with nothing but tests in it, as one comprehension: twice as fast."""
        found = self.innermost_loop()
        if found is not None:
            header, tests = found
            self.line(f"{into}([{value} {header}{''.join(tests)}])")
        return found is not None

    def innermost_loop(self) -> tuple[str, list[str]] | None:
        """The header of a loop that has nothing but tests in it, and those, taken back; None if there is none."""
        indent = "    " * self.depth
        at = len(self.lines)
        tests: list[str] = []
        while at and (found := re.fullmatch(rf"{indent}if not \((.*)\): continue", self.lines[at - 1])):
            tests.insert(0, f" if {found[1]}")
            at -= 1
        header = re.fullmatch(r"    +(for .* in .*):", self.lines[at - 1]) if at and self.depth > 1 else None
        if header is None or self.lines[at - 1].startswith(indent) or ":=" in header[1]:
            return None
        del self.lines[at - 1 :]
        self.depth -= 1
        return header[1], tests

    def emit_set(self, head: Atom, shape: Shape) -> None:
        variable = self.set_variable
        assert variable is not None
        if variable not in head.args:  # only whether there is a value matters
            self.any_value()
            self.emit_row(shape, [self.expr(a) for a in head.args])
            return
        known = self.known and shape.arity == 2
        values = self.intersection() if known else self.single_set()
        if shape.arity == 1:
            self.line(f"_new |= {values}")
        elif shape.arity == 2:
            self.line(f"_k = {self.expr(head.args[shape.key])}")
            new = self.owned(values)
            if known:
                there = self.index(head.relation, (shape.key,), (shape.fan,))
                self.line(f"_f = {there}.get(_k)")
                self.line(f"_n = {new} if _f is None else {values} - _f")
                if self.dropped:
                    self.line(f"_n.discard({self.dropped})")
                self.line(f"if not _n: {self.skip}")
                new = values = "_n"
                self.only_new = True
            self.line("_a = _new.get(_k)")
            self.line(f"if _a is None: _new[_k] = {new}")
            self.line(f"else: _a |= {values}")
        else:
            columns = [values if a == variable else f"({self.expr(a)},)" for a in head.args]
            self.take_loop_into(columns)
            self.line(f"_new.update(_product({', '.join(columns)}))")

    def take_loop_into(self, columns: list[str]) -> None:
        """A loop over the values of a column, with nothing in it, becomes a factor of the product of columns."""
        found = re.fullmatch(r" +for (\w+) in (.*):", self.lines[-1]) if self.loops else None
        if found is None or columns.count(f"({found[1]},)") != 1:
            return
        place = columns.index(f"({found[1]},)")
        if self.is_free_of_loop(" ".join(columns[:place] + columns[place + 1 :])):
            self.leave_loop()
            columns[place] = found[2]

    def any_value(self) -> None:
        """Go on only where the sets have a value in common."""
        if len(self.sets) == 2 and not self.dropped:
            self.line(f"if {self.sets[0]}.isdisjoint({self.sets[1]}): {self.skip}")
        else:
            self.single_set()

    # ── aggregates ───────────────────────────────────────────────────────────────────────────

    def aggregate(self, literal: Aggregate) -> None:
        """A call of the function that computes the aggregate for the outer variables, remembered."""
        function = f"_agg{self.expressions.number()}"
        self.helpers += self.aggregate_function(function, literal)
        arguments = ", ".join(self.bound[v] for v in literal.outer)
        if literal.result in self.bound:
            value = self.temporary()
            self.line(f"{value} = {function}({arguments})")
            self.test(f"{value} is not None and {value} == {self.bound[literal.result]}")
        else:
            name = self.name(literal.result)
            self.line(f"{name} = {function}({arguments})")
            self.line(f"if {name} is None: {self.skip}")
            self.bound[literal.result] = name

    def aggregate_function(self, function: str, literal: Aggregate) -> list[str]:
        body = without_calls(literal.body)
        for candidate in [*aggregated_sets(literal, body), None]:
            inner = RuleWriter(self.shapes, self.sizes, self.functors, candidate)
            inner.accesses, inner.expressions = self.accesses.copy(), self.expressions
            inner.kept = frozenset(v for x in body for v in variables_of_literal(x))  # all of them count
            parameters = []
            for variable in literal.outer:
                inner.bound[variable] = inner.name(variable)
                parameters.append(inner.bound[variable])
            try:
                inner.join(body, None, lambda inner=inner: inner.accumulate(literal))  # type: ignore[misc]
            except NoSet:
                continue
            self.accesses.update(inner.accesses)
            return inner.aggregate_text(function, parameters, literal)
        raise AssertionError("an aggregate without set variable always compiles")

    def aggregate_text(self, function: str, parameters: list[str], literal: Aggregate) -> list[str]:
        key = parameters[0] if len(parameters) == 1 else tuple_text(parameters)
        text = [f"    # {one_line(str(literal))}", f"    {function}_known = {{}}"]
        text += self.helpers
        text += [f"    def {function}_run(_new{''.join(', ' + x for x in parameters)}):"]
        text += [f"    {line}" for line in self.lines]
        text += [
            f"    def {function}({', '.join(parameters)}):",
            f"        _v = {function}_known.get({key}, _MISSING)",
            "        if _v is _MISSING:",
            "            _new = []",
            f"            {function}_run(_new{''.join(', ' + x for x in parameters)})",
            f"            _v = {function}_known[{key}] = _total_{literal.op}_{literal.kind}(_new)",
            "        return _v",
        ]
        return text

    def number_of_turns(self) -> str:
        """How often the innermost loop comes to its bottom: where it has no tests it need not be run."""
        header, tests = self.innermost_loop() or ("", [])
        container = header.partition(" in ")[2]
        if not header:
            return "1"
        if tests or container.startswith("_range("):
            return f"_sum([1 {header}{''.join(tests)}])"
        return f"_len({container})"

    def accumulate(self, literal: Aggregate) -> None:
        """At the bottom of an aggregate's body: note the value, or the whole set, of its target."""
        if literal.op == "count":
            if self.set_variable is not None:
                self.line(f"_new.append(_len({self.single_set()}))")
            else:
                self.line(f"_new.append({self.number_of_turns()})")
            return
        assert literal.target is not None
        if self.set_variable is None:
            value = self.expr(literal.target)
            if not self.emit_comprehension(value, "_new.extend"):
                self.line(f"_new.append({value})")
        else:
            self.line(f"_new.extend({self.single_set()})")

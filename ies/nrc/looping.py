"""Comprehensions, sums and quantifiers as loops.

A comprehension becomes nested loops that add to one set; a sum, loops that add up; `exists`, loops
that stop.  A generator with keys looks its elements up: in the set itself if all parts are known,
or in an index.  Two forms of sums and quantifiers compare with an order; a minimum and a sorted
list answer them.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager

from everlog.ies.nrc import terms as t
from everlog.ies.nrc.code_writer import Frames, Known, Lines, Scope
from everlog.ies.nrc.indexes import Path
from everlog.ies.nrc.loops import Step, conditions, flat, leaf_names, leaves, planned
from everlog.ies.nrc.term_analysis import KEPT
from everlog.ies.nrc.walk import names

MAX_LOOPS = 14  # Python allows 20 nested blocks in a function


class Looping(Frames):
    """Code for constructs that run over sets."""

    @abstractmethod
    def let(self, pattern: t.Pattern, value: t.Term, body: t.Term, scope: Scope) -> Scope:
        """The scope of the body of a `let`."""

    @abstractmethod
    def call(self, term: t.Call, scope: Scope) -> AbstractContextManager[tuple[t.Term, Scope]]:
        """The body of a function, with its parameters bound."""

    # ── sets, sums, quantifiers ──────────────────────────────────────────────────────────────

    def collected(self, term: t.Term, scope: Scope) -> str:
        found = self.fresh("s")
        self.put(f"{found} = set()")
        self.collect(found, term, scope, placed=True)
        return f"frozenset({found})"

    def collect(self, found: str, term: t.Term, scope: Scope, placed: bool = False) -> None:
        """Add the elements of a set to the set under construction."""
        if not placed and (kept := self.kept(term, scope)) is not None:
            self.put(f"{found} |= {kept}")
            return
        match term:
            case t.Empty():
                pass
            case t.Single(of):
                self.put(f"{found}.add({self.value(of, scope)})")
            case t.Union(left, right):
                self.collect(found, left, scope)
                self.collect(found, right, scope)
            case t.BigUnion() | t.Comprehension():
                qualifiers, leaf = _unnested(term, t.Empty)
                steps = planned(qualifiers, self.facts)
                self._loops(steps, scope, lambda inner: self.collect(found, leaf, inner), found)
            case t.If(condition, then, other):
                with self.block(f"if {self.value(condition, scope)}:"):
                    self.collect(found, then, scope)
                if not isinstance(other, t.Empty):
                    with self.block("else:"):
                        self.collect(found, other, scope)
            case t.Let(pattern, value, body):
                self.collect(found, body, self.let(pattern, value, body, scope))
            case t.Call():
                with self.call(term, scope) as (body, inner):
                    self.collect(found, body, inner)
            case _:
                self.put(f"{found} |= {self.value(term, scope)}")

    def summed(self, term: t.Term, scope: Scope) -> str:
        match term:
            case t.Sum(t.Const(1), _, source):
                return f"len({self.value(source, scope)})"
        qualifiers, leaf = _unnested(term, None)
        if (below := self._below(qualifiers, leaf, scope)) is not None:
            return below
        found = self.fresh("n")
        self.put(f"{found} = 0")
        steps = planned(qualifiers, self.facts)
        self._loops(steps, scope, lambda inner: self.put(f"{found} += {self.value(leaf, inner)}"), found)
        return f"({found} if {found}.__class__ is int else plain({found}))"

    def exists(self, term: t.Term, scope: Scope) -> str:
        """Whether a set has an element."""
        found = self.fresh("b")
        self.put(f"{found} = False")
        self._seek(found, term, scope)
        return found

    def _seek(self, found: str, term: t.Term, scope: Scope) -> None:
        match term:
            case t.Empty():
                return
            case t.Single(of) if self.facts.total(of):
                self.put(f"{found} = True")
            case t.Union(left, right):
                self._seek(found, left, scope)
                with self.block(f"if not {found}:"):
                    self._seek(found, right, scope)
            case t.If(condition, then, other):
                with self.block(f"if {self.value(condition, scope)}:"):
                    self._seek(found, then, scope)
                with self.block("else:"):
                    self._seek(found, other, scope)
            case t.BigUnion() | t.Comprehension() if self.kept(term, scope) is None:
                qualifiers, leaf = _unnested(term, t.Empty)
                steps = planned(qualifiers, self.facts)
                self._loops(steps, scope, lambda inner: self._seek(found, leaf, inner), found, until=True)
            case _:
                self.put(f"{found} = bool({self.value(term, scope)})")

    # ── loops ────────────────────────────────────────────────────────────────────────────────

    def _loops(
        self, steps: list[Step], scope: Scope, leaf: Callable[[Scope], None], found: str, until: bool = False
    ) -> None:
        """Nested loops that change `found`; with `until`, they end when it is true."""
        if not steps:
            leaf(scope)
            return
        if self.levels[-1].loops >= MAX_LOOPS:  # continue in a function
            name = self.fresh("f")
            rest_of_them: Lines = []
            self.body += [f"def {name}():", rest_of_them, f"{name}()"]
            with self.deeper(rest_of_them, 0):
                self.put(f"nonlocal {found}")
                self._loops(steps, scope, leaf, found, until)
            return
        step, rest = steps[0], steps[1:]
        if step.generator is None:
            assert step.condition is not None
            with self.block(f"if {self.value(step.condition, scope)}:"):
                self._loops(rest, scope, leaf, found, until)
            return
        pattern, source = step.generator.pattern, step.generator.source
        if isinstance(source, t.Single):
            self._bound_once(step, source.of, scope, lambda inner: self._loops(rest, inner, leaf, found, until))
            return
        known = {path: self.named(term, scope) for path, term in step.keys}
        keys = {path: value.code for path, value in known.items()}
        if keys and keys.keys() == set(leaves(pattern)) and self._is_ready(source, scope):
            with self.block(f"if {_tuple_of(pattern, (), keys)} in {self.value(source, scope)}:"):
                inner = {**scope, **{name: known[path] for name, path in leaf_names(pattern)}}
                self._loops(rest, inner, leaf, found, until)
            return
        over, tests = self._over(step, keys, scope)
        bound = {name: self.fresh(_letters(name)) for name, _ in leaf_names(pattern)}
        header = f"for {_target(pattern, bound)} in {over}:"
        inside: Lines = []
        self.body += [header, inside]
        with self.deeper(inside, self.levels[-1].loops + 1):
            inner = {**scope, **{name: Known(code, self.level) for name, code in bound.items()}}
            for test in tests:
                self.put(f"if {_tuple_at(test[0], pattern, bound)} != {test[1]}: continue")
            self._loops(rest, inner, leaf, found, until)
            if until:
                self.put(f"if {found}: break")

    def _is_ready(self, source: t.Term, scope: Scope) -> bool:
        """Whether a set exists already, or is built once for many lookups."""
        return isinstance(source, t.Var) or (isinstance(source, KEPT) and self.again(self.depends(source, scope)))

    def _bound_once(self, step: Step, value: t.Term, scope: Scope, go_on: Callable[[Scope], None]) -> None:
        """Bind the element of a one-element set, instead of a loop."""
        assert step.generator is not None
        known = self.named(value, scope)
        bound = projected(step.generator.pattern, known)
        tests = [f"{_at(known.code, path)} == {self.named(term, scope).code}" for path, term in step.keys]
        if tests:
            with self.block(f"if {' and '.join(tests)}:"):
                go_on({**scope, **bound})
        else:
            go_on({**scope, **bound})

    def _over(self, step: Step, keys: dict[Path, str], scope: Scope) -> tuple[str, list[tuple[Path, str]]]:
        """The set that a loop runs over, and the keys that it must test itself."""
        assert step.generator is not None
        source = step.generator.source
        if not keys:
            return self.value(source, scope), []
        home = self.depends(source, scope)
        paths = tuple(keys)
        key = keys[paths[0]] if len(keys) == 1 else f"({', '.join(keys.values())})"
        if self.again(home):
            made = self.shared(source, scope, f"index {paths}", lambda code: f"index({code}, {paths!r})")
            return f"{made}.get({key}, ())", []
        if isinstance(source, t.Var) and home == 0:
            return f"probe({self.value(source, scope)}, {paths!r}, {key})", []
        return self.value(source, scope), list(keys.items())

    # ── order ────────────────────────────────────────────────────────────────────────────────

    def extreme(self, condition: t.Term, qualifiers: tuple[t.Qualifier, ...], scope: Scope) -> str | None:
        """all{ e <= f | … } with a fixed e: compare e with the least f, which is cached."""
        if not isinstance(condition, (t.AtMost, t.Less)):
            return None
        sign = "<=" if isinstance(condition, t.AtMost) else "<"
        bound = {name for q in qualifiers if isinstance(q, t.Generator) for name in names(q.pattern)}
        for fixed, running, take in (
            (condition.left, condition.right, "min"),
            (condition.right, condition.left, "max"),
        ):
            all_of_them = self._once(t.Comprehension(running, qualifiers), scope)
            if bound & self.facts.free(fixed) or all_of_them is None or not self.facts.total(fixed):
                continue
            made = f"{take}({{}}, default={'INFINITE' if take == 'min' else '-INFINITE'})"
            extreme = self.shared(all_of_them, scope, take, made.format)
            sides = (self.value(fixed, scope), extreme)
            return f"({sides[0]} {sign} {sides[1]})" if take == "min" else f"({sides[1]} {sign} {sides[0]})"
        return None

    def _below(self, qualifiers: list[t.Qualifier], leaf: t.Term, scope: Scope) -> str | None:
        """sum{| 1 | y in S, y < e |}, a rank: a search in the sorted S, which is cached."""
        match qualifiers, leaf:
            case [t.Generator(t.Bind(name), source), t.Less() | t.AtMost() as test], t.Const(1):
                pass
            case _:
                return None
        running = t.Var(name)
        fixed = test.right if test.left == running else test.left
        if running not in (test.left, test.right) or name in self.facts.free(fixed):
            return None
        if not isinstance(source, t.Var) and not isinstance(source, KEPT):
            return None
        if not self.again(self.depends(source, scope)) or not self.facts.total(source):
            return None
        ordered = self.shared(source, scope, "sorted", lambda code: f"sorted({code})")
        left_side = isinstance(test, t.Less) == (test.left == running)
        count = f"{'bisect_left' if left_side else 'bisect_right'}({ordered}, {self.value(fixed, scope)})"
        return count if test.left == running else f"(len({ordered}) - {count})"

    def _once(self, term: t.Term, scope: Scope) -> t.Term | None:
        """A set that is worth caching and always defined; if copied, its source."""
        if not self.again(self.depends(term, scope)) or not self.facts.total(term):
            return None
        match term:
            case t.Comprehension(t.Var(name), (t.Generator(t.Bind(same), source),)) if name == same:
                return source
            case _:
                return term


def _unnested(term: t.Term, nothing: type[t.Empty] | None) -> tuple[list[t.Qualifier], t.Term]:
    """The qualifiers of nested comprehensions in one list, and the innermost term.

    It covers unions of unions, sums of sums, and conditionals whose other branch is empty.
    """
    found: list[t.Qualifier] = []
    while True:
        match term:
            case t.Comprehension(head, qualifiers):
                return found + flat(qualifiers), t.Single(head)
            case t.BigUnion(body, pattern, source) if nothing is not None:
                found.append(t.Generator(pattern, source))
                term = body
            case t.Sum(body, pattern, source) if nothing is None:
                found.append(t.Generator(pattern, source))
                term = body
            case t.SumOf(head, qualifiers) if nothing is None:
                found += flat(qualifiers)
                term = head
            case t.If(condition, then, t.Empty()) if nothing is not None:
                found += conditions(condition)
                term = then
            case t.If(condition, then, t.Const(value)) if nothing is None and value == 0:
                found += conditions(condition)
                term = then
            case _:
                return found, term


def _letters(name: str) -> str:
    return "".join(char for char in name if char.isalnum()) + "_"


def _at(code: str, path: Path) -> str:
    return code + "".join(f"[{index}]" for index in path)


def projected(pattern: t.Pattern, known: Known) -> dict[str, Known]:
    return {name: Known(_at(known.code, path), known.level) for name, path in leaf_names(pattern)}


def _tuple_of(pattern: t.Pattern, path: Path, keys: Mapping[Path, str]) -> str:
    match pattern:
        case t.Bind():
            return keys[path]
        case t.Parts(parts):
            return f"({', '.join(_tuple_of(part, (*path, i), keys) for i, part in enumerate(parts))})"


def _target(pattern: t.Pattern, bound: Mapping[str, str]) -> str:
    match pattern:
        case t.Bind("_"):
            return "_"
        case t.Bind(name):
            return bound[name]
        case t.Parts(parts):
            return f"({', '.join(_target(part, bound) for part in parts)})"


def _tuple_at(path: Path, pattern: t.Pattern, bound: Mapping[str, str]) -> str:
    """The code of the part at a path of the element that a pattern matches."""
    match pattern:
        case t.Bind(name):
            return _at(bound[name], path)
        case t.Parts(parts):
            return _tuple_at(path[1:], parts[path[0]], bound)

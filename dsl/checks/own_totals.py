"""Sums and counts that read their own recursion: `owns(x, z, sum(p)) :- owns(x, y, s), s > 50, …`

Such a sum may only be compared as it grows.  So what a rule needs to know of it is whether its
tests hold, and that becomes a relation, which the rule reads instead:

    owns(x, z, sum(p)) :- owns(x, y, s), s > 50, share(y, z, p).
        becomes  owns.enough(x, y) :- owns(x, y, s), s > 50.
                 owns(x, z, sum(p)) :- owns.enough(x, y), share(y, z, p).

A key has one sum, so the rule has as many derivations as before.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import count

from attrs import define, evolve, field

from everlog.dsl import ast
from everlog.dsl.checks.clauses import FlatClause, flat_clause, fresh
from everlog.dsl.checks.declarations import Declarations, Signature
from everlog.dsl.checks.scopes import renamed
from everlog.dsl.diagnostics import Report
from everlog.dsl.walk import everything_below

Ops = Mapping[int, str]  # of a relation: its columns that aggregate


@define
class _Reads:
    """Atoms of a rule that read sums, and what depends on their values."""

    atoms: list[ast.Atom]
    values: set[str]
    tests: list[ast.Formula] = field(factory=list)

    def gather(self, body: Sequence[ast.Formula], bound: Collection[str]) -> None:
        """Find the tests of the values, and the variables that equalities make of them."""
        rest = [x for x in body if all(x is not atom for atom in self.atoms)]
        before = -1
        while len(self.values) != before:
            before = len(self.values)
            self.tests = [x for x in rest if not self.values.isdisjoint(_names(x))]
            for test in self.tests:
                if isinstance(test, ast.Constraint) and test.op == "=":
                    sides = (test.left, test.right)
                    self.values |= {x.name for x in sides if isinstance(x, ast.Name) and x.name not in bound}


@define
class OwnTotals:
    """The relations that tell whether sums pass the tests of their own recursion.

    `made` has the rule of each, over numbered names, so that equal tests share a relation.
    """

    totals: Mapping[str, Ops]
    declared: Declarations
    report: Report
    made: dict[str, tuple[list[ast.Formula], FlatClause]] = field(factory=dict)

    @property
    def rules(self) -> dict[str, FlatClause]:
        """The rule of each relation that was made."""
        return {name: clause for name, (_, clause) in self.made.items()}

    def without(self, clause: FlatClause, group: Collection[str]) -> FlatClause:
        """A rule that aggregates, with a test in place of each sum of its `group` that it reads."""
        assert clause.aggregated is not None
        head, body = clause.aggregated.head, clause.aggregated.body
        own = [x for x in body if isinstance(x, ast.Atom) and x.name in self.totals and x.name in group]
        if not own:
            return clause
        for reads in self._together(own, body):
            if not (self._has_names(reads) and self._stays_below(head, reads)):
                return clause
            asked = self._asked(clause, reads)
            first = next(n for n, x in enumerate(body) if x is reads.atoms[0])
            gone = {id(x) for x in (*reads.atoms, *reads.tests)}
            body = [x for n, one in enumerate(body) for x in ([asked, one] if n == first else [one])]
            body = [x for x in body if id(x) not in gone]
        return flat_clause(head, body, clause.origin)

    def _together(self, own: list[ast.Atom], body: list[ast.Formula]) -> list[_Reads]:
        """The atoms with their tests; those that a test reads together are one."""
        bound = {a.name for x in body if isinstance(x, ast.Atom) for a in x.args if isinstance(a, ast.Name)}
        found: list[_Reads] = []
        for atom in own:
            columns = self.totals[atom.name]
            reads = _Reads([atom], {a.name for n in columns if isinstance(a := atom.args[n], ast.Name)})
            reads.gather(body, bound)
            for other in list(found):
                shared = {id(x) for x in other.tests} & {id(x) for x in reads.tests}
                if shared or not reads.values.isdisjoint(other.values):
                    found.remove(other)
                    reads.atoms, reads.values = [*other.atoms, *reads.atoms], other.values | reads.values
                    reads.gather(body, bound)
            found.append(reads)
        return found

    def _has_names(self, reads: _Reads) -> bool:
        """Whether variables stand for the values; report it if not."""
        for atom in reads.atoms:
            for column in self.totals[atom.name]:
                arg = atom.args[column]
                if not isinstance(arg, ast.Name | ast.Underscore):
                    message = f"`{atom.name}` is asked for one value here, which may still grow"
                    self.report.error("DL132", message, arg, hint="read the value into a variable: `s`, `s >= 50`")
                    return False
        return True

    def _stays_below(self, head: ast.Atom, reads: _Reads) -> bool:
        """Whether the head does not use the values; report it if it does."""
        used = next((x for x in head.args if not reads.values.isdisjoint(_names(x))), None)
        if used is None:
            return True
        atom = reads.atoms[0]
        op = next(iter(self.totals[atom.name].values()))
        name = next(n for n in _names(used) if n in reads.values)
        message = f"`{name}`, a {op} of the same recursion, is used in the head, but may still grow"
        hint = f"compare it with a bound, as in `{name} > 50`; use it in another relation, after the recursion"
        self.report.error("DL132", message, used, hint=hint)
        return False

    # ── the relation of a test ───────────────────────────────────────────────────────────────

    def _asked(self, clause: FlatClause, reads: _Reads) -> ast.Atom:
        """The atom that asks whether the tests hold, and the relation behind it."""
        assert clause.aggregated is not None
        atoms = [evolve(x, args=[self._named(x, n, a) for n, a in enumerate(x.args)]) for x in reads.atoms]
        body = [x for x in clause.aggregated.body if any(x is one for one in reads.tests)]
        outer = {n for x in (clause.aggregated.head, *clause.aggregated.body) for n in _names(x, ast.Aggregate)}
        needed = [n for x in (*atoms, *body) for n in _names(x) if n in outer or "@" in n]
        needed = [n for n in dict.fromkeys(needed) if n not in reads.values]
        binding = self._binding(clause, needed, {n for x in atoms for n in _names(x)})
        rule: list[ast.Formula] = [*atoms, *binding, *body]
        numbered = {n: f"{number}" for number, n in enumerate(dict.fromkeys(n for x in rule for n in _names(x)))}
        key = [renamed(x, numbered) for x in rule]
        at = reads.atoms[0]
        args: list[ast.Term] = [ast.Name(n, at.pos, at.end) for n in needed]
        name = next((name for name, (known, _) in self.made.items() if known == key), None)
        if name is None:
            name = self._declare(at, clause, needed, atoms)
            assert isinstance(clause.origin, ast.Clause)
            origin = evolve(clause.origin, plan=None, strategy=None)
            self.made[name] = key, flat_clause(ast.Atom(name, args, pos=at.pos, end=at.end), rule, origin)
        return ast.Atom(name, args, pos=at.pos, end=at.end)

    def _named(self, atom: ast.Atom, column: int, arg: ast.Term) -> ast.Term:
        """A name for each `_` that is no value: every match counts."""
        if column in self.totals[atom.name] or not isinstance(arg, ast.Underscore):
            return arg
        return fresh(self.declared.relations[atom.name].attributes[column].name, arg)

    def _binding(self, clause: FlatClause, needed: list[str], bound: set[str]) -> list[ast.Formula]:
        """What binds the other variables of the tests; `needed` gets the variables of that."""
        assert clause.aggregated is not None
        own = [x for x in clause.aggregated.body if not isinstance(x, ast.Atom) or x.name not in self.totals]
        found: list[ast.Formula] = []
        for name in needed:  # grows on the way
            if name in bound:
                continue
            for formula in sorted(own, key=lambda x: not isinstance(x, ast.Atom)):
                atom = isinstance(formula, ast.Atom)
                terms = formula.args if isinstance(formula, ast.Atom) else _sides(formula)
                if any(isinstance(x, ast.Name) and x.name == name for x in terms):
                    found.append(formula)
                    if atom:
                        bound |= set(_names(formula))
                    else:
                        bound.add(name)
                        needed += [n for n in _names(formula, ast.Aggregate) if n not in needed]
                    break
        return found

    def _declare(self, at: ast.Atom, clause: FlatClause, needed: list[str], atoms: list[ast.Atom]) -> str:
        """Declare the relation of a test, with a column for each variable."""
        relations = self.declared.relations
        name = next(n for k in count(1) if (n := f"{at.name}.enough{k if k > 1 else ''}") not in relations)
        where = ast.Name(name, at.pos, at.end)
        attributes, kinds, types = [], [], []
        columns = {
            a.name: (relations[x.name], n) for x in atoms for n, a in enumerate(x.args) if isinstance(a, ast.Name)
        }
        for variable in needed:
            signature, column = columns.get(variable, (None, 0))
            kind = clause.kinds.variables[variable] if signature is None else signature.kinds[column]
            found = clause.kinds.types.get(variable, ()) if signature is None else (signature.types[column],)
            type_name = next(iter(found)) if len(found) == 1 else str(kind)
            attributes.append(ast.Attribute(variable.partition("@")[0], type_name, pos=at.pos, end=at.end))
            kinds.append(kind)
            types.append(type_name)
        columns_of = _distinct(attributes)
        relations[name] = Signature(name, where, columns_of, kinds, types, frozenset(), [], tests=at.name)
        return name


def _distinct(attributes: list[ast.Attribute]) -> list[ast.Attribute]:
    """Columns with names of their own."""
    taken: set[str] = set()
    out = []
    for one in attributes:
        name = next(n for k in count(1) if (n := f"{one.name}{k if k > 1 else ''}") not in taken)
        taken.add(name)
        out.append(evolve(one, name=name))
    return out


def _names(node: object, stop: type | None = None) -> list[str]:
    return [x.name for x in everything_below(node, stop=stop) if isinstance(x, ast.Name)]


def _sides(formula: ast.Formula) -> list[ast.Term]:
    return [formula.left, formula.right] if isinstance(formula, ast.Constraint) and formula.op == "=" else []

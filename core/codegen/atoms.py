"""One atom of a body: the index that it reads, and the loop over its matches."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import define

from everlog.core import program as p
from everlog.core.codegen.agenda import Member
from everlog.core.codegen.code_lines import Loop, Values
from everlog.core.codegen.writer import DELTA, NoSet, Writer, same
from everlog.core.program import Atom, Constant, Variable
from everlog.core.storage.table_shapes import PairShape


@define
class AtomWriter(Writer):
    """Writes joins with one atom at a time."""

    def delta_atom(self, atom: Atom) -> None:
        """Read an atom from Δ, in the form of its relation, and test what is not new."""
        shape = self.shapes[atom.relation]
        if isinstance(shape, PairShape):
            key = atom.args[shape.key]
            if key == self.set_variable:
                raise NoSet
            name = self.temporary("_values")
            if isinstance(key, Constant):
                self.line(f"{name} = _delta.get({self.expr(key)}, _EMPTY)")
                self.test(name)
            else:
                self.loop([key], name, items_of(DELTA.text))
                self.existence_tests(key)
            self.values_of_key(local(name), atom.args[shape.value], atom)
        elif not atom.args:
            self.test(DELTA.text)
        elif len(atom.args) > 1 and self.set_variable in atom.args:
            raise NoSet
        else:
            self.columns(DELTA, atom.args)

    def values_of_key(self, container: Values, arg: p.Term, atom: Atom) -> None:
        """The values of a key: a loop over them waits until nothing better is to be done."""
        if self.is_new(arg) and arg != self.set_variable:
            assert isinstance(arg, Variable)
            self.agenda.add(Member(arg, container, self.fan_out(atom)))
        else:
            self.values(container, arg)

    def fan_out(self, atom: Atom) -> float:
        """About how many values go with a key of a binary relation."""
        known = self.statistics.get(atom.relation)
        return 10.0 if known is None else known.rows / known.distinct(self.shapes[atom.relation].key_columns)

    def existence_tests(self, key: p.Term) -> None:
        """Leave out at once the keys that a further atom does not have at all."""
        if isinstance(key, Variable):
            for index in self.leading_indexes(key):
                self.line(f"if {self.bound[key]} not in {index}: {self.skip()}")

    def leading_indexes(self, variable: Variable) -> list[str]:
        """The indexes of open atoms that a variable alone leads into."""
        out: list[str] = []
        for position in self.agenda.positions(variable):
            atom = self.agenda.open[position]
            if not isinstance(atom, Atom) or atom.args.count(variable) != 1 or len(out) > 1:
                continue
            column = atom.args.index(variable)
            others = [c for c, a in enumerate(atom.args) if c != column and not isinstance(a, p.Wildcard)]
            if len(others) == 1 and self.is_new(atom.args[others[0]]):
                out.append(self.index_of(atom, (column,), (others[0],)))
        return out

    def values(self, container: Values, arg: p.Term) -> None:
        """One column whose values are the set `container`."""
        if arg == self.set_variable:
            self.sets.append(container.text)
        elif isinstance(arg, p.Wildcard):
            self.test(container.text)
        elif isinstance(arg, Constant) or arg in self.bound:
            self.test(f"{self.expr(arg)} in {container}")
        else:
            assert isinstance(arg, Variable)
            restricted = self.restricted(container, arg)
            self.loop([arg], "", restricted)
            self.last_loop = (arg, restricted, len(self.lines))

    def restricted(self, container: Values, variable: Variable) -> Values:
        """The values of a loop, cut down in C to those that further atoms have at all."""
        return container.cut_to(self.leading_indexes(variable))

    def union_over_loop(self, atom: Atom, key: list[int], index: str) -> str | None:
        """Replace a loop whose variable only leads into `index` by a union of sets."""
        if self.last_loop is None or len(key) != 1:
            return None
        variable, container, at = self.last_loop
        if at != len(self.lines) or atom.args[key[0]] != variable:
            return None
        if variable in self.agenda.needed or variable in self.kept:
            return None
        self.last_loop = None
        self.out_of_reach.update(self.leave_loop().targets)
        name = self.temporary("_union")
        outside: list[Loop] = []  # the union does not depend on them: it is made before, once for all their turns
        while self.loops and self.loop_without(container.names):
            outside.append(self.leave_loop())
        self.line(f"{name} = _set().union(*_sets({index}, {container.not_cut_to(index)}))")
        self.unions_of_delta += index == DELTA.text
        self.made[name] = self.depth
        if outside:
            self.line(f"if not {name}: {self.skip()}")
        for loop in reversed(outside):
            self.enter_loop(loop.pattern, loop.targets, loop.values)
        return name

    def rows(self, container: Values, args: Sequence[p.Term]) -> None:
        """Several columns whose rows are the set `container`."""
        self.loop(args, "", container)

    def loop(self, args: Sequence[p.Term], extra: str, container: Values) -> None:
        """`for args…[, extra] in container`, then tests of repeated or known columns."""
        targets: list[str] = []
        tests: list[str] = []
        new: list[Variable] = []
        for arg in args:
            if isinstance(arg, p.Wildcard):
                targets.append("_")
            elif self.is_new(arg) and arg not in new:
                assert isinstance(arg, Variable)
                new.append(arg)
                targets.append(self.name(arg))
            else:
                targets.append(self.temporary())
                value = self.name(arg) if isinstance(arg, Variable) and arg in new else self.expr(arg)
                tests.append(same(targets[-1], value))
        pattern = ", ".join(targets)
        if extra:
            pattern = f"({pattern}), {extra}" if len(targets) > 1 else f"{pattern}, {extra}"
            targets.append(extra)
        self.open_loop(pattern, targets, container)
        for variable in new:
            self.bound[variable] = self.name(variable)
        for condition in tests:
            self.test(condition)

    def atom(self, atom: Atom) -> None:
        """Join with a whole relation through the index that its bound columns ask for."""
        key: list[int] = []
        rest: list[int] = []
        set_column: int | None = None
        for column, arg in enumerate(atom.args):
            if isinstance(arg, p.Wildcard):
                continue
            if arg == self.set_variable:
                set_column = column
            elif isinstance(arg, Constant) or arg in self.bound:
                key.append(column)
            else:
                rest.append(column)
        if set_column is not None:
            self.set_atom(atom, key, rest, set_column)
        elif not rest:
            self.membership(atom, key)
        elif not key and len(rest) == len(atom.args):
            self.scan(atom)
        elif not key:
            container = whole(self.index_of(atom, (), tuple(rest)))
            self.columns(container, [atom.args[c] for c in rest])
        else:
            index = self.index_of(atom, tuple(key), tuple(rest))
            union = self.union_over_loop(atom, key, index)
            found = local(union) if union is not None else self.looked_up(atom, key, index)
            self.columns(found, [atom.args[c] for c in rest])

    def looked_up(self, atom: Atom, key: Sequence[int], index: str) -> Values:
        """What an index has for the values of these columns."""
        names = frozenset(self.names_in(atom.args[c] for c in key))
        if index == DELTA.text:
            names |= DELTA.names
        return Values(f"{index}.get({self.key(atom, key)}, _EMPTY)", names, index)

    def columns(self, container: Values, args: Sequence[p.Term]) -> None:
        if len(args) == 1:
            self.values(container, args[0])
        else:
            self.rows(container, args)

    def scan(self, atom: Atom) -> None:
        shape = self.shapes[atom.relation]
        if isinstance(shape, PairShape):
            columns = (shape.value, shape.key) if self.turned else (shape.key, shape.value)
            index = self.index_of(atom, columns[:1], columns[1:])
            name = self.temporary("_values")
            key, value = (atom.args[column] for column in columns)
            self.loop([key], name, items_of(index))
            self.existence_tests(key)
            self.values_of_key(local(name), value, atom)
        else:
            self.columns(whole(self.stored(atom)), atom.args)

    def set_atom(self, atom: Atom, key: list[int], rest: list[int], column: int) -> None:
        """The set of values of the set variable, for what the other columns hold."""
        name = self.temporary("_S")
        if not rest:
            if key:
                index = self.index_of(atom, tuple(key), (column,))
                union = self.union_over_loop(atom, key, index)
                if union is None:
                    self.line(f"{name} = {index}.get({self.key(atom, key)})")
                name = union or name
            else:
                self.line(f"{name} = {self.index_of(atom, (), (column,))}")
            self.line(f"if not {name}: {self.skip()}")
        elif key or self.sets:  # nothing but the set leads here: through its values there are fewer matches
            raise NoSet
        else:
            index = self.index_of(atom, tuple(rest), (column,))
            self.loop([atom.args[c] for c in rest], name, items_of(index))
        self.sets.append(name)

    def key(self, atom: Atom, columns: Sequence[int]) -> str:
        parts = [self.expr(atom.args[c]) for c in columns]
        return parts[0] if len(parts) == 1 else f"({', '.join(parts)})"

    def membership(self, atom: Atom, key: list[int]) -> None:
        condition = self.contains(atom, key)
        self.test(condition)

    def contains(self, atom: Atom, key: Sequence[int]) -> str:
        """The test that some fact has these values in its `key` columns."""
        shape = self.shapes[atom.relation]
        if not key:
            return self.stored(atom)
        if isinstance(shape, PairShape) and len(key) == 2:
            key_text, value_text = self.expr(atom.args[shape.key]), self.expr(atom.args[shape.value])
            return f"{value_text} in {self.stored(atom)}.get({key_text}, _EMPTY)"
        return f"{self.key(atom, key)} in {self.index_of(atom, tuple(key), ())}"

    def stored(self, atom: Atom) -> str:
        """All facts of a relation, as they are stored."""
        shape = self.shapes[atom.relation]
        return self.index_of(atom, shape.key_columns, shape.fact_columns)


def local(text: str, name: str = "") -> Values:
    """The values of a named set, or of an expression with just this name in it."""
    return Values(text, frozenset([name or text]))


def whole(index: str) -> Values:
    """All that a set has that serves as an index."""
    return Values(index, DELTA.names if index == DELTA.text else frozenset(), index)


def items_of(index: str) -> Values:
    """All keys of an index, each with its set."""
    return Values(f"{index}.items()", DELTA.names if index == DELTA.text else frozenset(), index, items=True)

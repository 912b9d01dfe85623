"""Plans as Python: the one place where code is written.

Loops over indexes, and at the bottom one operation on sets (`heads`).  Each set and each variable
is a local; an index is a parameter of the function around.  Python allows 20 nested blocks in one
function, so deeper loops go on in a function of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from itertools import takewhile
from typing import assert_never

from attrs import define, field, frozen

from everlog.core import program as p
from everlog.core.codegen.code_lines import Line, identifier
from everlog.core.codegen.expressions import Expressions
from everlog.core.ir import set_operations as ir
from everlog.core.ir.failures import FailurePoint, Write
from everlog.core.ir.operations import Binds, Compare, Exists, Index, Key, Let, Probe, Scan, Version
from everlog.core.ir.passes.mentioned import mentioned
from everlog.core.ir.python_text import key_text, same
from everlog.core.ir.set_operations import Local, SetOperation, SetPlan, Sets
from everlog.core.ir.uses import FEW, Action, Meter, Use
from everlog.core.program import Aggregate, Failure, Range, Value, Variable
from everlog.core.program.bodies import variables_of_literal
from everlog.core.storage.shape import Columns, Shape
from everlog.core.storage.table_shapes import PairShape

MAX_LOOPS = 16  # Python allows 20 nested blocks in one function
LAZY = "lazily "  # before the name of a relation: its index need not be there as a whole
VALUES_OF = "values of "  # before a group's name: its values, by the outer variables
CALL = 50  # units of work of a call that intersects one more set, beside its elements


@frozen
class Access:
    """An index that generated code reads: of `relation`, by `key`, giving `rest`."""

    relation: str
    key: Columns
    rest: Columns


def common(*sets: Set[Value]) -> Set[Value]:
    """What sets have in common.  Cost: that of the smallest, for each of the others.

    >>> sorted(common({1, 2, 3, 4}, {1: 0, 2: 0, 5: 0}.keys(), {2, 7}))
    [2]
    """
    smallest, *others = sorted(sets, key=len)
    for other in others:
        smallest = smallest & other
    return smallest


def no_index(access: Access) -> bool:
    return False


@define(slots=False)
class Printer:
    """Prints one plan after the other into the same outer function.

    `accesses` are the indexes that they read; `helpers` are functions that they call.
    """

    shapes: Mapping[str, Shape]
    expressions: Expressions
    plan: SetPlan
    solve: Write = None  # type: ignore[assignment]  # for plans that tell failures apart
    accesses: dict[Access, str] = field(factory=dict)
    helpers: list[Line] = field(factory=list)
    most_loops: int = MAX_LOOPS
    has_index: Callable[[Access], bool] = no_index  # whether an index is there already
    lines: list[Line] = field(factory=list, init=False)
    depth: int = field(default=1, init=False)
    loops: int = field(default=0, init=False)
    is_part: bool = field(default=False, init=False)  # the lines are those of a function that goes on
    here: dict[Variable, str] = field(factory=dict, init=False)  # variables that have values in this function
    names: dict[str, str] = field(factory=dict, init=False)
    taken: set[str] = field(factory=set, init=False)
    sets: list[str] = field(factory=list, init=False)
    dropped: list[str] = field(factory=list, init=False)
    made: dict[str, int] = field(factory=dict, init=False)  # sets without another owner → loops around them
    temporaries: int = field(default=0, init=False)
    skips: bool = field(default=False, init=False)  # a line leaves the innermost loop, or the function
    only_new: bool = field(default=False, init=False)  # no fact is derived that its relation has

    @property
    def use(self) -> Use:
        return self.plan.use

    # ── lines and names ──────────────────────────────────────────────────────────────────────

    def line(self, text: str) -> None:
        self.lines.append(Line(self.depth, text))

    def temporary(self, prefix: str) -> str:
        self.temporaries += 1
        return f"{prefix}{self.temporaries}"

    def name(self, variable: Variable) -> str:
        """A readable name for a variable, unlike any other name in the code."""
        found = self.names.get(variable.name)
        if found is None:
            own = variable.name.startswith("%")
            found = f"_{variable.name[1:]}" if own else identifier("v_", variable.name)
            while found in self.taken:
                found += "_"
            self.taken.add(found)
            self.names[variable.name] = found
        return found

    def bind(self, variable: Variable) -> str:
        self.here[variable] = self.name(variable)
        return self.here[variable]

    def index(self, relation: str, key: Columns, rest: Columns) -> str:
        access = Access(LAZY + relation if self.use.lazy and key else relation, key, rest)
        if access not in self.accesses:
            self.accesses[access] = f"_i{len(self.accesses)}"
        return self.accesses[access]

    def index_name(self, index: Index) -> str:
        source = index.source
        return "_delta" if source.version is Version.DELTA else self.index(source.relation, index.key, index.rest)

    def stored(self, relation: str) -> str:
        """All facts of a relation, as they are stored."""
        shape = self.shapes[relation]
        return self.index(relation, shape.key_columns, shape.fact_columns)

    def term(self, term: p.Term) -> str:
        return self.expressions.term(term, self.here)

    def skip(self) -> str:
        """The statement that goes on with the next turn of the loop, or leaves the function."""
        self.skips = True
        return "continue" if self.loops else "return"

    def unless(self, condition: str) -> None:
        """Go on only where the condition does not hold."""
        self.line(f"if {condition}: {self.skip()}")

    # ── functions ────────────────────────────────────────────────────────────────────────────

    def function(self, name: str, parameters: Sequence[str]) -> list[Line]:
        """The plan as a function; `helpers` grow by what it calls."""
        self.temporaries = self.plan.temporaries
        for variable in self.plan.given:
            self.bind(variable)
        self.body(self.plan.operations)
        arguments = ", ".join([*parameters, *map(self.name, self.plan.given)])
        return [Line(1, f"def {name}({arguments}):"), *deeper(self.lines)]

    def body(self, operations: Sequence[SetOperation]) -> None:
        """The operations of one function, with what counts its work."""
        meter = self.use.meter
        if meter is not None and meter.begin:
            self.line(meter.begin)
            if meter.counts_rows and not self.is_part and self.plan.delta is not None:
                self.count_rows()
        last = max((n for n, one in enumerate(operations) if isinstance(one, ir.LOOPS)), default=-1)
        for place, operation in enumerate(operations):
            if isinstance(operation, ir.LOOPS) and self.loops >= self.most_loops:
                self.split(operations[place:])
                break
            if isinstance(operation, ir.LOOPS):
                self.loop(operation, operations[place + 1 :])
            else:
                self.operation(operation)
            if isinstance(operation, ir.LOOPS):
                is_innermost = place == last or self.loops >= self.most_loops
                self.count_turn(is_innermost, operations[place + 1 :])
        if meter is not None and meter.end:
            self.lines.append(Line(1, meter.end.format(self.work())))

    def split(self, operations: Sequence[SetOperation]) -> None:
        """Go on in a function of its own, called from here with everything that it needs."""
        needed = set(mentioned(tuple(operations)))
        if self.use.keeps_all:
            needed.update(self.here)
        passed = {v: name for v, name in self.here.items() if v in needed}
        sets = dict.fromkeys(str(one) for one in mentioned(tuple(operations)) if isinstance(one, Local))
        made = [name for name in sets if name in self.made or name == "_delta"]
        arguments = ", ".join(["_new", *passed.values(), *made])
        part = f"_part{self.expressions.number()}"
        self.line(f"{'yield from ' if self.use.action is Action.YIELD else ''}{part}({arguments})")
        outside = self.lines, self.depth, self.loops, self.is_part
        self.here, self.lines, self.depth, self.loops, self.is_part = passed, [], 1, 0, True
        self.made = dict.fromkeys(self.made, -1)
        self.body(operations)
        self.helpers += [Line(1, f"def {part}({arguments}):"), *deeper(self.lines)]
        self.lines, self.depth, self.loops, self.is_part = outside

    # ── work ─────────────────────────────────────────────────────────────────────────────────

    def work(self) -> str:
        """The name of the counter."""
        assert self.use.meter is not None
        self.expressions.scope["_work"] = self.use.meter.counter
        return "_work"

    def count_rows(self) -> None:
        atom = self.plan.rule.body[self.plan.delta or 0]
        assert isinstance(atom, p.Atom)
        if isinstance(self.shapes[atom.relation], PairShape):
            self.line(f"for _k in _delta.values(): {self.work()}[2] += _len(_k)")
        else:
            self.line(f"{self.work()}[2] += _len(_delta)")

    def count_turn(self, is_innermost: bool, below: Sequence[SetOperation]) -> None:
        """Count a turn of a loop, and what it looks up.  Outer loops look at the limit, too."""
        meter = self.use.meter
        if meter is None:
            return
        next_loop = next((n for n, one in enumerate(below) if isinstance(one, ir.LOOPS)), len(below))
        found = sum(isinstance(one, Exists | Probe | ir.Entry) for one in below[: next_loop + 1])
        self.line(f"{meter.local} += {meter.turn + meter.look_up * found}")
        if not is_innermost:
            self.expressions.scope["_Enough"] = meter.stop
            work, rule = self.work(), self.expressions.named("rule", self.plan.rule.name)
            self.line(f"if {meter.local} > {work}[3]: {work}[0] += {meter.local}; raise _Enough({rule})")

    def count_sets(self, sets: Sequence[str]) -> None:
        """Count a set operation: it walks the smallest of its sets, once for each of the others."""
        if self.use.meter is None:
            return
        local = self.use.meter.local
        if len(sets) == 2:
            one, other = sets
            self.line(f"{local} += _len({one}) if _len({one}) < _len({other}) else _len({other})")
        elif len(sets) == 1:
            self.line(f"{local} += _len({sets[0]})")
        else:
            self.expressions.scope["_min"] = min
            smallest, others = f"_min({', '.join(f'_len({name})' for name in sets)})", len(sets) - 1
            self.line(f"{local} += {others} * ({CALL} + {smallest})")

    def common_to(self, sets: Sequence[str]) -> str:
        """What two or more sets have in common.  Cost: that of `count_sets`."""
        self.count_sets(sets)
        if len(sets) == 2:
            return " & ".join(sets)
        self.expressions.scope["_common"] = common
        return f"_common({', '.join(sets)})"

    # ── operations ───────────────────────────────────────────────────────────────────────────

    def operation(self, operation: SetOperation) -> None:
        match operation:
            case Exists(negated=True):
                self.unless(self.contains(operation))
            case Exists() | ir.Member() | ir.Filled() | Compare() | ir.Same():
                self.line(f"if not ({self.condition(operation)}): {self.skip()}")
            case ir.Leads(variable, index):
                self.unless(f"{self.here[variable]} not in {self.index_name(index)}")
            case Let(target, _, (term,)):
                text = self.term(term)
                self.line(f"{self.bind(target)} = {text}")
            case ir.Entry() | ir.Union() | ir.Numbers() | ir.Without() | ir.Filter():
                self.setting(operation)
            case ir.Lookup(target, literal):
                self.lookup(target, literal)
            case ir.Total():
                self.total(operation)
            case ir.Broken(value):
                self.broken(value)
            case ir.Guarded(operations):
                self.guarded(operations)
            case ir.Derive():
                self.derive(operation)
            case ir.Gather():
                self.gather(operation)
            case _:
                raise AssertionError(f"no operation for Python: {operation}")

    # ── loops ────────────────────────────────────────────────────────────────────────────────

    def loop(self, loop: ir.Loop, below: Sequence[SetOperation] = ()) -> None:
        """A loop; of a delta rule over a large set, over what the set has in common with others."""
        values = self.values_of(loop)
        narrowed = not isinstance(loop, ir.Keys) and self.use.living and self.plan.delta is not None
        if narrowed and (others := self.others(loop, below)):
            values = self.narrowed(values, others)
        else:
            values = self.cut_values(loop, values)
        self.line(f"for {self.pattern(loop)} in {values}:")
        self.depth += 1
        self.loops += 1

    def others(self, loop: ir.Loop, below: Sequence[SetOperation]) -> list[str]:
        """The sets that must have the only value of a loop, by the tests that follow it."""
        assert not isinstance(loop, ir.Keys)
        found = [f"{self.index_name(index)}.keys()" for index in loop.cut]
        if not isinstance(loop, Probe) or len(loop.binds) != 1:
            return found
        value = loop.binds[0][1]
        for test in takewhile(lambda one: isinstance(one, ir.TESTS), below):
            if isinstance(test, Exists) and not test.negated and test.source.version is Version.ALL:
                found += self.fitting(test, value)
        return list(dict.fromkeys(found))

    def fitting(self, test: Exists, value: Variable) -> Iterator[str]:
        """The set of values for which a test holds; or a larger one, where it has no index."""
        relation, shape = test.source.relation, self.shapes[test.source.relation]
        terms = [term for _, term in test.key]
        if isinstance(shape, PairShape) and len(terms) == 2 and value in terms:
            mine = terms.index(value)
            other = terms[1 - mine]
            if not set(p.variables_of(other)) <= self.here.keys():
                return
            if mine == shape.value or self.has_index(Access(relation, (1 - mine,), (mine,))):
                yield f"{self.index(relation, (1 - mine,), (mine,))}.get({self.term(other)}, _EMPTY)"
            else:
                yield f"{self.stored(relation)}.keys()"

    def narrowed(self, values: str, others: Sequence[str]) -> str:
        """A set, or what it has in common with others if it is large; an intersection walks the
        smallest of the sets, in C.  Of a small set, each value is tested: that costs less.
        """
        found, names = self.temporary("_z"), [self.temporary("_z") for _ in others]
        self.line(f"{found} = {values}")
        self.line(f"if _len({found}) >= {FEW}:")
        self.depth += 1
        for name, other in zip(names, others, strict=True):
            self.line(f"{name} = {other}")
        self.line(f"{found} = {self.common_to([found, *names])}")
        self.depth -= 1
        return found

    def header(self, loop: ir.Loop) -> str:
        """A loop within an expression."""
        values = self.cut_values(loop, self.values_of(loop))
        return f"for {self.pattern(loop)} in {values}"

    def values_of(self, loop: ir.Loop) -> str:
        """What a loop runs through."""
        match loop:
            case Scan(source, _, columns):
                if source.version is Version.DELTA:
                    return "_delta"
                shape = self.shapes[source.relation]
                if columns == shape.key_columns + shape.fact_columns:
                    return self.stored(source.relation)
                return self.index(source.relation, (), columns)
            case Probe(source, key, binds):
                index = Index(source, tuple(c for c, _ in key), tuple(c for c, _ in binds))
                return f"{self.index_name(index)}.get({self.key(key)}, _EMPTY)"
            case ir.Each(_, Range() as numbers):
                return self.range(numbers)
            case ir.Each(_, values):
                return str(values)
            case ir.Keys(index):
                return f"{self.index_name(index)}.items()"
            case _:
                assert_never(loop)

    def range(self, numbers: Range) -> str:
        step = "None" if numbers.step is None else self.term(numbers.step)
        return f"_range({self.term(numbers.start)}, {self.term(numbers.stop)}, {step})"

    def cut_values(self, loop: ir.Loop, values: str) -> str:
        cut = () if isinstance(loop, ir.Keys) else loop.cut
        return " & ".join([values, *(f"{self.index_name(index)}.keys()" for index in cut)])

    def pattern(self, loop: ir.Loop) -> str:
        """What a loop binds."""
        match loop:
            case ir.Each(variables):
                return ", ".join(map(self.bind, variables))
            case Scan(_, binds, columns):
                return self.targets(columns, binds)
            case Probe(_, _, binds):
                return self.targets([c for c, _ in binds], binds)
            case ir.Keys(index, binds, values):
                self.made[str(values)] = -1
                key = self.targets(index.key, binds)
                return f"({key}), {values}" if len(index.key) > 1 else f"{key}, {values}"
            case _:
                assert_never(loop)

    def targets(self, columns: Sequence[int], binds: Binds) -> str:
        names = dict(binds)
        return ", ".join(self.bind(names[column]) if column in names else "_" for column in columns)

    # ── tests ────────────────────────────────────────────────────────────────────────────────

    def condition(self, test: SetOperation) -> str:
        match test:
            case Exists(negated=negated):
                found = self.contains(test)
                return f"not ({found})" if negated else found
            case ir.Member(term, values):
                within = self.range(values) if isinstance(values, Range) else values
                return f"{self.term(term)} in {within}"
            case ir.Filled(values):
                return str(values)
            case Compare(op, left, right, kind):
                return self.expressions.comparison(op, self.term(left), self.term(right), kind)
            case ir.Same(left, right):
                return same(self.term(left), self.term(right))
            case _:
                raise AssertionError(f"no test: {test}")

    def contains(self, test: Exists) -> str:
        """The test that some fact has these values."""
        source, key = test.source, test.key
        if not key:
            return "_delta" if source.version is Version.DELTA else self.stored(source.relation)
        shape = self.shapes[source.relation]
        if isinstance(shape, PairShape) and len(key) == 2:
            terms = [self.term(term) for _, term in key]
            stored = "_delta" if source.version is Version.DELTA else self.stored(source.relation)
            return f"{terms[shape.value]} in {stored}.get({terms[shape.key]}, _EMPTY)"
        return f"{self.key(key)} in {self.index(source.relation, tuple(c for c, _ in key), ())}"

    def key(self, key: Key) -> str:
        return key_text([self.term(term) for _, term in key])

    # ── sets ─────────────────────────────────────────────────────────────────────────────────

    def setting(self, operation: ir.Setting) -> None:
        """Name a set; go on only where it has values."""
        name = str(operation.values)
        match operation:
            case ir.Entry(_, index, key):
                found = self.index_name(index)
                self.line(f"{name} = {found}.get({self.key(key)})" if key else f"{name} = {found}")
                self.made[name] = -1
            case ir.Union(_, index, over, leads_into_loop, is_outside):
                found, keys = self.index_name(index), self.cut_values(over, self.values_of(over))
                is_range = isinstance(over, ir.Each) and isinstance(over.values, Range)
                if self.use.meter is not None and self.use.meter.union and not is_range:
                    keys = self.counted_keys(found, keys, self.use.meter)
                self.line(f"{name} = _set().union(*_sets({found}, {keys}))")
                self.made[name] = self.loops
                if leads_into_loop and not is_outside:
                    return
            case ir.Numbers(_, numbers):
                self.line(f"{name} = {self.range(numbers)}")
                self.made[name] = -1
                return
            case ir.Without(_, sets, index, key):
                current, found = self.one_set(sets), self.index_name(index)
                self.count_sets([current])
                gone = f"{found}.get({self.key(key)}, _EMPTY)" if key else found
                self.line(f"{name} = {current} - {gone}")
                self.made[name] = self.loops
            case ir.Filter(_, sets, variable, test):
                current = self.one_set(sets)
                self.count_sets([current])
                value = self.name(variable)
                self.here[variable] = value
                condition = self.condition(test)
                del self.here[variable]
                self.line(f"{name} = {{{value} for {value} in {current} if {condition}}}")
                self.made[name] = self.loops
            case _:
                assert_never(operation)
        self.unless(f"not {name}")

    def counted_keys(self, index: str, keys: str, meter: Meter) -> str:
        """The keys of a union under a name, once those that may be in the index are counted."""
        name = self.temporary("_z")
        self.line(f"{name} = {keys}")
        fewer = f"(_len({name}) if _len({name}) < _len({index}) else _len({index}))"
        self.line(f"{meter.local} += {meter.union} * {fewer}")
        return name

    def take(self, sets: Sets) -> None:
        """Work with these sets from now on."""
        self.sets = list(dict.fromkeys(map(str, sets.members)))
        self.dropped = [self.here[value] for value in sets.dropped]

    def one_set(self, sets: Sets) -> str:
        self.take(sets)
        return self.single_set()

    def single_set(self) -> str:
        """The intersection of the sets, under one name, without dropped values."""
        current = self.intersection()
        for value in self.dropped:  # copying a set and dropping a value is quicker than a difference
            name = self.temporary("_S")
            self.count_sets([current])
            self.line(f"{name} = {self.owned(current)}")
            self.line(f"{name}.discard({value})")
            self.unless(f"not {name}")
            self.sets, self.made[name], current = [name], self.loops, name
        self.dropped = []
        return current

    def intersection(self) -> str:
        if len(self.sets) > 1:
            name = self.temporary("_S")
            self.line(f"{name} = {self.common_to(self.sets)}")
            self.unless(f"not {name}")
            self.sets, self.made[name] = [name], self.loops
        return self.sets[0]

    def owned(self, values: str) -> str:
        """A set that may be changed: a copy, unless the innermost loop has just made it."""
        return values if self.made.get(values) == self.loops else f"_set({values})"

    # ── failures ─────────────────────────────────────────────────────────────────────────────

    def guarded(self, operations: Sequence[SetOperation]) -> None:
        """Tell what a failure means."""
        bound = dict(self.here)
        self.line("try:")
        self.depth += 1
        for operation in operations:
            self.operation(operation)
        self.depth -= 1
        self.line("except _Error as _e:")
        self.depth += 1
        self.fail("_e", bound)
        self.line(self.skip())
        self.depth -= 1

    def broken(self, value: Variable) -> None:
        name = self.here[value]
        self.line(f"if {name}.__class__ is _Failed:")
        self.depth += 1
        self.fail(f"{name}.error", {v: known for v, known in self.here.items() if v != value})
        self.line(self.skip())
        self.depth -= 1

    def fail(self, error: str, bound: Mapping[Variable, str]) -> None:
        """The failure of the present bindings: the rule fails unless excluded."""
        rule, delta = self.plan.rule, self.plan.delta
        if rule.failure is Failure.NOTHING:
            return
        body = list(rule.body)
        here = {v: name for v, name in bound.items() if not v.name.startswith("%")}
        if delta is not None and (self.use.living or here.keys() >= set(variables_of_literal(body[delta]))):
            del body[delta]  # it is a fact of Δ, which need not be in its table
        point = FailurePoint(rule, self.shapes.get(rule.head.relation), body, list(here), self.solve)
        name = self.expressions.named("fail", point)
        self.line(f"{name}({', '.join(['_lookup', '_new', error, *here.values()])})")

    # ── aggregates ───────────────────────────────────────────────────────────────────────────

    def lookup(self, target: Variable, literal: Aggregate) -> None:
        group = literal.body[0]
        assert isinstance(group, p.Atom)
        values = self.index(VALUES_OF + group.relation, tuple(range(len(literal.outer))), ())
        zero = "0.0" if literal.kind is p.Kind.FLOAT else "0"
        default = zero if literal.op in ("count", "sum") else "None"
        if literal.start is not None:
            default = self.expressions.constant(literal.start.value)
        key = key_text([self.here[v] for v in literal.outer])
        name = self.bind(target)
        self.line(f"{name} = {values}.get({key}, {default})")
        if literal.partial:
            self.line(f"if {name}.__class__ is _Failed: raise {name}.error")
        if default == "None":
            self.unless(f"{name} is None")

    def total(self, total: ir.Total) -> None:
        raise NotImplementedError("see RulePrinter")

    def derive(self, derive: ir.Derive) -> None:
        raise NotImplementedError("see RulePrinter")

    def gather(self, gather: ir.Gather) -> None:
        raise NotImplementedError("see RulePrinter")


def deeper(lines: Iterable[Line], by: int = 1) -> list[Line]:
    """The same lines inside of something else."""
    return [Line(line.depth + by, line.text) for line in lines]

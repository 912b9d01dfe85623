"""Programs that use our own names as theirs, and constants that look like code.

Every identifier of our sources, and of the code that we generate, is tried as the name of a
variable, relation, column, component and functor.  Such a program means what it means under any
other names: each executor agrees with the reference on it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import generators
from attrs import frozen
from engines import EXECUTORS, Incremental

import everlog
from everlog import Database
from everlog.core.engine import Engine
from everlog.core.engine.compiled_query import CompiledQuery
from everlog.core.evaluate import reference, seminaive
from everlog.core.program import Atom, Kind, Program, Row, Rule, Variable
from everlog.core.program.executor import Update
from everlog.core.program.values import EvaluationError
from everlog.dsl.check import compile_text
from everlog.dsl.keywords import KEYWORDS
from everlog.functors import bind

_WORD = re.compile(r"[A-Za-z_?][A-Za-z0-9_?]*")
_IDENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_KEPT = {*KEYWORDS, "number", "symbol", "float", "unsigned", "_"}
_KEPT |= {"__FILE__", "__LINE__", "__SOUFFLE__", "RAM_DOMAIN_SIZE"}  # macros that are always there
_FIXED = re.compile(
    r"""("(?:[^"\\]|\\.)*" | \.(?:decl|type|comp|init|functor|strategy)\b | choice-domain | \.limitsize\ \w+\(n=\d+\))""",
    re.VERBOSE,
)
CONSTANTS = (
    "a & _i1.keys() & b",
    "_delta",
    "') + 1 #",
    '" + "',
    "'''",
    '"""',
    "\\",
    "\\n",
    "a\nb",
    "\r",
    "\t",
    "{x}",
    "{0}",
    "%s %(x)s",
    "#",
    "# comment",
    "for x in y:",
    "__import__('os')",
    "\0",
    "a\0b",
    "\ud800",
    "\udc80",
    "\x1b[31m",
    "\u2028",
    "🦉",
    "",
    " ",
    "None",
    "0",
    "nan",
    "x" * 3000,
)


def _texts() -> Iterator[str]:
    package = Path(str(everlog.__file__)).parent
    for folder in ("core", "dsl", "ies", "spark_backend", "store", "serve", "repl", "files", "streams", "."):
        for path in sorted((package / folder).rglob("*.py") if folder != "." else package.glob("*.py")):
            yield path.read_text(encoding="utf-8")
    yield from _generated()


def _generated() -> Iterator[str]:
    """The code that programs of all shapes become while they live."""
    seen: list[str] = []
    listening = [True]

    def hook(event: str, args: tuple[Any, ...]) -> None:
        if event == "compile" and listening[0] and str(args[1]).startswith("<"):
            seen.append(args[0].decode() if isinstance(args[0], bytes) else str(args[0] or ""))

    sys.addaudithook(hook)  # which stays, and listens no longer
    for rules in generators.SHAPES.values():
        program = compile_text(f"{generators.DECLARATIONS}\n{rules}\n")
        seminaive.explain_code(program)
        for executor in ("follow", "ranked_python", "view_tree", "generations"):
            engine = EXECUTORS[executor].start(program)
            for name, kinds in generators.BASE.items():
                engine.apply([Update(name, generators.rows_of(kinds)[0])])
    listening[0] = False
    yield from seen


@cache
def identifiers() -> tuple[str, ...]:
    """Every identifier of ours that is a valid name in the language."""
    found = {word for text in _texts() for word in _IDENT.findall(text)}
    return tuple(sorted(found - _KEPT))


@frozen
class Hostile:
    """A program under hostile names, facts for it, and what to call to reproduce it."""

    program: Program
    rows: tuple[tuple[str, Row], ...]
    text: str
    shape: str
    functors: dict[str, Any]
    constant: str
    parameter: str
    added: tuple[str, ...]  # relations beside those of the shape
    turn: int = 0  # which of the slower ways this program is taken


def renamed(text: str, names: dict[str, str]) -> str:
    """A text with other names; keywords, types and parameters of directives stay.

    >>> text = ".decl p(a:number)  .limitsize p(n=5)  p(n) :- e(n, _)."
    >>> renamed(text, {"p": "row", "n": "undo"})
    '.decl row(a:number)  .limitsize row(n=5)  row(undo) :- e(undo, _).'
    """
    parts = _FIXED.split(text)
    for place, part in enumerate(parts):
        if place % 2 == 0:
            parts[place] = _WORD.sub(lambda found: names.get(found[0], found[0]), part)
        elif part.startswith(".limitsize"):
            name, rest = part.removeprefix(".limitsize ").split("(")
            parts[place] = f".limitsize {names.get(name, name)}({rest}"
    return "".join(parts)


def words_of(text: str) -> list[str]:
    """The names in a text, each once."""
    found = [word for part in _FIXED.split(text)[::2] for word in _WORD.findall(part)]
    found += re.findall(r"\.limitsize (\w+)", text)
    return [word for word in dict.fromkeys(found) if word not in _KEPT]


def quoted(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r") + '"'


ROLES = (
    "zz1",
    "x",
    "c0",
    "cc1",
    "ff1",
    "tt1",
    "ii1",
    "pp1",
    "hh1",
    "zz2",
    "zz3",
    "y",
)  # words of what is added below


def hostile(seed: int) -> Hostile:
    """One of many programs: a shape, names for it, a constant, and rows.

    The name in each role is the next one for the next seed, so that each name is tried in each of
    them.
    """
    random = Random(seed)
    shape = random.choice(sorted(generators.SHAPES))
    own = names_of(seed)
    constant = random.choice(CONSTANTS)
    rules = f".type tt1 <: number\n{generators.DECLARATIONS}\n{generators.SHAPES[shape]}\n"
    rules += f".decl zz1(c0:tt1)  zz1(as(x, tt1)) :- w(x, {quoted(constant)}), v(y), x >= y.\n"
    rules += f".decl zz2(c0:symbol)  zz2(p) :- s(p), p != {quoted(constant)}, w(_, {quoted(constant)}).\n"
    rules += ".decl zz3(c0:number)  zz3(@ff1(x)) :- v(x), e(x, y), y = @ff1(y) - 1.\n"
    words = [*ROLES, *(word for word in words_of(rules) if word not in ROLES)]
    assert len(words) <= len(own)
    names = dict(zip(words, own, strict=False))
    body = renamed(rules, names)
    head = f".functor {names['ff1']}({names['hh1']}:number):number\n"
    prefix = ""
    if seed % 2:
        body = f".comp {names['cc1']} {{\n{body}}}\n.init {names['ii1']} = {names['cc1']}\n"
        prefix = f"{names['ii1']}."
    text = head + body
    functors = {names["ff1"]: lambda x: x + 1}
    program = bind(compile_text(text), functors)
    rows: list[tuple[str, Row]] = []
    for name, kinds in generators.BASE.items():
        for _ in range(random.randint(1, 3)):
            row = tuple(
                random.choice([*generators.VALUES[k], *([constant] if k == "symbol" else [])]) for k in kinds
            )
            rows.append((prefix + names.get(name, name), row))
    random.shuffle(rows)
    turn = (seed + seed // len(shuffled())) % 2  # the other one when a name is in its place again
    added = tuple(prefix + names[name] for name in ("zz1", "zz2", "zz3"))
    return Hostile(program, tuple(dict.fromkeys(rows)), text, shape, functors, constant, names["pp1"], added, turn)


def names_of(seed: int) -> list[str]:
    """A hundred names, each in its place; with the next seed the next ones."""
    ours = shuffled()
    return [ours[(seed + number * len(ours) // 100) % len(ours)] for number in range(100)]


@cache
def shuffled() -> tuple[str, ...]:
    """The identifiers in a fixed order, with different kinds side by side."""
    ours = list(identifiers())
    Random(1).shuffle(ours)
    return tuple(ours)


def agrees(case: Hostile, executors: Sequence[str]) -> None:
    """Check evaluation, engines, queries and proofs against the reference."""
    facts: dict[str, list[Row]] = {}
    for name, row in case.rows:
        facts.setdefault(name, []).append(row)
    try:
        expected = reference.evaluate(case.program, facts)
    except EvaluationError:
        return
    evaluation = seminaive.evaluate(case.program, facts)
    assert {name: evaluation.relation(name) for name in case.program.relations} == expected
    single = Engine(case.program)  # one row at a time: fused where that serves
    for name, row in case.rows:
        single.update(name, row)
    engines = [single]
    if case.turn:
        engines.append(Incremental(large=10**9).start(case.program))  # steps of two
        for start in range(0, len(case.rows), 2):
            engines[-1].apply([Update(name, row) for name, row in case.rows[start : start + 2]])
    for strategy in executors:
        engines.append(EXECUTORS[strategy].start(case.program))
        engines[-1].apply([Update(name, row) for name, row in case.rows])
    for engine in engines:
        assert {name: engine.view(name) for name in case.program.relations} == expected
        engine.check()
    for rule in case.program.rules[-3:]:  # of those that were added to the shape
        if all(isinstance(arg, Variable) for arg in rule.head.args):
            found = CompiledQuery(single, [Rule(Atom("?-", rule.head.args), rule.body)]).answers()
            assert set(found) == expected[rule.head.relation]
    if not case.turn:
        _is_asked_well(case, expected)
    for engine in engines:
        for name, row in case.rows[::2]:
            engine.apply([Update(name, row, insert=False)])
    left: dict[str, list[Row]] = {}
    for name, row in case.rows[1::2]:
        left.setdefault(name, []).append(row)
    with suppress(EvaluationError):
        expected = reference.evaluate(case.program, left)
        for engine in engines:
            assert {name: engine.view(name) for name in case.program.relations} == expected
            engine.check()


def _is_asked_well(case: Hostile, expected: Mapping[str, frozenset[Row]]) -> None:
    """Check a database of the same text: queries, parameters, proofs, explanations."""
    try:
        case.constant.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return  # no symbol
    database = Database.from_text(case.text, functors=case.functors)
    database.apply([Update(name, row) for name, row in case.rows])
    for name in case.added:
        rows = sorted(expected[name])
        assert database.facts(f"{name}({case.parameter})") == rows
        for row in rows[:1]:
            assert database.facts(f"{name}(${case.parameter})", **{case.parameter: row[0]}) == [row]
            assert database.why(name, row).text()
        value = case.constant if database.relations[name].columns[0].kind is Kind.SYMBOL else 99
        if (value,) not in expected[name]:
            assert database.why_not(name, (value,)).text()

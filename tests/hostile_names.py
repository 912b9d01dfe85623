"""Programs that use our own names as theirs, and constants that look like code.

Every identifier of our sources, and of the code that we generate, is tried as the name of a variable, relation,
column, component and functor.  Such a program means what it means under any other names: each executor
agrees with the reference on it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import generators
from attrs import frozen
from engines import EXECUTORS

import everlog
from everlog.core import reference, seminaive
from everlog.core.engine import Engine
from everlog.core.engine.asking import Question
from everlog.core.executor import Update
from everlog.core.program import Atom, Program, Row, Rule, Variable
from everlog.core.values import EvaluationError
from everlog.dsl.check import compile_text
from everlog.dsl.words import KEYWORDS
from everlog.functors import bind

_WORD = re.compile(r"[A-Za-z_?][A-Za-z0-9_?]*")
_IDENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_KEPT = {
    *KEYWORDS,
    "number",
    "symbol",
    "float",
    "unsigned",
    "decl",
    "limitsize",
    "domain",
    "choice",
    "_",
    "comp",
    "init",
}
_KEPT |= {"__FILE__", "__LINE__", "__SOUFFLE__", "RAM_DOMAIN_SIZE"}  # macros that are always there
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
        for executor in ("follow", "witness", "view_tree", "generations"):
            engine = EXECUTORS[executor].start(program)
            for name, kinds in generators.BASE.items():
                engine.apply([Update(name, generators.rows_of(kinds)[0])])
    listening[0] = False
    yield from seen


@cache
def identifiers() -> tuple[str, ...]:
    """Every word of ours that the language takes as a name."""
    found = {word for text in _texts() for word in _IDENT.findall(text)}
    return tuple(sorted(found - _KEPT))


@frozen
class Hostile:
    """A program under hostile names, facts for it, and what to call to reproduce it."""

    program: Program
    rows: tuple[tuple[str, Row], ...]
    text: str
    shape: str


def renamed(text: str, names: dict[str, str]) -> str:
    """A text with other names; words of the language, types and parameters of directives stay.

    >>> renamed(".decl p(a:number)  .limitsize p(n=5)  p(n) :- e(n, _).", {"p": "row", "n": "undo"})
    '.decl row(a:number)  .limitsize row(n=5)  row(undo) :- e(undo, _).'
    """
    parts = re.split(r'("(?:[^"\\]|\\.)*"|(?<=limitsize )\w+\(n=\d+\))', text)
    for place, part in enumerate(parts):
        if place % 2 and part.startswith('"'):
            continue
        if place % 2:
            name, rest = part.split("(", 1)
            parts[place] = f"{names.get(name, name)}({rest}"
        else:
            parts[place] = _WORD.sub(lambda found: names.get(found[0], found[0]), part)
    return "".join(parts)


def quoted(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r") + '"'


def hostile(seed: int) -> Hostile:
    """One of many programs: a shape, names for it, a constant, and rows."""
    random = Random(seed)
    shape = random.choice(sorted(generators.SHAPES))
    own = random.sample(identifiers(), 80)
    constant = random.choice(CONSTANTS)
    rules = f"{generators.DECLARATIONS}\n{generators.SHAPES[shape]}\n"
    rules += f".decl zz1(c0:number)  zz1(x) :- w(x, {quoted(constant)}), v(y), x >= y.\n"
    rules += f".decl zz2(c0:symbol)  zz2(p) :- s(p), p != {quoted(constant)}, w(_, {quoted(constant)}).\n"
    rules += ".decl zz3(c0:number)  zz3(@ff1(x)) :- v(x), e(x, y), y = @ff1(y) - 1.\n"
    words = [word for word in dict.fromkeys(_WORD.findall(re.sub(r'"[^"]*"', "", rules))) if word not in _KEPT]
    names = dict(zip(words, own, strict=False))
    body = renamed(rules, names)
    functor = names["ff1"]
    head = f".functor {functor}({own[-1]}:number):number\n"
    prefix = ""
    if random.random() < 0.5:
        body, prefix = f".comp {own[-2]} {{\n{body}}}\n.init {own[-3]} = {own[-2]}\n", f"{own[-3]}."
    text = head + body
    program = bind(compile_text(text), {functor: lambda x: x + 1})
    rows: list[tuple[str, Row]] = []
    for name, kinds in generators.BASE.items():
        for _ in range(random.randint(1, 3)):
            row = tuple(
                random.choice([*generators.VALUES[k], *([constant] if k == "symbol" else [])]) for k in kinds
            )
            rows.append((prefix + names.get(name, name), row))
    random.shuffle(rows)
    return Hostile(program, tuple(dict.fromkeys(rows)), text, shape)


def agrees(case: Hostile, executors: Sequence[str]) -> None:
    """Whole evaluation, engines in single and larger steps, and queries agree with the reference."""
    facts: dict[str, list[Row]] = {}
    for name, row in case.rows:
        facts.setdefault(name, []).append(row)
    try:
        expected = reference.evaluate(case.program, facts)
    except EvaluationError:
        return
    evaluation = seminaive.evaluate(case.program, facts)
    assert {name: evaluation.relation(name) for name in case.program.relations} == expected
    seminaive.explain_code(case.program)
    single = Engine(case.program)
    for name, row in case.rows:
        single.update(name, row)
    engines = [single]
    for name in executors:
        engines.append(EXECUTORS[name].start(case.program))
        engines[-1].apply([Update(name, row) for name, row in case.rows])
    for engine in engines:
        assert {name: engine.view(name) for name in case.program.relations} == expected
        engine.check()
    for rule in case.program.rules[-3:]:  # of those that were added to the shape
        if all(isinstance(arg, Variable) for arg in rule.head.args):
            found = Question(single, [Rule(Atom("?-", rule.head.args), rule.body)]).answers()
            assert set(found) == expected[rule.head.relation]
    for name, row in case.rows:
        single.update(name, row, insert=False)
    single.check()

"""Damaged programs of ours, and their outcomes.

`mutated(seed)` takes a program of the repository and changes it: words are removed, added, swapped
or renamed, parts of other programs appear, fragments repeat until they nest deeply, numbers get
thousands of digits.  `outcome(text)` processes it completely: parse, check, plan, a database with a
few facts, an insert and a delete.

    python tests/mutations.py 0 1000     the texts with these seeds, in this process

A process prints each seed before it begins, so that one that dies of a signal, a traceback or its
limit on CPU time names the text that killed it.  `failures` runs such processes, and continues
after each failure.
"""

from __future__ import annotations

import faulthandler
import gc
import re
import resource
import signal
import subprocess
import sys
import traceback
from functools import cache
from pathlib import Path
from random import Random
from tempfile import gettempdir
from typing import Any

ROOT = Path(__file__).parent.parent
SECONDS = 5  # of CPU time that a text may take
_HANGING = 300  # seconds after which a process that waits for something is ended
_MEMORY = 4 << 30
_LONGEST = 500_000  # characters

_TOKEN = re.compile(
    r"""\s+ | //[^\n]* | /\*.*?\*/ | "(?:[^"\\\n]|\\.)*" | \d[\w.]* | [A-Za-z_?][\w?]*
    | \.(?=[a-z])\w+ | \#\w+ | :- | <= | >= | != | <: | -> | .""",
    re.VERBOSE | re.DOTALL,
)
_WORDS = """.decl .type .input .output .printsize .limitsize .comp .init .override .plan .functor .pragma .strategy
 number symbol float unsigned ( ) [ ] { } , ; : :- . = != < <= > >= <: | ! $ @ + - * / % ^ -> ** && || <<
 1 0 42 -1 0x1F 0b11 3u 1.5 1.2.3.4 99999999999999999999 9223372036854775807 "s" "" "a\\n" "\\q" "(" "a*"
 true false match contains cat strlen substr ord to_number to_string to_float to_unsigned itou
 count sum min max mean range autoinc as nil band bor bxor bshl bshr land lor lnot bnot
 eqrel inline choice-domain btree btree_delete override overridable printsize magic no_inline
 recursive_iteration_cnt debug_delta stateful // /* */ #define #if #ifdef #else #endif #include #undef \\ \t \n _ _x ?y
 $x ranked dred differential view_tree crown calibrated generations recompute counts flow
 count:{ sum:{ max:{ min:{ mean:{ IO=file n=3 n=1""".split(" ")
_ODD = [
    "\0",
    "\x1b",
    "\ud800",
    "\udc80",
    "\u2028",
    "\u00a0",
    "\ufeff",
    "é",
    "ß",
    "И",
    "🦉",
    "́",
    "\u202e",
    "١",
    "²",
    "\r",
]
_NESTS = [  # opening, middle, closing
    ("(", "x", ")"), ("-", "x", ""), ("bnot ", "1", ""), ("lnot ", "x", ""), ("!", "a(x)", ""), ("!(", "a(x)", ")"),
    ("cat(", '"a"', ', "b")'), ('cat("a", ', '"b"', ")"), ("max(", "1", ", 2)"), ("1^", "1", ""), ("1+", "1", ""),
    ("count : { a(x), ", "a(x)", "}"), ("sum x : { a(x), x = ", "1", "}"), ("as(", "1", ", number)"),
    ("[", "x", "]"), ("$A(", "x", ")"), ("@f(", "x", ")"), ("range(", "1", ", 3)"), ("(a(x);", "a(x)", ")"),
    ("(a(x),(a(x);", "a(x)", "))"), (".comp A {", ".decl q(x:number)", "}"), ("a(x),", "a(x)", ""),
    ("a(x);", "a(x)", ""), ("{", "x", "}"), ("/*", " ", "*/"), ("a.", "b", ""), ("A<", "B", ">"),
    (".comp A<T> : B<", "T", "> {}"), ("p(1).\n", "", ""), (".decl p(x:number)\n", "", ""), ("x,", "x", ""),
    ("x:number,", "x:number", ""), ("#if 1\n", "", "\n#endif"), ("\\", "n", ""), ("\n", "", ""), ("to_string(", "1", ")"),
    ("substr(", '"a"', ",0,1)"), ("x = y, y = ", "x", ""), ("9", "9", ""), ("strlen(to_string(", "1", "))"),
]  # fmt: skip
_COUNTS = [3, 10, 40, 150, 199, 250, 1_000, 5_000, 20_000]
_QUALIFIERS = [" eqrel", " inline", " choice-domain x", " btree_delete", " no_inline", " overridable"]
_DIRECTIVES = [
    ".input {0}\n", ".output {0}\n", ".printsize {0}\n", ".limitsize {0}(n=1)\n", ".limitsize {0}(n={2})\n",
    ".pragma \"{0}\" \"{1}\"\n", "{0}(x, y) :- {1}(y, x).\n", "{0}(x) :- {1}(x), !{0}(x).\n", "{0}(x + 1) :- {0}(x).\n",
    "{0}(cat(x, x)) :- {0}(x).\n", "{0}(x, z) :- {0}(x, y), {1}(y, z).\n", "{0}(x ^ x, y) :- {1}(x, y).\n",
    "{0}(n) :- n = count : {{ {1}(_) }}.\n", "{0}(n, m) :- n = sum x : {{ {1}(x, m) }}, {0}(_, m).\n",
    "{0}(x, y) :- {1}(x, y). .strategy ranked_python\n", "{0}(x) <= {0}(y) :- x < y.\n", "{0}(a, x) <= {0}(a, y) :- x < y.\n",
    "{0}(x) :- x = range(0, {2}).\n", "{0}(x) :- {1}(y), x = range(0, y, {2}).\n", "{0}(x / {2}, x % {2}) :- {1}(x, _).\n",
    "{0}(to_number(x)) :- {1}(x).\n", "{0}(substr(x, {2}, {2})) :- {1}(x).\n", "{0}(x) :- {1}(x), match(\"(a*)*b\", x).\n",
    "{0}(autoinc(), x) :- {1}(x).\n", "{0}(x bshl {2}) :- {1}(x).\n", "{0}(x ^ {2}) :- {1}(x).\n", "{0}(-x * {2}) :- {1}(x).\n",
    ".type {0} <: {1}\n", ".type {0} = {1} | {0}\n", ".type {0} = number\n", ".functor {0}(x:number):number\n",
    ".decl {0}(x:{1})\n", ".decl {0}({1}:number, {1}:symbol)\n", ".comp {0} {{ .decl {1}(x:number) }}\n", ".init {0} = {1}\n",
    ".comp {0}<{1}> : {1} {{ {0}(1). }}\n", ".override {0}\n", "#define {0} {1}\n", "#define {0}(x) x x {1}(x)\n",
    "#include \"{0}\"\n", "#ifdef {0}\n", "{0}(1, 2). {0}(2, 3). {0}(3, 1).\n", "{0}(\"a\", 2).\n", "{0}({2}).\n",
]  # fmt: skip


# ── where texts come from ────────────────────────────────────────────────────────────────────


@cache
def sources() -> tuple[str, ...]:
    """The programs of the repository: files, and those in specifications and docs."""
    from dlt import read_blocks

    found: dict[str, None] = {}
    for path in sorted((ROOT / "programs").rglob("*.dl")):
        found[path.read_text(encoding="utf-8")] = None
    for path in sorted((ROOT / "tests" / "spec").rglob("*.dlt")):
        for block in read_blocks(path.read_text(encoding="utf-8"))[1]:
            if block.command in ("program", "check", "error") and block.input:
                found["\n".join(block.input) + "\n"] = None
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        for text in re.findall(r"```dl\n(.*?)```", path.read_text(encoding="utf-8"), re.DOTALL):
            found[text] = None
    return tuple(text for text in found if len(text) < 20_000)


def tokens(text: str) -> list[str]:
    """The words of a text, blanks and comments among them: joined, they are the text."""
    return _TOKEN.findall(text)


# ── mutations ────────────────────────────────────────────────────────────────────────────────


def _names(words: list[str]) -> list[str]:
    return [word for word in words if re.fullmatch(r"[A-Za-z_?][\w?]*", word)] or ["p"]


def _huge(random: Random) -> str:
    digits = random.choice([19, 20, 21, 40, 309, 310, 4_299, 4_300, 4_301, 5_000, 20_000])
    form = random.choice(["{}", "-{}", "{}u", "0x{}", "0b{}", "{}.5", "1.{}", "{}e{}", "1.5e{}", "{}.{}.{}.{}"])
    return form.replace("{}", (random.choice("19") if "b" not in form else "1") * digits)


def _delete(words: list[str], at: int, random: Random) -> None:
    del words[at : at + random.choice([1, 1, 1, 2, 5, 20])]


def _duplicate(words: list[str], at: int, random: Random) -> None:
    words[at:at] = words[at : at + random.choice([1, 1, 2, 8, 40])]


def _swap(words: list[str], at: int, random: Random) -> None:
    other = random.randrange(len(words))
    words[at], words[other] = words[other], words[at]


def _insert(words: list[str], at: int, random: Random) -> None:
    words.insert(at, f" {random.choice(_WORDS)} ")


def _replace(words: list[str], at: int, random: Random) -> None:
    words[at] = f" {random.choice(_WORDS)} "


def _splice(words: list[str], at: int, random: Random) -> None:
    other = tokens(random.choice(sources()))
    start = random.randrange(len(other))
    words[at : at + random.choice([0, 0, 10])] = other[start : start + random.choice([1, 5, 20, 100, 1_000])]


def _append(words: list[str], at: int, random: Random) -> None:
    other = random.choice(sources())
    words.insert(random.choice([0, len(words)]), f"\n{other}\n")


def _flip(words: list[str], at: int, random: Random) -> None:
    place = random.randrange(len(words[at]))
    new = random.choice([chr(ord(words[at][place]) ^ (1 << random.randrange(7))), *random.sample(_ODD, 1)])
    words[at] = words[at][:place] + new + words[at][place + 1 :]


def _odd(words: list[str], at: int, random: Random) -> None:
    words.insert(at, random.choice(_ODD) * random.choice([1, 1, 50]))


def _repeat(words: list[str], at: int, random: Random) -> None:
    fragment = words[at : at + random.choice([1, 2, 3, 5, 10])]
    words[at:at] = fragment * min(random.choice(_COUNTS), 40_000 // len(fragment))


def _nest(words: list[str], at: int, random: Random) -> None:
    opens, middle, closes = random.choice(_NESTS)
    count = random.choice(_COUNTS)
    middle = random.choice([middle, words[at]])
    words[at] = opens * count + middle + closes * random.choice([count, count, count, count - 1, 0])


def _number(words: list[str], at: int, random: Random) -> None:
    places = [i for i, word in enumerate(words) if word[0].isdigit()] or [at]
    words[random.choice(places)] = _huge(random)


def _truncate(words: list[str], at: int, random: Random) -> None:
    del words[random.choice([at, max(1, len(words) - random.randrange(1, 6))]) :]


def _arity(words: list[str], at: int, random: Random) -> None:
    """An argument or column more or less."""
    places = [i for i, word in enumerate(words) if word in "(,"] or [at]
    place = random.choice(places)
    if random.random() < 0.5:
        words.insert(place + 1, random.choice(["x, ", "_, ", "1, ", '"s", ', "x:number, "]))
    else:
        del words[place + 1 : place + 3]


def _kind(words: list[str], at: int, random: Random) -> None:
    """Another type of a column, or another literal."""
    kinds = ["number", "symbol", "float", "unsigned"]
    places = [i for i, word in enumerate(words) if word in kinds or word[0] in '"0123456789'] or [at]
    place = random.choice(places)
    literals = ["1", "-7", '"s"', "1.5", "3u", '""', "x", "0", "9223372036854775807", "1e308"]
    words[place] = random.choice(kinds if words[place] in kinds else literals)


def _rename(words: list[str], at: int, random: Random) -> None:
    """A name is another one of the text, here or everywhere."""
    names = _names(words)
    old, new = random.choice(names), random.choice(names)
    places = [i for i, word in enumerate(words) if word == old]
    for place in places if random.random() < 0.3 else random.sample(places, min(1, len(places))):
        words[place] = new


def _negate(words: list[str], at: int, random: Random) -> None:
    places = [i for i, word in enumerate(words[:-1]) if re.match(r"[A-Za-z]", word) and words[i + 1] == "("] or [
        at
    ]
    words.insert(random.choice(places), "!")


def _operator(words: list[str], at: int, random: Random) -> None:
    operators = "+ - * / % ^ band bor bxor bshl bshr land lor = != < <= > >=".split()
    places = [i for i, word in enumerate(words) if word in operators] or [at]
    words[random.choice(places)] = f" {random.choice(operators)} "


def _qualify(words: list[str], at: int, random: Random) -> None:
    places = [i for i, word in enumerate(words) if word == ")"] or [at]
    words.insert(random.choice(places) + 1, random.choice(_QUALIFIERS))


def _statement(words: list[str], at: int, random: Random) -> None:
    names = _names(words)
    number = random.choice(
        ["0", "1", "3", "-1", "63", "64", "1000", "1000000", "9223372036854775807", _huge(random)]
    )
    text = random.choice(_DIRECTIVES).format(random.choice(names), random.choice(names), number)
    ends = [i + 1 for i, word in enumerate(words) if "\n" in word]
    words.insert(random.choice([*ends, len(words)]), text)


_MILD = [
    _rename,
    _rename,
    _statement,
    _statement,
    _statement,
    _kind,
    _operator,
    _negate,
    _arity,
    _qualify,
    _delete,
]
_HARSH = [
    _duplicate,
    _swap,
    _insert,
    _replace,
    _splice,
    _append,
    _flip,
    _odd,
    _repeat,
    _nest,
    _nest,
    _number,
    _truncate,
]


def mutated(seed: int) -> str:
    """A program of the repository with a few changes; the same for the same seed."""
    random = Random(seed)
    words = tokens(random.choice(sources()))
    mild = random.random() < 0.6
    for _ in range(random.choice([1, 1, 2, 2, 3, 4, 8])):
        if not words or sum(map(len, words)) > _LONGEST:
            break
        change = random.choice(_MILD if mild and random.random() < 0.9 else _HARSH + _MILD)
        change(words, random.randrange(len(words)), random)
        words = tokens("".join(words)) if random.random() < 0.3 else [word for word in words if word]
    return "".join(words)[:_LONGEST]


# ── what becomes of a text ───────────────────────────────────────────────────────────────────


def outcome(text: str, seed: int = 0) -> str:
    """The outcome of a text: `diagnostics`, `error` (a documented one), or `result`.

    Every other exception propagates.
    """
    from everlog import Database
    from everlog.core.program.executor import InsertOnly
    from everlog.core.program.fact_rows import FactError
    from everlog.core.program.values import EvaluationError
    from everlog.core.runtime.guards import Limits
    from everlog.dsl.check import diagnose
    from everlog.dsl.preprocess import preprocess_text
    from everlog.functors import FunctorError

    random = Random(seed)
    source, problems = preprocess_text(text, "mutated.dl")
    program, report = diagnose(source, problems)
    report.text()
    report.as_json()
    if random.random() < 0.1:
        _written(text)
    if program is None:
        assert report.errors, "no program, and no reason given"
        return "diagnostics"
    limits = Limits(iterations=300, facts=20_000, memory=_MEMORY // 2, seconds=1.0)
    functors = {name: (lambda *args: args[0] if args else 1) for name in program.functors}
    try:
        database = Database.from_text(text, functors=functors, limits=limits)
    except (EvaluationError, MemoryError, FunctorError):
        return "error"
    came = "result"
    given = {d.relation for d in program.inputs} or set(program.relations)
    for name in sorted(given, key=str)[:10]:
        relation = database.relations[name]
        for _ in range(2):
            row = tuple(random.choice(_VALUES[column.kind.value]) for column in relation.columns)
            try:
                database.insert(name, row)
                if random.random() < 0.5:
                    database.delete(name, row)
            except (EvaluationError, MemoryError):
                came = "error"
            except (InsertOnly, FactError):  # nothing was changed
                pass
    if random.random() < 0.1:
        came = _asked(database, random, came)
    return came


_VALUES: dict[str, list[Any]] = {
    "number": [0, 1, 2, 3, 1, 2, -1, 2**63 - 1, -(2**63)],
    "symbol": ["", "a", "b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaac", "1", "\n", '"', "\\", "\ud800"],
    "float": [0.5, 1.0, -0.0, 1e308],
    "unsigned": [0, 1, 2, 2**64 - 1],
}


def _written(text: str) -> None:
    """The formatter, the printer and the colours say something of any text."""
    from everlog.dsl.formatter import format_text
    from everlog.dsl.parser import parse_text
    from everlog.dsl.printer import print_program

    format_text(text, "mutated.dl")
    tree, report = parse_text(text)
    if not report.errors:
        print_program(tree)


def _asked(database: Any, random: Random, came: str) -> str:
    """Explanations, queries and proofs of a database."""
    from everlog.core.program.fact_rows import FactError
    from everlog.core.program.values import EvaluationError
    from everlog.core.proofs.proof import NotDerived
    from everlog.dsl.diagnostics import DatalogError

    database.explain()
    if not database.relations:
        return came
    name = random.choice(sorted(database.relations))
    columns = len(database.relations[name].columns)
    try:
        database.query(f"{name}({', '.join(f'x{i}' for i in range(columns))})")
        for row in database.view(name)[:1]:
            database.why(name, row).text()
        row = tuple(random.choice(_VALUES[column.kind.value]) for column in database.relations[name].columns)
        if not database.holds(name, row):
            database.why_not(name, row).text()
    except (EvaluationError, MemoryError, NotDerived, DatalogError, FactError):
        return "error"
    return came


# ── processes ────────────────────────────────────────────────────────────────────────────────


def failures(first: int, last: int, most: int = 20) -> list[str]:
    """The failures of the texts of these seeds, run in processes that may die."""
    found: list[str] = []
    while first < last and len(found) < most:
        command = [sys.executable, "-P", str(Path(__file__).resolve()), str(first), str(last)]
        process = subprocess.run(
            command, capture_output=True, text=True, errors="replace", cwd=gettempdir(), check=False
        )
        seeds = re.findall(r"^seed (\d+)$", process.stdout, re.MULTILINE)
        at = int(seeds[-1]) if seeds else first
        if process.returncode == 0 and at == last:
            break
        way = f"signal {-process.returncode}" if process.returncode < 0 else f"status {process.returncode}"
        found.append(f"mutated({at}) ended by {way}:\n{process.stderr[-3_000:]}\n{mutated(at)[:1_500]!r}")
        first = at + 1
    return found


def _limit_cpu() -> None:
    """Have the system end this process when the next text takes longer than it may."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    soft = int(used.ru_utime + used.ru_stime) + 1 + SECONDS
    resource.setrlimit(resource.RLIMIT_CPU, (soft, resource.RLIM_INFINITY))
    faulthandler.dump_traceback_later(_HANGING, exit=True)


def main(first: int, last: int) -> int:
    """Run the texts of these seeds; end with a traceback at the first that fails."""
    faulthandler.enable()
    faulthandler.register(signal.SIGXCPU, chain=True)
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    sources()
    counts: dict[str, int] = {}
    for seed in range(first, last):
        print(f"seed {seed}", flush=True)
        text = mutated(seed)
        _limit_cpu()
        try:
            came = outcome(text, seed)
        except Exception:
            traceback.print_exc()
            return 1
        counts[came] = counts.get(came, 0) + 1
        if seed % 500 == 0:
            gc.collect()
    print(f"seed {last}\n{counts}")
    return 0


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))

"""One line of help for each word of the language, and the parameters of those that take some."""

from __future__ import annotations

from attrs import frozen

from everlog.core.joins.join_strategies import JOINS


@frozen
class Call:
    """A word that takes arguments: their names, the result, and what it is."""

    name: str
    params: tuple[str, ...]
    result: str
    help: str

    @property
    def label(self) -> str:
        """
        >>> Call("strlen", ("s: symbol",), "number", "").label
        'strlen(s: symbol): number'
        """
        return f"{self.name}({', '.join(self.params)})" + (f": {self.result}" if self.result else "")


def _calls(*rows: tuple[str, str, str, str]) -> dict[str, Call]:
    return {
        name: Call(name, tuple(part.strip() for part in params.split(",") if part.strip()), result, what)
        for name, params, result, what in rows
    }


CALLS: dict[str, Call] = _calls(
    ("cat", "a: symbol, b: symbol, …", "symbol", "the symbols, joined"),
    ("strlen", "s: symbol", "number", "the length of a symbol in bytes"),
    ("substr", "s: symbol, from: number, length: number", "symbol", "the bytes from `from`, counted from 0"),
    ("ord", "s", "number", "a number that stands for the symbol, the same throughout a run"),
    ("range", "from, to, step", "", "one match per value from `from` up to `to`, without `to`"),
    ("to_string", "x", "symbol", "the value as a symbol; floats with six decimals"),
    ("to_number", "x", "number", "converted; a symbol must begin with a number"),
    ("to_unsigned", "x", "unsigned", "converted; a symbol must begin with a number"),
    ("to_float", "x", "float", "converted; a symbol must begin with a number"),
    ("itof", "x: number", "float", "a number as a float"),
    ("itou", "x: number", "unsigned", "a number as an unsigned"),
    ("utoi", "x: unsigned", "number", "an unsigned as a number"),
    ("utof", "x: unsigned", "float", "an unsigned as a float"),
    ("ftoi", "x: float", "number", "a float as a number, cut off"),
    ("ftou", "x: float", "unsigned", "a float as an unsigned, cut off"),
    ("min", "a, b, …", "", "the least of several values; `min x : {…}` is the aggregate"),
    ("max", "a, b, …", "", "the greatest of several values; `max x : {…}` is the aggregate"),
    ("match", "pattern: symbol, s: symbol", "", "whether a regular expression matches the whole symbol"),
    ("contains", "part: symbol, s: symbol", "", "whether a symbol has this part"),
    ("as", "x, type", "type", "the same 64 bits as another type"),
    ("autoinc", "", "number", "a new number each time its rule fires"),
    ("recursive_iteration_cnt", "", "unsigned", "not supported: the number of the round of a recursion"),
)

WORDS: dict[str, str] = {name: call.help for name, call in CALLS.items()} | {
    "count": "`count : {…}`: the number of matches",
    "sum": "`sum x : {…}`: the sum of `x` over all matches",
    "mean": "`mean x : {…}`: the mean of `x` over all matches",
    "min": "`min x : {…}`: the least `x` of all matches; `min(a, b)`: the least of several values",
    "max": "`max x : {…}`: the greatest `x` of all matches; `max(a, b)`: the greatest of several values",
    "input": "old style; write `.input` on a line of its own",
    "output": "old style; write `.output` on a line of its own",
    "printsize": "old style; write `.printsize` on a line of its own",
    "overridable": "a component that inherits from this one may replace the rules",
    "eqrel": "an equivalence relation: reflexive, symmetric and transitive by itself",
    "inline": "no relation of its own: its rules replace its atoms",
    "no_inline": "never inlined",
    "magic": "on demand: only the facts that somebody asks for are computed",
    "no_magic": "accepted; relations are kept whole unless they are `magic`",
    "brie": "a data structure of Soufflé; it has no effect",
    "btree": "a data structure of Soufflé; it has no effect",
    "btree_delete": "a data structure of Soufflé that allows subsumption; it has no effect here",
    "choice-domain": "for each value of the key, only the first fact is kept",
    "band": "bitwise and",
    "bor": "bitwise or",
    "bxor": "bitwise exclusive or",
    "bnot": "bitwise not",
    "bshl": "shift to the left",
    "bshr": "shift to the right, keeping the sign",
    "bshru": "shift to the right, filling with zeros",
    "land": "logical and: 1 or 0",
    "lor": "logical or: 1 or 0",
    "lxor": "logical exclusive or: 1 or 0",
    "lnot": "logical not: 1 or 0",
    "true": "holds always",
    "false": "holds never",
    "nil": "the empty record; relations are flat here",
    "debug_delta": "not supported: the new facts of a relation in each round",
    "stateful": "the functor may read symbols; it has no effect",
    "number": "a signed integer of 64 bits",
    "unsigned": "an unsigned integer of 64 bits",
    "float": "a floating-point number of 64 bits",
    "symbol": "a text",
}

DIRECTIVE_HELP: dict[str, str] = {
    ".decl": "declares a relation: its name, and the name and type of each column",
    ".input": "reads the facts of a relation, by default from `NAME.facts`",
    ".output": "writes a relation, by default to `NAME.csv`",
    ".printsize": "prints the number of facts of a relation",
    ".limitsize": "stops the recursion of a relation: `.limitsize r(n=10)`",
    ".insert_only": "facts of this relation are never deleted, which makes its rules cheaper to maintain",
    ".view": "the facts of this relation are not stored: they are found when somebody asks",
    ".type": "declares a type: `.type Id <: number`, `.type Any = A | B`",
    ".functor": "declares a function in Python: `.functor f(x:number):symbol`",
    ".pragma": 'a setting: `.pragma "key" "value"`',
    ".plan": "after a rule: the order in which its atoms are joined, in place of the engine's own choice",
    ".strategy": "after a rule: the strategy that maintains it",
    ".comp": "declares a component, which `.init` makes an instance of",
    ".init": "makes an instance of a component: `.init c = Component<Type>`",
    ".override": "inside a component: the rules of this relation replace those of its bases",
    ".lattice": "not supported: a lattice",
    ".number_type": "old style; write `.type NAME <: number`",
    ".symbol_type": "old style; write `.type NAME <: symbol`",
    ".include": 'reads another file here: `.include "file.dl"`',
    ".once": "reads this file only once, however often it is included",
}

# Text to insert for a directive; `$1` and so on are where an editor stops.
SNIPPETS: dict[str, str] = {
    ".decl": ".decl ${1:name}(${2:x}:${3:number})",
    ".type": ".type ${1:Name} <: ${2:number}",
    ".functor": ".functor ${1:name}(${2:x}:${3:number}):${4:number}",
    ".comp": ".comp ${1:Name}<${2:T}> {\n    $0\n}",
    ".init": ".init ${1:name} = ${2:Component}",
    ".include": '.include "${1:file.dl}"',
    ".pragma": '.pragma "${1:key}" "${2:value}"',
    ".limitsize": ".limitsize ${1:relation}(n=${2:10})",
}

STRATEGIES: dict[str, str] = {name: strategy.about for name, strategy in JOINS.items()} | {
    "flow": "for recursion: sets flow along the components of a graph",
    "ranked": "for recursion: the rank of each fact, and its derivations from lower ranks",
    "ranked_python": "for recursion: the same in Python",
}

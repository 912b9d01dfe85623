"""Macros and conditions of the preprocessor: `#define` and `#if`.

Macro calls are expanded token by token.  Each token carries the macros that it may no longer
expand, so that a macro that names itself does not loop.  Expansion has a budget: macros that double
at every level end in an error, not in the machine's memory.

Source: ISO C 6.10; the painting of tokens is D. Prosser's algorithm (X3J11/86-196).
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import TypeAlias

from attrs import define, frozen

ROOM = 4_000_000  # characters that macros may expand to, plus ten times the text read
FLAGS = re.ASCII | re.DOTALL
IDENT = r"[A-Za-z_?][\w?]*+"
STRING = r'"(?:[^"\\\n]|\\.)*+"?'  # to the end of the line if it is not closed
BLOCK = r"/\*(?:.*?\*/|.*)"
LINE = r"//(?:[^\n\\]|\\.)*+"
IS_IDENT = re.compile(IDENT, FLAGS)
TOKEN = re.compile(
    rf"{IDENT}|[^\S\n]++|{STRING}|{LINE}|{BLOCK}|\d\w*+|##|:-|<:|[<>!=]=|&&|\|\||<<|>>|\\\n|.", FLAGS
)
FUSED = re.compile(r"[\w?]{2}|:-|<:|[<>!=]=|//|/\*", FLAGS)
HASH = re.compile(r"[ \t]*+(?:/\*.*?\*/[ \t]*+)*+#", FLAGS)
CALL = re.compile(rf"(?:\s|{LINE}|/\*.*?\*/)*+\(", FLAGS)
_DEFINE = re.compile(rf"({IDENT})(?:\(([^)]*)\))?(.*)", FLAGS)
_DEFINED = re.compile(rf"\bdefined(?![\w?])\s*(?:\(\s*({IDENT})\s*\)|({IDENT}))", FLAGS)
_EXPRESSION = re.compile(r"\w+|&&|\|\||<<|>>|[<>!=]=|\S", FLAGS)
_LITERAL = re.compile(r"(0[xX][0-9a-fA-F]+|0[bB][01]+|(0[0-7]*)|[1-9][0-9]{0,99})[uUlL]*", FLAGS)

_Token: TypeAlias = tuple[str, frozenset[str]]  # its text, and the macros it may no longer expand
_BARE: frozenset[str] = frozenset()


class Mistake(Exception):
    """An error; becomes a `Problem` once its place is known."""

    def __init__(self, code: str, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.code, self.message, self.hint = code, message, hint


# ── conditions ───────────────────────────────────────────────────────────────────────────────


def _divide(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


_OPERATORS: tuple[dict[str, Callable[[int, int], int]], ...] = (
    {"||": lambda a, b: a != 0 or b != 0},
    {"&&": lambda a, b: a != 0 and b != 0},
    {"|": operator.or_},
    {"^": operator.xor},
    {"&": operator.and_},
    {"==": operator.eq, "!=": operator.ne},
    {"<": operator.lt, ">": operator.gt, "<=": operator.le, ">=": operator.ge},
    {"<<": lambda a, b: a << (b & 63), ">>": lambda a, b: a >> (b & 63)},
    {"+": operator.add, "-": operator.sub},
    {"*": operator.mul, "/": _divide, "%": lambda a, b: a - _divide(a, b) * b},
)
_LEVELS = {sign: level for level, row in enumerate(_OPERATORS) for sign in row}
_UNARY: dict[str, Callable[[int], int]] = {"!": lambda a: not a, "~": lambda a: ~a, "-": lambda a: -a, "+": int}


class _Expression:
    """The integer expression of an `#if`, on 64 bits, by precedence climbing.

    `live` is false where C does not evaluate, as in `0 && 1 / 0`.
    """

    def __init__(self, text: str) -> None:
        self.rest = _EXPRESSION.findall(text)[::-1]

    def value(self) -> int:
        result = self.choice(True)
        if self.rest:
            raise Mistake("DL102", f"unexpected `{self.rest[-1]}` in the condition")
        return result

    def choice(self, live: bool) -> int:
        test = self.binary(0, live)
        if self.rest[-1:] != ["?"]:
            return test
        self.rest.pop()
        yes = self.choice(live and test != 0)
        self.expect(":")
        no = self.choice(live and test == 0)
        return yes if test else no

    def binary(self, level: int, live: bool) -> int:
        left = self.unary(live)
        while self.rest and _LEVELS.get(self.rest[-1], -1) >= level:
            sign = self.rest.pop()
            needed = live and not (sign == "&&" and left == 0) and not (sign == "||" and left != 0)
            right = self.binary(_LEVELS[sign] + 1, needed)
            if sign in ("/", "%") and right == 0:
                if needed:
                    raise Mistake("DL102", "division by zero in the condition")
                right = 1
            left = (_OPERATORS[_LEVELS[sign]][sign](left, right) + 2**63) % 2**64 - 2**63
        return left

    def unary(self, live: bool) -> int:
        word = self.rest.pop() if self.rest else ""
        if word in _UNARY:
            return _UNARY[word](self.unary(live))
        if word == "(":
            inner = self.choice(live)
            self.expect(")")
            return inner
        if literal := _LITERAL.fullmatch(word):
            return int(literal[1], 8 if literal[2] else 0)
        if IS_IDENT.fullmatch(word):
            return 0  # a name that is no macro
        raise Mistake("DL102", f"the condition needs an integer where it has {f'`{word}`' if word else 'its end'}")

    def expect(self, word: str) -> None:
        if not self.rest or self.rest.pop() != word:
            raise Mistake("DL102", f"`{word}` is missing in the condition")


# ── macros ───────────────────────────────────────────────────────────────────────────────────


@frozen
class _Macro:
    """A macro; in its `body` no blank stands beside `##`.

    A variadic macro has `__VA_ARGS__` as its last parameter.
    """

    body: tuple[str, ...]
    params: tuple[str, ...] | None = None  # None: without parentheses
    variadic: bool = False


@define
class Ahead:
    """The text after a macro's name, from which a call takes its arguments."""

    text: str
    at: int

    def next(self) -> str:
        """The next token, or nothing at the end of the text or before a directive."""
        found = TOKEN.match(self.text, self.at)
        if found is None or (found[0] == "\n" and HASH.match(self.text, found.end())):
            return ""
        self.at = found.end()
        return found[0].replace("\\\n", "") or " "


def _tokens(text: str) -> list[_Token]:
    return [(word, _BARE) for word in TOKEN.findall(text)]


def is_blank(word: str) -> bool:
    return not word or word.isspace() or word[:2] in ("//", "/*")


def _join(tokens: Iterable[_Token]) -> str:
    """The tokens as text that is read as the same tokens again."""
    out = [""]
    for word, _ in tokens:
        if word:
            out.append(f" {word}" if FUSED.match(out[-1][-1:] + word[0]) else word)
    return "".join(out)


def _quoted(tokens: Iterable[_Token]) -> str:
    words = (_escaped(word) if word[:1] == '"' else word for word, _ in tokens)
    return '"' + "".join(words) + '"'


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"")


class Macros:
    """The defined macros and their expansion."""

    def __init__(self) -> None:
        self.table: dict[str, _Macro] = {}
        self.version = 0  # grows with every definition
        self.room = ROOM
        self.file, self.line = "", 0  # values of __FILE__ and __LINE__

    def define(self, text: str) -> str:
        """Define `NAME body` or `NAME(parameters) body`; return the name."""
        found = _DEFINE.fullmatch(text)
        if not found or found[1] == "defined":
            raise Mistake("DL102", "`#define` needs the name of a macro", "#define NAME value")
        name, listed, rest = str(found[1]), found[2], str(found[3])
        params, variadic = (None, False) if listed is None else self._parameters(name, listed)
        if listed is None and rest[:1] == "(":
            raise Mistake("DL102", f"the parameters of macro `{name}` are not closed by `)`")
        macro = _Macro(self._body(name, rest.strip(), params), params, variadic)
        if self.table.get(name) != macro:
            self.table[name] = macro
            self.version += 1
        return name

    def undefine(self, name: str) -> None:
        if self.table.pop(name, None) is not None:
            self.version += 1

    def _parameters(self, name: str, listed: str) -> tuple[tuple[str, ...], bool]:
        params = [word.strip() for word in listed.split(",")] if listed.strip() else []
        variadic = bool(params) and params[-1].endswith("...")
        if variadic:
            params[-1] = params[-1].removesuffix("...").strip() or "__VA_ARGS__"
        wrong = [p for i, p in enumerate(params) if not IS_IDENT.fullmatch(p) or p in params[:i]]
        if wrong:
            raise Mistake("DL102", f"`{wrong[0]}` cannot be a parameter of macro `{name}`")
        return tuple(params), variadic

    def _body(self, name: str, text: str, params: tuple[str, ...] | None) -> tuple[str, ...]:
        body: list[str] = []
        binding = ("##",) if params is None else ("##", "#")  # applies to the token after it
        for word in TOKEN.findall(text):
            if word == "##" and body[-1:] == [" "]:
                body.pop()
            if not word.isspace():
                body.append(word)
            elif body[-1] not in binding:
                body.append(" ")
        for sign, after in pairwise([*body, ""]):
            if sign == "#" in binding and after not in (params or ()):
                raise Mistake("DL102", f"in macro `{name}`, `#` is not followed by a parameter")
        if "##" in (body[:1] + body[-1:]):
            raise Mistake("DL102", f"the body of macro `{name}` begins or ends with `##`")
        return tuple(body)

    def condition(self, text: str) -> bool:
        text = _DEFINED.sub(lambda found: str(int((found[1] or found[2]) in self.table)), text)
        try:
            return _Expression(self.expanded(text.replace("?", " ? "))).value() != 0
        except RecursionError:
            raise Mistake("DL102", "the condition is nested too deeply") from None

    def expanded(self, text: str, ahead: Ahead | None = None) -> str:
        try:
            return _join(self.expand(_tokens(text), ahead))
        except RecursionError:
            raise Mistake("DL106", "macro calls are nested too deeply") from None

    def expand(self, tokens: list[_Token], ahead: Ahead | None = None) -> list[_Token]:
        """Expand until no macro is left; a name is not replaced in its own expansion."""
        todo, out = tokens[::-1], []
        while todo:
            name, hidden = token = todo.pop()
            macro = self.table.get(name)
            if macro is None or name in hidden or not (macro.params is None or self._is_called(todo, ahead)):
                out.append(token)
                continue
            args: dict[str, list[_Token]] = {}
            if macro.params is not None:
                given, closing = self._call_arguments(name, macro, todo, ahead)
                args = self._arguments(name, macro, macro.params, given)
                hidden &= closing
            todo += reversed(self._replacement(name, macro, args, hidden | {name}))
        return out

    def _is_called(self, todo: list[_Token], ahead: Ahead | None) -> bool:
        for word, _ in reversed(todo):
            if not is_blank(word):
                return word == "("
        return ahead is not None and CALL.match(ahead.text, ahead.at) is not None

    def _call_arguments(
        self, name: str, macro: _Macro, todo: list[_Token], ahead: Ahead | None
    ) -> tuple[list[list[_Token]], frozenset[str]]:
        """Take the arguments of a call off `todo`, and off the text when that is used up."""
        args: list[list[_Token]] = [[]]
        depth, last = 0, len(macro.params or ()) if macro.variadic else -1
        while True:
            here = bool(todo)
            word, hidden = todo.pop() if here else (ahead.next() if ahead else "", _BARE)
            if not word and not here:
                hint = "a call cannot reach over a directive"
                raise Mistake("DL106", f"the call of macro `{name}` is not closed by `)`", hint)
            if is_blank(word):
                word = " "
            elif word == "(":
                depth += 1
                if depth == 1:
                    continue
            elif word == ")":
                depth -= 1
                if depth == 0:
                    return args, hidden
            elif word == "," and depth == 1 and len(args) != last:
                args.append([])
                continue
            if word != " " or (args[-1] and args[-1][-1][0] != " "):
                args[-1].append((word, hidden))

    def _arguments(
        self, name: str, macro: _Macro, params: tuple[str, ...], args: list[list[_Token]]
    ) -> dict[str, list[_Token]]:
        if (not params and args == [[]]) or (macro.variadic and len(args) == len(params) - 1):
            args = [*args, []][: len(params)]
        if len(args) != len(params):
            wanted = f"{len(params)} argument{'' if len(params) == 1 else 's'}"
            raise Mistake("DL106", f"macro `{name}` takes {wanted}, not {len(args)}")
        self._spend(name, 10 * sum(map(len, args)))
        trimmed = (arg[:-1] if arg and arg[-1][0] == " " else arg for arg in args)
        return dict(zip(params, trimmed, strict=True))

    def _replacement(
        self, name: str, macro: _Macro, args: dict[str, list[_Token]], hidden: frozenset[str]
    ) -> list[_Token]:
        """The body with its arguments, `#` and `##` applied; all tokens painted `hidden`."""
        body, out, at = macro.body, list[_Token](), 0
        if name == "__LINE__":
            body = (str(self.line),)
        elif name == "__FILE__":
            body = (f'"{_escaped(self.file)}"',)
        while at < len(body):
            paste = body[at] == "##"
            at += paste
            raw = paste or body[at + 1 : at + 2] == ("##",)
            if body[at] == "#" and macro.params is not None:
                at += 1
                new = [(_quoted(args[body[at]]), hidden)]
            elif body[at] in args:
                arg = args[body[at]] if raw else self.expand(args[body[at]])
                new = [(word, paint | hidden if paint else hidden) for word, paint in arg] or [("", hidden)]
            else:
                new = [(body[at], hidden)]
            if paste:
                glued = out.pop()[0] + new[0][0]
                new[:1] = [(word, hidden) for word in TOKEN.findall(glued)] or [("", hidden)]
            out += new
            at += 1
        self._spend(name, 50 + len(hidden) + sum(10 + len(word) for word, _ in out))
        return out

    def _spend(self, name: str, cost: int) -> None:
        self.room -= cost
        if self.room < 0:
            raise Mistake("DL106", f"macro `{name}` expands to too much text", "does it grow with every use?")

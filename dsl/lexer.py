"""Characters to tokens, by one regular expression.

The lexer makes the leaves of the syntax tree (names, literals), and they are the parser's tokens,
so a variable costs one object.  A line that is one ground fact becomes a single token: program
texts may hold many thousands of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TypeAlias

from everlog.core.program.values import integer
from everlog.dsl import ast
from everlog.dsl.diagnostics import Diagnostic, Report
from everlog.dsl.keywords import DIRECTIVES, KEYWORDS, words


class Token:
    """A word without a node of its own: punctuation, operators, keywords."""

    __slots__ = ("end", "pos", "type", "value")

    def __init__(self, type: str, value: str, pos: int, end: int) -> None:
        self.type, self.value, self.pos, self.end = type, value, pos, end

    def __repr__(self) -> str:
        return f"Token({self.type}, {self.value!r})"


Lexeme: TypeAlias = (
    Token
    | ast.Name
    | ast.Underscore
    | ast.Number
    | ast.Unsigned
    | ast.Float
    | ast.String
    | ast.Parameter
    | ast.FactLine
)


PUNCTUATION: dict[str, str] = (
    {".": "DOT", ",": "COMMA", ";": "SEMICOLON", ":": "COLON", ":-": "IF", "(": "LPAREN", ")": "RPAREN"}
    | {"[": "LBRACKET", "]": "RBRACKET", "{": "LBRACE", "}": "RBRACE", "|": "PIPE", "$": "DOLLAR"}
    | {"@": "AT", "!": "NOT", "<:": "SUBTYPE", "->": "MAPSTO", "<": "LT", ">": "GT", "<=": "LE"}
    | {"=": "EQ", "!=": "RELOP", ">=": "RELOP", "-": "MINUS"}
    | words("BINOP", "+ * / % ^")
)

_IDENT = r"[?A-Za-z_][?A-Za-z0-9_]*"
_MASTER = re.compile(
    r"""[ ]*(?:
        (?P<blank>(?:\s+|//[^\n]*|/\*(?:[^*]|\*(?!/))*\*/)+)
      | (?P<ip>[0-9]+\.[0-9]+\.[0-9]+\.[0-9]+)
      | (?P<float>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?)
      | (?P<unsigned>(?:0b[01]+|0x[0-9a-fA-F]+|[0-9]+)u(?![A-Za-z0-9_]))
      | (?P<number>0b[01]+|0x[0-9a-fA-F]+|[0-9]+)
      | (?P<choice>choice-domain(?![A-Za-z0-9_]))
      | (?P<ident>[?A-Za-z_][?A-Za-z0-9_]*)
      | (?P<string>"(?:\\.|[^"\\])*")
      | (?P<directive>\.(?:decl|functor|input|output|printsize|limitsize|type|comp|init|number_type
                         |symbol_type|override|pragma|plan|lattice|insert_only|strategy|view)(?=\s))
      | (?P<annotation>@!?\[)
      | \$(?P<parameter>[A-Za-z_][A-Za-z0-9_]*)  # but for `$Branch(…)` and `$component.Branch(…)`
            (?![A-Za-z0-9_] | (?:\.[?A-Za-z_][?A-Za-z0-9_]*)*\s*\()
      | (?P<mark>:-|<:|<=|>=|!=|->|[][(){}|$+\-*%^,:;.<>=!@]|/(?!\*)))
    """,
    re.VERBOSE | re.DOTALL,
)

# A ground fact alone on its line, after a line that ended a statement.
_CONSTANT = r'(?:-?[0-9]{1,40}|"[^"\\\n]*")'
_FACT = re.compile(
    rf"[ \t\r]*\n[ \t]*({_IDENT})\(({_CONSTANT}(?:[ \t]*,[ \t]*{_CONSTANT})*)\)\.(?=[ \t\r]*(?:\n|\Z))"
)
_FACT_CONSTANTS = re.compile(r'"([^"\\\n]*)"|(-?[0-9]+)')

_QUOTED = re.compile(r"'(?:\\.|[^'\\\n])*'")
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_MOST_UNCLOSED = 50  # symbols that are reported
_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_ESCAPES |= {'"': '"', "'": "'", "\\": "\\"}


def lex(text: str, report: Report) -> Iterator[Lexeme]:
    """The tokens of a text.  Reports and skips characters that begin no token.

    Cost: linear in the text.
    """
    scan = _MASTER.match
    pos, length, at_end_of_statement = 0, len(text), True
    first = _FACT.match("\n" + text)  # the very first line may be a fact
    if first is not None and _is_name(first[1]):
        yield _fact_line(first, -1)
        pos = first.end() - 1
    while pos < length:
        if at_end_of_statement:
            fact = _FACT.match(text, pos)
            if fact is not None and _is_name(fact[1]):
                yield _fact_line(fact, 0)
                pos = fact.end()
                continue
        found = scan(text, pos)
        if found is None:
            pos, symbols = _stray(text, pos, report)
            yield from symbols
            continue
        pos = found.end()
        group = found.lastgroup or ""
        if group == "blank":
            continue
        start = found.start(group)
        if group == "annotation":
            pos = _after_annotation(text, start, pos, report)
            continue
        at_end_of_statement = False
        word = text[start:pos]
        if group == "ident":
            keyword = KEYWORDS.get(word)
            if keyword is not None:
                yield Token(keyword, word, start, pos)
            elif word == "_":
                yield ast.Underscore(start, pos)
            else:
                yield ast.Name(word, start, pos)
        elif group == "mark":
            at_end_of_statement = word == "."
            yield Token(PUNCTUATION[word], word, start, pos)
        elif group == "number":
            yield ast.Number(word, start, pos)
        elif group == "string":
            yield ast.String(_unescaped(word, start, report), start, pos)
        elif group == "directive":
            yield Token(DIRECTIVES[word], word, start, pos)
        elif group == "float":
            yield ast.Float(word, start, pos)
        elif group == "unsigned":
            yield ast.Unsigned(word[:-1], start, pos)
        elif group == "ip":
            yield ast.Number(_address(word, start, report), start, pos)
        elif group == "parameter":
            yield ast.Parameter(word, start - 1, pos)
        else:
            yield Token("CHOICEDOMAIN", word, start, pos)


_BRACKET = re.compile(r'"(?:\\.|[^"\\])*"|[][(){}]')


def _after_annotation(text: str, start: int, pos: int, report: Report) -> int:
    """The end of `@[…]`, which has no effect and may hold any balanced words."""
    depth = 1
    for found in _BRACKET.finditer(text, pos):
        if found[0] in "([{":
            depth += 1
        elif found[0] in ")]}":
            depth -= 1
            if depth == 0:
                return found.end()
    message = "this annotation is never closed"
    report.items.append(Diagnostic("DL002", message, start, pos, hint="close it with `]`"))
    return len(text)


def _is_name(word: str) -> bool:
    return word not in KEYWORDS and word != "_"


def _fact_line(found: re.Match[str], shift: int) -> ast.FactLine:
    constants = found[2]
    values: list[int | str]
    if '"' in constants:
        values = [int(number) if number else text for text, number in _FACT_CONSTANTS.findall(constants)]
    else:
        values = list(map(int, constants.split(",")))
    return ast.FactLine(found[1], values, found.start(1) + shift, found.end() + shift)


def _unescaped(word: str, start: int, report: Report) -> str:
    if "\\" not in word:
        return word[1:-1]

    def replaced(found: re.Match[str]) -> str:
        if found[1] not in _ESCAPES:
            message = f"unknown escape sequence `\\{found[1]}` in a symbol"
            place = start + 1 + found.start()
            hint = "write `\\\\` for a backslash; known are \\\" \\' \\\\ \\a \\b \\f \\n \\r \\t \\v"
            report.items.append(Diagnostic("DL003", message, place, place + 2, hint=hint))
            return found[0]
        return _ESCAPES[found[1]]

    return _ESCAPED.sub(replaced, word[1:-1])


def _in_double_quotes(found: re.Match[str], report: Report) -> ast.String:
    """Report a symbol in single quotes, and read it as it is meant."""
    inside = found[0][1:-1].replace("\\'", "'")
    shown = inside if len(inside) <= 40 else f"{inside[:37]}…"
    hint = "write {}".format('"' + shown.replace('"', '\\"') + '"')
    message = "symbols stand in double quotes"
    report.items.append(Diagnostic("DL001", message, found.start(), found.end(), hint=hint))
    return ast.String(inside, found.start(), found.end())


def _address(word: str, start: int, report: Report) -> str:
    """An IPv4 address as its 32 bits (signed, as in Soufflé's scanner)."""
    parts = [integer(part) for part in word.split(".")]
    if max(parts) > 255:
        shown = word if len(word) <= 40 else f"{word[:37]}…"
        message, hint = f"`{shown}` is no IPv4 address", "each part is 0 to 255"
        report.items.append(Diagnostic("DL004", message, start, start + len(word), hint=hint))
        return "0"
    bits = (parts[0] << 24) | (parts[1] << 16) | (parts[2] << 8) | parts[3]
    return str(bits - 2**32 if bits >= 2**31 else bits)


def _stray(text: str, pos: int, report: Report) -> tuple[int, list[ast.String]]:
    """Report what begins no token: where to go on, and the symbol that was in single quotes."""
    quoted = _QUOTED.match(text, pos)
    if quoted is not None:
        return quoted.end(), [_in_double_quotes(quoted, report)]
    return _after_stray(text, pos, report), []


def _after_stray(text: str, pos: int, report: Report) -> int:
    """Report a character that begins no token; return where to go on."""
    rest = text[pos : pos + 2]
    if rest == "/*":
        report.items.append(
            Diagnostic("DL002", "this comment is never closed", pos, pos + 2, hint="close it with `*/`")
        )
        return len(text)
    if rest.startswith('"'):
        stop = text.find("\n", pos)
        stop = len(text) if stop < 0 else stop
        message = "this symbol is never closed"
        report.items.append(Diagnostic("DL002", message, pos, stop, hint='close it with `"`'))
        if sum(item.message == message for item in report.items[-2 * _MOST_UNCLOSED :]) >= _MOST_UNCLOSED:
            return len(text)  # the rest was searched for the closing quote
        return stop
    shown = rest[0] if rest[0].isprintable() else f"U+{ord(rest[0]):04X}"
    report.items.append(Diagnostic("DL001", f"unexpected character `{shown}`", pos, pos + 1))
    return pos + 1

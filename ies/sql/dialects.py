"""The four dialects: names, types, constants, and exact arithmetic.

Numbers of the calculus are exact rationals.  PostgreSQL stores them as NUMERIC, whole or with
decimals; the others as integers of 64 or 128 bits.  A quotient that a dialect cannot hold, and an
overflow, end the statement with an error.  SQLite would go on with a float, so its scripts test the
type of each result.
"""

from __future__ import annotations

import re
from fractions import Fraction
from itertools import groupby

from attrs import frozen

from everlog.ies.nrc.types import Base
from everlog.ies.sql.errors import SqlError
from everlog.ies.sql.symbolic_values import ADD, ATOM, MULTIPLY, Constant, Kind, Scalar, kind_of

RESERVED = frozenset(
    """abort add all alter analyze and any array as asc before begin between both by case cast check collate column
    commit conflict constraint create cross current delete desc distinct do drop each else end except exists false
    fetch filter for foreign from full function generated grant group having if in index inner insert intersect
    interval into is isnull join key lateral leading left like limit natural new not notnull null of offset old on
    only or order outer over partition plan pragma primary query raise recursive references release replace
    returning right row rows select set some table temp then to trailing transaction trigger true union unique
    update user using values view when where window with without""".split()
)

DEFAULT_NODE = -(2**63 - 1)  # "" among integers: fills unused columns, and is no node

WHOLE = "a result is not a whole number of 64 bits"
ZERO = "division by zero"
NOT_WHOLE = "a quotient is not a whole number, and this database has no exact fractions"


def printable(text: str) -> str:
    r"""The text on one line, without characters that end or reorder a comment.

    >>> printable("a\nDROP TABLE b;\u2028-- \u202ec")
    'a DROP TABLE b; --  c'
    """
    return "".join(char if char.isprintable() else " " for char in text)


def _escaped(char: str) -> str:
    if char == "\\":
        return "\\\\"
    if char.isprintable() and char != "'":
        return char
    return f"\\u{ord(char):04X}" if ord(char) < 1 << 16 else f"\\U{ord(char):08X}"


@frozen
class Dialect:
    """A dialect and the type of nodes (and of every other named base type)."""

    name: str
    node_type: str  # integer | text

    def quoted(self, name: str) -> str:
        """The name as an identifier, quoted if needed.

        >>> Dialect("sqlite", "text").quoted("edge"), Dialect("sqlite", "text").quoted("order")
        ('edge', '"order"')
        """
        plain = re.fullmatch(r"[a-z_][a-z0-9_]*", name) and not re.fullmatch(
            r"t\d+", name
        )  # not one of our aliases
        if plain and name not in RESERVED:
            return name
        quote = "`" if self.name == "spark" else '"'
        return quote + name.replace(quote, 2 * quote) + quote

    def string(self, text: str) -> str:
        r"""The text as a literal on one line of printable characters.

        >>> Dialect("sqlite", "text").string("it's"), Dialect("sqlite", "text").string("a\nb")
        ("'it''s'", "('a' || char(10) || 'b')")
        >>> print(Dialect("postgres", "text").string("a\nb\\"))
        E'a\u000Ab\\'
        >>> print(Dialect("spark", "text").string("it's"))
        'it\u0027s'
        """
        if "\0" in text or any("\ud800" <= char <= "\udfff" for char in text):
            raise SqlError(f"the text {text!r} has a character that no database can hold")
        if self.name == "spark":
            return "'" + "".join(_escaped(char) for char in text) + "'"
        if text.isprintable():
            return "'" + text.replace("'", "''") + "'"
        if self.name == "postgres":
            return "E'" + "".join(_escaped(char) for char in text) + "'"
        code = "char" if self.name == "sqlite" else "chr"
        parts = [
            self.string("".join(chars)) if printable else " || ".join(f"{code}({ord(char)})" for char in chars)
            for printable, chars in groupby(text, str.isprintable)
        ]
        return f"({' || '.join(parts)})"

    def message(self, text: str) -> str:
        """The text of an error as a literal."""
        return self.string(printable(text))

    def column_type(self, base: Base) -> str:
        kind = kind_of(base)
        if kind == "bool":
            return "BOOLEAN"
        if kind == "num":
            return {"sqlite": "INTEGER", "postgres": "NUMERIC", "duckdb": "HUGEINT", "spark": "BIGINT"}[self.name]
        if self.node_type == "text":
            return "STRING" if self.name == "spark" else "TEXT"
        return "INTEGER" if self.name == "sqlite" else "BIGINT"

    def constant(self, value: Constant, kind: Kind | None = None) -> Scalar:
        match value:
            case bool():
                return Scalar("TRUE" if value else "FALSE", "bool", constant=value)
            case str():
                if self.node_type == "integer" and value == "":
                    return Scalar(str(DEFAULT_NODE), "named", ADD, constant=value)
                if self.node_type != "text":
                    raise SqlError(
                        f'the constant "{value}" is text: the node type must be text, not {self.node_type}'
                    )
                return Scalar(self.string(value), "named", constant=value)
            case int() | Fraction():
                return Scalar(self._number(value), "num", ATOM if value >= 0 else ADD, constant=value)

    def _number(self, value: int | Fraction) -> str:
        value = Fraction(value)
        if self.name == "postgres":
            rest = value.denominator
            for prime in (2, 5):
                while rest % prime == 0:
                    rest //= prime
            if rest != 1:
                raise SqlError(f"the constant {value} has no exact decimals, so postgres cannot hold it")
            digits = 0
            while (value * 10**digits).denominator != 1:
                digits += 1
            whole = str(abs(int(value * 10**digits))).rjust(digits + 1, "0")
            text = whole[: len(whole) - digits] + ("." + whole[len(whole) - digits :] if digits else "")
            return ("-" if value < 0 else "") + text + "::NUMERIC"
        if value.denominator != 1:
            raise SqlError(f"the constant {value} is not a whole number: {self.name} has no exact fractions here")
        bits = 127 if self.name == "duckdb" else 63
        if not -(2**bits) < value < 2**bits:
            raise SqlError(
                f"the constant {value} does not fit into the {bits + 1} bits of a number in {self.name}"
            )
        return str(value) + {"duckdb": "::HUGEINT", "spark": "L"}.get(self.name, "")

    # ── arithmetic ───────────────────────────────────────────────────────────────────────────────

    def arithmetic(self, op: str, left: Scalar, right: Scalar, modulus: int, in_trigger: bool) -> Scalar:
        """left op right, folded if both are constants."""
        if modulus:
            return self._modular(op, left, right, modulus, in_trigger)
        a, b = left.constant, right.constant
        if isinstance(a, (int, Fraction)) and isinstance(b, (int, Fraction)):
            if op == "/" and b == 0:
                raise SqlError(f"{a} / 0: {ZERO}")
            exact = Fraction(a)
            made = exact + b if op == "+" else exact - b if op == "-" else exact * b if op == "*" else exact / b
            return self.constant(int(made) if made.denominator == 1 else made)
        columns, heavy = left.columns | right.columns, left.heavy or right.heavy
        if op == "/":
            return Scalar(self._quotient(left, right, in_trigger), "num", columns=columns, heavy=True)
        if (op in "+-" and b == 0) or (op == "*" and b == 1):
            return left
        if (op == "+" and a == 0) or (op == "*" and a == 1):
            return right
        level = MULTIPLY if op == "*" else ADD
        text = f"{left.at(level)} {op} {right.at(level + 1)}"
        return Scalar(text, "num", level, columns, heavy=heavy, whole=self.name != "sqlite")

    def _quotient(self, left: Scalar, right: Scalar, in_trigger: bool) -> str:
        match self.name:
            case "sqlite":
                if not in_trigger:
                    raise SqlError("sqlite: a division in an initial value cannot raise an error")
                a, b = self.sure(left, in_trigger), self.sure(right, in_trigger)
                return (
                    f"(SELECT CASE WHEN q.b = 0 THEN RAISE(ABORT, '{ZERO}') WHEN q.a % q.b <> 0 "
                    f"THEN RAISE(ABORT, '{NOT_WHOLE}') ELSE q.a / q.b END "
                    f"FROM (SELECT {a.text} AS a, {b.text} AS b) AS q)"
                )
            case "spark":
                a, b = left, right
                return (
                    f"CASE WHEN {b.at(MULTIPLY)} = 0 THEN raise_error('{ZERO}') "
                    f"WHEN {a.at(MULTIPLY)} % {b.at(ATOM)} <> 0 THEN raise_error('{NOT_WHOLE}') "
                    f"ELSE {a.at(MULTIPLY)} DIV {b.at(ATOM)} END"
                )
            case _:
                return f"everlog_divide({left.text}, {right.text})"

    def _modular(self, op: str, left: Scalar, right: Scalar, p: int, in_trigger: bool) -> Scalar:
        """Arithmetic in the field of p elements; both sides are first reduced to 0..p - 1."""
        roots = {"sqlite": 31, "spark": 31, "duckdb": 63}
        if self.name in roots and p > 2 ** roots[self.name]:
            raise SqlError(
                f"arithmetic modulo {p}: {self.name} multiplies whole numbers of {2 * roots[self.name] + 2} bits, "
                f"so the prime must be less than 2^{roots[self.name]}"
            )
        columns, heavy = left.columns | right.columns, left.heavy or right.heavy
        if op == "/":
            inverse = Scalar(
                self._inverse(self._reduced(right, p, in_trigger), p), "num", columns=right.columns, heavy=True
            )
            return self._modular("*", left, _in_field(inverse, p), p, in_trigger)
        a, b = self._reduced(left, p, in_trigger), self._reduced(right, p, in_trigger)
        level = MULTIPLY if op == "*" else ADD
        prime = self._number(p)
        more = f" + {prime}" if op == "-" else ""
        text = f"({a.at(level)} {op} {b.at(level + 1)}{more}) % {prime}"
        return _in_field(Scalar(text, "num", MULTIPLY, columns, heavy=heavy), p)

    def _reduced(self, value: Scalar, p: int, in_trigger: bool) -> Scalar:
        if isinstance(value.constant, int):
            return self.constant(value.constant % p)
        if isinstance(value, _Reduced) and value.prime == p:
            return value
        value = self.sure(value, in_trigger)
        prime = self._number(p)
        text = f"({value.at(MULTIPLY)} % {prime} + {prime}) % {prime}"
        return Scalar(text, "num", MULTIPLY, value.columns, heavy=value.heavy)

    def _inverse(self, value: Scalar, p: int) -> str:
        match self.name:
            case "sqlite":  # Euclid, one row per step; r and t are the remainders, s and u factors of the value
                return (
                    "(WITH RECURSIVE euclid(r, t, s, u) AS "
                    f"(SELECT {p}, {value.text}, 0, 1 UNION ALL "
                    "SELECT t, r % t, u, s - (r / t) * u FROM euclid WHERE t > 0) "
                    f"SELECT CASE WHEN r = 1 THEN (s + {p}) % {p} ELSE RAISE(ABORT, '{ZERO} modulo {p}') END "
                    "FROM euclid WHERE t = 0)"
                )
            case "spark":  # repeated squaring: b^(p - 2)
                bits = ", ".join(bin(p - 2)[2:])
                return (
                    f"CASE WHEN {value.at(MULTIPLY)} = 0 THEN raise_error('{ZERO} modulo {p}') ELSE "
                    f"aggregate(array({bits}), 1L, (r, bit) -> "
                    f"(r * r % {p}) * (CASE WHEN bit = 1 THEN {value.text} ELSE 1L END) % {p}) END"
                )
            case _:
                return f"everlog_inverse({value.text}, {p})"

    def sure(self, value: Scalar, in_trigger: bool = True) -> Scalar:
        """The value, or an error if SQLite made a float of a large number."""
        if value.whole or not in_trigger:
            return value
        text = (
            f"(SELECT CASE typeof(q.n) WHEN 'integer' THEN q.n ELSE RAISE(ABORT, '{WHOLE}') END "
            f"FROM (SELECT {value.text} AS n) AS q)"
        )
        return Scalar(text, "num", columns=value.columns, heavy=value.heavy)

    def functions(self, text: str) -> list[str]:
        """Definitions of our functions that a text calls."""
        return [made for name, made in FUNCTIONS.get(self.name, {}).items() if name in text]


@frozen
class _Reduced(Scalar):
    """A number between 0 and a prime."""

    prime: int = 0


def _in_field(value: Scalar, p: int) -> _Reduced:
    return _Reduced(value.text, "num", value.level, value.columns, heavy=value.heavy, prime=p)


FUNCTIONS: dict[str, dict[str, str]] = {
    "postgres": {
        "everlog_divide(": f"""\
CREATE OR REPLACE FUNCTION everlog_divide(a NUMERIC, b NUMERIC) RETURNS NUMERIC LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  q NUMERIC;
BEGIN
  IF b = 0 THEN RAISE EXCEPTION '{ZERO}'; END IF;
  q := trim_scale(a / b);
  IF q * b <> a THEN RAISE EXCEPTION 'the quotient of % and % has no exact decimals', a, b; END IF;
  RETURN q;
END $$""",
        "everlog_inverse(": f"""\
CREATE OR REPLACE FUNCTION everlog_inverse(a NUMERIC, p NUMERIC) RETURNS NUMERIC LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  r NUMERIC := p; t NUMERIC := a; s NUMERIC := 0; u NUMERIC := 1; q NUMERIC;
BEGIN
  WHILE t > 0 LOOP
    q := div(r, t);
    SELECT t, r - q * t, u, s - q * u INTO r, t, s, u;
  END LOOP;
  IF r <> 1 THEN RAISE EXCEPTION '{ZERO} modulo %', p; END IF;
  RETURN mod(s + p, p);
END $$""",
    },
    "duckdb": {
        "everlog_divide(": f"""\
CREATE OR REPLACE MACRO everlog_divide(a, b) AS (SELECT
  CASE WHEN q.d = 0 THEN error('{ZERO}') WHEN q.n % q.d <> 0 THEN error('{NOT_WHOLE}') ELSE q.n // q.d END
  FROM (SELECT a AS n, b AS d) AS q)""",
        # repeated squaring: a^(p - 2); pairs of a bit and the result so far
        "everlog_inverse(": f"""\
CREATE OR REPLACE MACRO everlog_inverse(a, p) AS (SELECT CASE WHEN q.d = 0 THEN error('{ZERO} modulo ' || p) ELSE
  list_reduce(list_transform(range(64), lambda i: (1::HUGEINT, (((p - 2)::BIGINT) >> (63 - i)::INTEGER) & 1)),
    lambda r, bit: ((r[1] * r[1] % p) * (CASE WHEN bit[2] = 1 THEN q.d ELSE 1 END) % p, bit[2]))[1] END
  FROM (SELECT a::HUGEINT AS d) AS q)""",
    },
}

DIALECTS = ("sqlite", "postgres", "duckdb", "spark")

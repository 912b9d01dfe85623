"""Patterns of `match`, from Soufflé's ECMAScript syntax to that of Python.

The two languages share most signs.  But in ECMAScript `a++` is a repeated repetition (in Python it
is possessive), `a{` is an error, `[]` is the empty class, `\\q` is the letter q, `.` excludes line
ends, and `(?i)` and `(?<=a)` do not exist.  So a pattern is parsed by ECMAScript's grammar and
printed for Python, byte by byte.
"""

from __future__ import annotations

_CLASSES = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "blank": r" \t",
    "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\s",
    "upper": "A-Z",
    "xdigit": "0-9A-Fa-f",
    "d": "0-9",
    "s": r"\s",
    "w": r"\w",
}
_CONTROLS = {"0": 0, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}


class Malformed(ValueError):
    """The text is not an ECMAScript pattern."""


def as_python(pattern: str) -> str:
    """The pattern for `re` that matches the same strings; one character is one byte.

    >>> as_python("a.b"), as_python("[]"), as_python("x++")
    ('a[^\\\\n\\\\r]b', '(?!)', '(?:(?:x)+)+')

    Raises `Malformed`.  Cost: linear in the pattern.
    """
    reader = _Reader(pattern)
    out = reader.disjunction()
    if reader.at < len(pattern):
        raise Malformed(f"`{pattern[reader.at]}` is not expected")
    return out


class _Reader:
    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0

    def peek(self, word: str) -> bool:
        return self.text.startswith(word, self.at)

    def take(self, word: str) -> bool:
        found = self.peek(word)
        if found:
            self.at += len(word)
        return found

    def next(self) -> str:
        if self.at >= len(self.text):
            raise Malformed("the pattern ends too early")
        self.at += 1
        return self.text[self.at - 1]

    # ── outside of brackets ──────────────────────────────────────────────────────────────────

    def disjunction(self) -> str:
        parts = [self.alternative()]
        while self.take("|"):
            parts.append(self.alternative())
        return "|".join(parts)

    def alternative(self) -> str:
        out = []
        while self.at < len(self.text) and self.text[self.at] not in "|)":
            out.append(self.term())
        return "".join(out)

    def term(self) -> str:
        for mark, assertion in (("^", r"\A"), ("$", r"\Z"), (r"\b", r"\b"), (r"\B", r"\B")):
            if self.take(mark):
                return assertion
        for mark in ("(?=", "(?!"):
            if self.take(mark):
                return self.closed(mark)
        atom = self.atom()
        while (times := self.quantifier()) is not None:
            atom = f"(?:{atom}){times}"
        return atom

    def atom(self) -> str:
        char = self.next()
        match char:
            case ".":
                return r"[^\n\r]"
            case "[":
                return self.bracket()
            case "(":
                if self.take("?:"):
                    return self.closed("(?:")
                return self.closed("(")
            case "\\":
                return self.escape()
            case "*" | "+" | "?" | "{":
                raise Malformed(f"nothing stands before `{char}`")
        return _literal(char)

    def closed(self, opening: str) -> str:
        if opening == "(" and self.peek("?"):
            raise Malformed("`(?` needs `:`, `=` or `!`")
        inner = self.disjunction()
        if not self.take(")"):
            raise Malformed("`)` is missing")
        return f"{opening}{inner})"

    def quantifier(self) -> str | None:
        for mark in "*+?":
            if self.take(mark):
                return mark + ("?" if self.take("?") else "")
        if not self.take("{"):
            return None
        least = self.digits()
        times = least
        if self.take(","):
            most = "" if self.peek("}") else self.digits()
            if most and int(most) < int(least):
                raise Malformed("a repetition ends before it begins")
            times += "," + most
        if not self.take("}"):
            raise Malformed("`}` is missing")
        return f"{{{times}}}" + ("?" if self.take("?") else "")

    def digits(self) -> str:
        """Digits without zeros in front."""
        start = self.at
        while self.at < len(self.text) and self.text[self.at] in "0123456789":
            self.at += 1
        if start == self.at:
            raise Malformed("a number is missing")
        digits = self.text[start : self.at].lstrip("0") or "0"
        if len(digits) > 10:
            raise Malformed("a number is too large")
        return digits

    def escape(self) -> str:
        if self.at < len(self.text) and self.text[self.at] in "123456789":
            return f"(?:\\{self.digits()})"
        char = self.next()
        return f"\\{char}" if char in "dDsSwW" else _literal(self.escaped(char))

    def escaped(self, char: str) -> str:
        """The character that `\\char` stands for."""
        if char in _CONTROLS:
            return chr(_CONTROLS[char])
        if char == "c":
            return self.next()
        if char in "xu":
            digits = "".join(self.next() for _ in range(2 if char == "x" else 4))
            try:
                return chr(int(digits, 16) & 0xFF)
            except ValueError:
                raise Malformed(f"`{digits}` is no hexadecimal number") from None
        return char

    # ── inside of brackets ───────────────────────────────────────────────────────────────────

    def bracket(self) -> str:
        negated = self.take("^")
        items: list[str] = []
        while not self.take("]"):
            first = self.member()
            if self.peek("-") and not self.peek("-]") and len(first) == 1:
                self.take("-")
                last = self.member()
                if len(last) != 1 or last < first:
                    raise Malformed("a range of characters is the wrong way round")
                items.append(f"{_literal(first)}-{_literal(last)}")
            else:
                items.append(_literal(first) if len(first) == 1 else first)
        if not items:
            return r"(?s:.)" if negated else "(?!)"
        return f"[{'^' if negated else ''}{''.join(items)}]"

    def member(self) -> str:
        """A character, or a class in Python's syntax (always longer than one character)."""
        for kind in ":.=":
            if self.take(f"[{kind}"):
                end = self.text.find(f"{kind}]", self.at)
                name = self.text[self.at : end]
                if end < 0 or (kind != ":" and len(name) != 1) or (kind == ":" and name not in _CLASSES):
                    raise Malformed("no such class of characters")
                self.at = end + 2
                if kind == ":":
                    return _CLASSES[name]
                return name if kind == "." or name.swapcase() == name else name + name.swapcase()
        char = self.next()
        if char != "\\":
            return char
        char = self.next()
        if char in "dDsSwW":
            return f"\\{char}"
        return "\b" if char == "b" else self.escaped(char)


def _literal(char: str) -> str:
    return char if char.isascii() and char.isalnum() else f"\\x{ord(char):02x}"

"""The bytes of a text file as UTF-8, with the parameter `encoding`.

In Soufflé symbols are bytes, and a file in another encoding is silently read as UTF-8.  Here a byte
that is not UTF-8 is an error, unless `encoding=latin-1` (or any other that Python knows) says what
it means, or `encoding=bytes` keeps it as it is.  A byte order mark at the beginning is not part of
the text.
"""

from __future__ import annotations

import codecs

from everlog.core.program.fact_rows import shown
from everlog.files.text_values import FactsError

UTF8 = "utf-8"
BYTES = "bytes"  # unchanged, UTF-8 or not
MARK = codecs.BOM_UTF8
_WIDE = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def utf8_bytes(data: bytes, encoding: str, file: str) -> bytes:
    r"""The text in UTF-8, without a byte order mark; UTF-8 itself is not checked.

    >>> utf8_bytes(b"\xef\xbb\xbfx", "utf-8", "f"), utf8_bytes(b"\xe9", "latin-1", "f")
    (b'x', b'\xc3\xa9')
    """
    if encoding == BYTES or is_utf8(encoding):
        return data[len(MARK) :] if data.startswith(MARK) else data
    if data.startswith(MARK) and codec_of(encoding) != "utf-8-sig":
        raise FactsError(
            f"{file}: begins with the byte order mark of UTF-8, but encoding={shown(encoding)} is set"
        )
    try:
        return data.decode(encoding).removeprefix("\ufeff").encode()
    except UnicodeError as problem:
        line = data.count(b"\n", 0, problem.start) + 1 if isinstance(problem, UnicodeDecodeError) else 1
        raise FactsError(f"{file}:{line}: the file is not {encoding}: {problem}") from None


def is_utf8(encoding: str) -> bool:
    """Whether this is a name of UTF-8.

    >>> is_utf8("UTF8"), is_utf8("latin-1")
    (True, False)
    """
    return codec_of(encoding) == UTF8


def cut_by_bytes(encoding: str) -> bool:
    """Whether bytes can be split into lines before they are decoded, as in UTF-8."""
    return encoding == BYTES or is_utf8(encoding)


def codec_of(encoding: str) -> str:
    """Python's name of an encoding; FactsError if it is unknown."""
    if encoding == BYTES:
        return BYTES
    try:
        codec = codecs.lookup(encoding)
        "".encode(encoding)  # raises LookupError for codecs such as `hex` that do not encode texts
    except (LookupError, ValueError):
        raise FactsError(
            f"unknown encoding={shown(encoding)}: use utf-8, latin-1, cp1252, utf-16 or any other"
            f" that Python has, or `{BYTES}`"
        ) from None
    return codec.name


def has_wrong_byte(text: str) -> bool:
    """Whether a text has a surrogate escape, for a byte that is not UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def wrong_byte(text: str, first: bool = False) -> str | None:
    r"""The error for a text with a surrogate escape; None if it has none.

    >>> print(wrong_byte("caf\udce9"))
    the byte 0xe9 in 'caf\udce9' is not UTF-8; set encoding=latin-1 or similar, or encoding=bytes
    """
    found = next((character for character in text if "\udc80" <= character <= "\udcff"), None)
    if found is None:
        return None
    said = "encoding=utf-16" if first and text.encode("utf-8", "surrogateescape").startswith(_WIDE) else None
    said = said or "encoding=latin-1 or similar"
    return f"the byte {ord(found) - 0xDC00:#04x} in {shown(text)} is not UTF-8; set {said}, or encoding={BYTES}"

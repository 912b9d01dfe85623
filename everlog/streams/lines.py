"""Lines from a file, standard input, a pipe or a socket, without waiting.

`take` returns the lines that have arrived.  The end of the input is final, unless the reader is
*live*: then a file may grow, a pipe may get another writer, a listening socket another peer.

A line that is too long is cut at once, and the rest of it is skipped.

A file can be read again from an offset; for the others, the sender decides where to begin.
"""

from __future__ import annotations

import os
import select
import socket
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from attrs import evolve, frozen

from everlog.files.location import reason
from everlog.files.text_values import FactsError
from everlog.streams.sockets import Address

_PIECE = 1 << 20
_WINDOW = 1 << 12  # bytes before an offset in its checksum
_MOST_LINES = 10_000  # of one `take`, about
LONGEST = 64 << 20  # bytes of a line: a sender without newlines must not fill the memory
_SHOWN = 1 << 10  # bytes that are kept of a longer line


@frozen
class Line:
    """A line without its end; `begin` and `end` are offsets in the input.

    `is_last` says that its sender has gone: others may come, and start anew.  A line that is too
    long has only its beginning here.
    """

    data: bytes
    number: int
    begin: int
    end: int
    is_last: bool = False
    is_too_long: bool = False

    @property
    def is_cut(self) -> bool:
        """Whether it has no newline: its writer has not finished, or was stopped."""
        return not self.is_too_long and self.end == self.begin + len(self.data)


class Lines(Protocol):
    """A source of lines."""

    def take(self) -> list[Line] | None:
        """The lines that have arrived; None at the end."""

    def fileno(self) -> int | None:
        """A descriptor to wait on; None if the caller has to poll."""

    def close(self) -> None: ...


class Cutter:
    """Splits bytes into lines; an incomplete line waits for the next piece."""

    def __init__(self, offset: int = 0, number: int = 0) -> None:
        self._rest: list[bytes] = []
        self._waiting = 0
        self._skipping = False  # the rest of a line that was too long
        self.offset, self.number = offset, number

    def lines(self, piece: bytes) -> Iterator[Line]:
        if self._skipping:
            skipped, end, piece = piece.partition(b"\n")
            self.offset += len(skipped) + len(end)
            self._skipping = not end
        first, *others = piece.split(b"\n")
        self._rest.append(first)
        for data in others:
            whole, self._rest = b"".join(self._rest), [data]
            yield self._line(whole, len(whole) + 1)
        self._waiting = len(self._rest[-1]) + (0 if others else self._waiting)
        if self._waiting > LONGEST:
            whole, self._rest, self._waiting, self._skipping = b"".join(self._rest), [], 0, True
            yield evolve(self._line(whole, len(whole)), data=whole[:_SHOWN], is_too_long=True)

    def last(self, is_last: bool = True) -> Line:
        """The incomplete last line, which may be empty."""
        data, self._rest, self._waiting, self._skipping = b"".join(self._rest), [], 0, False
        return self._line(data, len(data), is_last)

    def _line(self, data: bytes, length: int, is_last: bool = False) -> Line:
        begin, self.offset, self.number = self.offset, self.offset + length, self.number + bool(length)
        return Line(data, self.number, begin, self.offset, is_last)


class FileLines:
    """A regular file from an offset on; FactsError if it is cut or replaced meanwhile."""

    def __init__(self, path: Path, live: bool, offset: int = 0, number: int = 0) -> None:
        self._path, self._live = path, live
        try:
            self._file = path.open("rb")
        except OSError as problem:
            raise FactsError(f"cannot read {path}: {reason(problem)}") from None
        self._file.seek(offset)
        self._cutter = Cutter(offset, number)
        self._ended = False
        self._sum = self.sum_before(offset)

    def take(self) -> list[Line] | None:
        if self._ended:
            return None
        if self._live and not self._is_the_same():
            raise FactsError(
                f"{self._path} was cut or replaced while it was read: start again, or with another name"
            )
        piece = self._file.read(_PIECE)
        if piece or self._live:
            self._sum = self.sum_before(self._file.tell())
            return list(self._cutter.lines(piece))
        self._ended = True
        return [self._cutter.last()]

    def _is_the_same(self) -> bool:
        """Whether the name still means this file, and it was not cut."""
        try:
            there = os.path.samestat(os.fstat(self._file.fileno()), os.stat(self._path))
        except FileNotFoundError:
            return True  # the file was removed, but is still open here
        return there and self.sum_before(self._file.tell()) == self._sum

    def sum_before(self, offset: int) -> int:
        """A checksum of the bytes before an offset; -1 if they do not exist."""
        if os.fstat(self._file.fileno()).st_size < offset:
            return -1
        size = min(offset, _WINDOW)
        return zlib.crc32(os.pread(self._file.fileno(), size, offset - size))

    def fileno(self) -> int | None:
        return None

    def close(self) -> None:
        self._file.close()


class PipeLines:
    """Standard input or a named pipe, whose writers may change."""

    def __init__(self, path: Path | None, live: bool) -> None:
        self._path, self._live = path, live
        self._cutter = Cutter()
        self._descriptor = self._opened()
        self._ended = False

    def _opened(self) -> int:
        if self._path is None:
            return 0
        try:
            return os.open(self._path, os.O_RDONLY | os.O_NONBLOCK)
        except OSError as problem:
            raise FactsError(f"cannot read {self._path}: {reason(problem)}") from None

    def take(self) -> list[Line] | None:
        if self._ended:
            return None
        lines: list[Line] = []
        while len(lines) < _MOST_LINES and select.select([self._descriptor], [], [], 0)[0]:
            try:
                piece = os.read(self._descriptor, _PIECE)
            except BlockingIOError:
                break
            lines += self._cutter.lines(piece)
            if not piece:
                self._end()
                lines.append(self._cutter.last(self._ended))  # otherwise another writer continues
                break
        return lines

    def _end(self) -> None:
        if self._live and self._path is not None:
            os.close(self._descriptor)
            self._descriptor = self._opened()
        else:
            self._ended = True

    def fileno(self) -> int | None:
        return self._descriptor

    def close(self) -> None:
        if self._path is not None:
            os.close(self._descriptor)


class SocketLines:
    """A socket: one peer that we connect to, or clients one after another."""

    def __init__(self, address: Address, live: bool) -> None:
        self._address, self._live = address, live
        self._listening: socket.socket | None = address.listen() if address.listens else None
        self._peer: socket.socket | None = None if address.listens else address.connect()
        self._cutter = Cutter()
        self._ended = False

    def take(self) -> list[Line] | None:
        if self._ended:
            return None
        if self._peer is None:
            assert self._listening is not None
            try:
                self._peer, _ = self._listening.accept()
            except BlockingIOError:
                return []
        lines: list[Line] = []
        while len(lines) < _MOST_LINES and select.select([self._peer], [], [], 0)[0]:
            try:
                piece = self._peer.recv(_PIECE)
            except ConnectionError:
                piece = b""
            lines += self._cutter.lines(piece)
            if not piece:
                lines.append(self._cutter.last())
                self._peer.close()
                self._peer = None
                self._ended = not (self._live and self._listening is not None)
                break
        return lines

    def fileno(self) -> int | None:
        end = self._peer if self._peer is not None else self._listening
        return None if end is None else end.fileno()

    def close(self) -> None:
        for end in (self._peer, self._listening):
            if end is not None:
                end.close()
        if self._listening is not None and self._address.path is not None:
            Path(self._address.path).unlink(missing_ok=True)

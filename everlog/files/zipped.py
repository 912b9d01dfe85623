"""Compressed bytes: gzip and zstd.

A reader recognizes compression by the first bytes, whatever the name.  A writer compresses if a
parameter says so (`compress=true`, `compress=zstd`, or Spark's word, `compression=gzip`), or if
the name ends in `.gz` or `.zst`.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from everlog.core.program.fact_rows import shown
from everlog.extras import MissingPackage, optional
from everlog.files.text_values import FactsError

SUFFIXES: Mapping[str, str] = {".gz": "gzip", ".zst": "zstd"}
_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
_LEVEL: dict[str, Any] = {"level": 3, "write_checksum": True}
_NAMES = {"true": "", "gzip": "gzip", "zstd": "zstd", "false": "none", "none": "none", "uncompressed": "none"}


def unzipped(data: bytes, source: str) -> bytes:
    """The data, decompressed if it is gzip or zstd.

    >>> unzipped(gzip.compress(b"a"), "x"), unzipped(b"a", "x")
    (b'a', b'a')
    """
    if data.startswith(_GZIP):
        try:
            return gzip.decompress(data)
        except (OSError, EOFError, zlib.error) as problem:
            raise FactsError(f"{source}: begins like a gzip file but is not one: {problem}") from None
    return _frames(data, source) if data.startswith(_ZSTD) else data


def _frames(data: bytes, source: str) -> bytes:
    """All frames of a zstd file; each must be complete."""
    zstd = _zstandard(source)
    parts: list[bytes] = []
    while data:
        frame = zstd.ZstdDecompressor().decompressobj()
        try:
            parts.append(frame.decompress(data))
        except zstd.ZstdError as problem:
            raise FactsError(f"{source}: begins like a zstd file but is not one: {problem}") from None
        if not frame.eof:
            raise FactsError(f"{source}: begins like a zstd file but is not one: it ends too early")
        data = frame.unused_data
    return b"".join(parts)


def zipped(data: bytes, method: str | None, target: str) -> bytes:
    match method:
        case None:
            return data
        case "gzip":
            return gzip.compress(data, compresslevel=6, mtime=0)
        case _:
            packed: bytes = _zstandard(target).ZstdCompressor(**_LEVEL).compress(data)
            return packed


@contextmanager
def zipping(raw: BinaryIO, method: str | None) -> Iterator[Any]:
    """A stream that compresses into `raw`."""
    if method is None:
        yield raw
    elif method == "gzip":
        with gzip.GzipFile(fileobj=raw, mode="wb", compresslevel=6, mtime=0, filename="") as out:
            yield out
    else:
        with _zstandard(raw.name).ZstdCompressor(**_LEVEL).stream_writer(raw, closefd=False) as out:
            yield out


def is_zipped(data: bytes) -> bool:
    return data.startswith((_GZIP, _ZSTD))


def beginning(path: Path, size: int = 1 << 16) -> bytes:
    """The first bytes of a file, unzipped; none of a pipe, to leave it unread."""
    try:
        if not path.is_file():
            return b""
        with path.open("rb") as file:
            data = file.read(4)
            file.seek(0)
            if data.startswith(_GZIP):
                with gzip.open(file) as unpacked:
                    return unpacked.read(size)
            if data.startswith(_ZSTD):
                zstd = _zstandard(str(path))
                with suppress(zstd.ZstdError):  # a full read reports the error
                    packed: bytes = zstd.ZstdDecompressor().stream_reader(file).read(size)
                    return packed
                return b""
            return file.read(size)
    except (OSError, EOFError, zlib.error):
        return b""


def method_of(params: Mapping[str, str]) -> str | None:
    """The compression of an output, from its parameters and its name.

    >>> method_of({"compress": "true"}), method_of({"filename": "a.csv.zst"}), method_of({})
    ('gzip', 'zstd', None)
    """
    named = params.get("filename", "")
    by_name = next((method for suffix, method in SUFFIXES.items() if named.endswith(suffix)), None)
    asked = params.get("compress", params.get("compression"))
    if asked is None:
        return by_name
    if asked not in _NAMES:
        raise FactsError(f"cannot compress with {shown(asked)}; use true, gzip, zstd or false")
    method = _NAMES[asked] or by_name or "gzip"
    return None if method == "none" else method


def without_suffix(name: str) -> str:
    """The name without a suffix of compression.

    >>> without_suffix("edge.jsonl.gz"), without_suffix("edge.jsonl")
    ('edge.jsonl', 'edge.jsonl')
    """
    return next((name.removesuffix(suffix) for suffix in SUFFIXES if name.endswith(suffix)), name)


def _zstandard(place: str) -> Any:
    try:
        return optional("zstandard", "zstd", f"{place}: zstd")
    except MissingPackage as problem:
        raise FactsError(str(problem)) from None

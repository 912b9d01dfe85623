"""`.output` on Spark: writes the facts of a relation where its directive says.

The parameter `IO=` is as in `facts_in`.  A text (delimited, JSON lines) at a path is one file, with
the same bytes as from the in-process engine; at a location with a scheme it is a folder of parts,
whose names sort as their facts do.  The old content is replaced when the new one is complete.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TextIO, TypeAlias
from uuid import uuid4

from everlog.core.program import Program, Relation, Row
from everlog.files.dispatch import write_facts
from everlog.files.location import Place, require_directory
from everlog.files.text.delimited import header_text
from everlog.files.text.encodings import MARK
from everlog.files.text.jsonlines import lines_of_rows
from everlog.files.text.layout import Layout, layout_of
from everlog.files.text_values import FactsError, encoded_text
from everlog.files.typed.arrow import piece_text
from everlog.files.zipped import SUFFIXES, method_of, zipping
from everlog.spark.facts_in import Source, chosen, has_scheme
from everlog.spark_backend import loads
from everlog.spark_backend.column_types import kinds_of, python_rows, rows_of_frame
from everlog.spark_backend.loads import Printer

if TYPE_CHECKING:
    from everlog.spark_backend.spark_types import DataFrame, SparkSession


def store_facts(
    spark: SparkSession,
    relation: Relation,
    frame: Callable[[], DataFrame],
    params: Mapping[str, str],
    folder: str,
    stdout: TextIO,
    rows: Iterable[Row] | None = None,
) -> None:
    """Write all facts of a relation; they replace the old ones, unless `mode=` is set.

    `rows` are the same facts, if they are in the driver: then it writes text at a path itself.
    """
    source = Source(spark, relation, params, folder)
    write = chosen(WRITERS, relation.name, params, "write")
    is_text = write is _store_file or (write is _store_json_lines and source.mode == "overwrite")
    if rows is not None and (write is _store_here or (is_text and not has_scheme(source.path("")))):
        write_facts(relation, rows, params, Path(folder), stdout)
    else:
        write(source, frame(), stdout)


def _store_file(source: Source, frame: DataFrame, stdout: TextIO) -> None:
    method = method_of(source.params)
    target = source.path(f".csv{_end_of(method)}")
    printer = partial(_printed, layout_of(source.place, ""))
    if has_scheme(target):
        if source.place.flag("headers"):
            raise FactsError(
                f"relation {source.relation.name}: a folder of parts has no header; leave `headers` out"
            )
        loads.write_lines(frame, source.relation, target, printer, method or "none", mark=MARK)
        return
    _write_file(source, frame, Path(target), printer, encoded_text(header_text(source.place)))


def _store_json_lines(source: Source, frame: DataFrame, stdout: TextIO) -> None:
    method, mode = method_of(source.params), source.mode
    target = source.path(f".jsonl{_end_of(method)}")
    printer = partial(_printed_json, source.place)
    path = Path(target)
    if has_scheme(target) or (mode == "append" and path.is_dir()):
        loads.write_lines(frame, source.relation, target, printer, method or "none", mode)
        return
    if source.place.keeps(path.exists(), path):
        return
    _write_file(
        source, frame, path, printer, before=path.read_bytes() if path.exists() and mode == "append" else b""
    )


def _write_file(
    source: Source, frame: DataFrame, target: Path, printer: Printer, header: bytes = b"", before: bytes = b""
) -> None:
    """Write the facts as one file, after the content `before`."""
    require_directory(target)
    with _parts(target) as parts:
        size = loads.write_lines(frame, source.relation, str(parts), printer, "none")
        _join(sorted(parts.glob("part-*")), header, target, method_of(source.params), size, before)


def _printed_json(place: Place, columns: Sequence[Any], count: int) -> bytes:
    """In a task: the facts as lines of JSON, without the last newline."""
    rows = python_rows(columns, kinds_of(place.relation), count)
    return encoded_text(lines_of_rows(place, rows)).removesuffix(b"\n")


def _printed(layout: Layout, columns: Sequence[Any], count: int) -> bytes:
    """In a task: the facts as lines."""
    return piece_text(layout, columns, count)


def _end_of(method: str | None) -> str:
    """The file suffix of a compression method."""
    return next((end for end, name in SUFFIXES.items() if name == method), "")


@contextmanager
def _parts(target: Path) -> Iterator[Path]:
    """A folder beside the target, for Spark's temporary output."""
    parts = target.with_name(f".everlog-{uuid4().hex}.parts")
    try:
        yield parts
    finally:
        shutil.rmtree(parts, ignore_errors=True)


def _join(
    parts: list[Path], header: bytes, target: Path, method: str | None, size: int, before: bytes = b""
) -> None:
    """Join all parts to one file, after `before`; it appears only when it is complete."""
    found = sum(part.stat().st_size for part in parts)
    if found != size:
        raise FactsError(
            f"cannot write {target}: of {size} bytes that the executors wrote {found} are here; on a cluster the"
            " output folder must be visible to all machines, or a location such as hdfs://… or s3a://…"
        )
    temporary = target.with_name(f".everlog-{uuid4().hex}.tmp")
    try:
        with temporary.open("wb") as raw:
            raw.write(before)
            _copy(parts, header, raw, method)
        if target.is_dir():
            shutil.rmtree(target)
        temporary.replace(target)
    except OSError as problem:
        raise FactsError(f"cannot write {target}: {problem.strerror or problem}") from None
    finally:
        temporary.unlink(missing_ok=True)


def _copy(parts: list[Path], header: bytes, raw: BinaryIO, method: str | None) -> None:
    with zipping(raw, method) as out:
        out.write(header)
        for number, part in enumerate(parts):
            with part.open("rb") as lines:
                if number == 0 and not header and lines.read(len(MARK)) == MARK:
                    out.write(MARK)  # readers drop one mark
                lines.seek(0)
                shutil.copyfileobj(lines, out, 1 << 20)


def _store_format(format: str, suffix: str, source: Source, frame: DataFrame, stdout: TextIO) -> None:
    target = source.path(suffix)
    if has_scheme(target) or source.mode != "overwrite":
        loads.write_columns(frame, source.relation, format, source.options, target, source.mode)
        return
    require_directory(Path(target))
    with _parts(Path(target)) as parts:
        loads.write_columns(frame, source.relation, format, source.options, str(parts), "overwrite")
        if not (parts / "_SUCCESS").exists():
            raise FactsError(f"cannot write {target}: the output of the executors is not here")
        _replace(parts, Path(target))


def _replace(parts: Path, target: Path) -> None:
    """Replace the target by a folder; the old one is removed last."""
    old = target.with_name(f".everlog-{uuid4().hex}.old")
    if target.exists():
        target.rename(old)
    parts.rename(target)
    if old.is_dir():
        shutil.rmtree(old, ignore_errors=True)
    else:
        old.unlink(missing_ok=True)


def _store_jdbc(source: Source, frame: DataFrame, stdout: TextIO) -> None:
    source.needed("url")
    options = source.options
    options.setdefault("dbtable", source.params.get("name", source.relation.name))
    loads.write_columns(frame, source.relation, "jdbc", options, None, source.mode)


def _store_table(source: Source, frame: DataFrame, stdout: TextIO) -> None:
    loads.write_table(frame, source.relation, source.needed("table"), source.mode)


def _store_spark(source: Source, frame: DataFrame, stdout: TextIO) -> None:
    path = source.path("") if "filename" in source.params else None
    loads.write_columns(frame, source.relation, source.needed("format"), source.options, path, source.mode)


def _store_here(source: Source, frame: DataFrame, stdout: TextIO) -> None:
    """Write in the driver: all facts come here."""
    rows = list(rows_of_frame(frame, kinds_of(source.relation)))
    write_facts(source.relation, rows, source.params, Path(source.folder), stdout)


Writer: TypeAlias = Callable[[Source, "DataFrame", TextIO], None]
WRITERS: Mapping[str, Writer] = {
    "arrow": _store_here,
    "duckdb": _store_here,
    "file": _store_file,
    "jdbc": _store_jdbc,
    "json": _store_here,
    "jsonfile": _store_here,
    "jsonl": _store_json_lines,
    "orc": partial(_store_format, "orc", ".orc"),
    "parquet": partial(_store_format, "parquet", ".parquet"),
    "postgres": _store_here,
    "spark": _store_spark,
    "sqlite": _store_here,
    "stdout": _store_here,
    "table": _store_table,
}


def check_outputs(program: Program) -> None:
    """Raise FactsError if a parameter of an `.output` is wrong."""
    for directive in program.outputs:
        chosen(WRITERS, directive.relation, directive.params, "write")

"""`.input` on Spark: the parameter `IO=` of a directive selects the reader.

| `IO=` | facts | where |
|---|---|---|
| `file` (default) | delimited text, Soufflé's parameters: a file, folder or pattern | in tasks |
| `jsonfile`, `json` with `filename=` | an array of facts; one task per file | in tasks |
| `jsonl` | JSON lines: a file, a folder, a pattern | in tasks |
| `parquet`, `orc` | columns by name or position | by Spark |
| `jdbc` | `url=`, `dbtable=` or `query=`, and other options of Spark's JDBC source | by Spark |
| `table` | `table=`: a table of Spark's catalogue | by Spark |
| `spark` | `format=` a format of Spark, with its options; `filename=` is its path | by Spark |
| `arrow`, `duckdb`, `postgres`, `sqlite`, `stdin`, `stdout`, `json` | as in process | driver |

Spark handles a location with a scheme (`hdfs://`, `s3a://`, `file:`); any other is a path, under
the folder of facts or of outputs.  `everlog.spark.outputs` writes.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import unquote

from attrs import evolve, frozen

from everlog.core.program import Program, Relation
from everlog.core.program.fact_rows import shown
from everlog.files.dispatch import read_facts
from everlog.files.formats import FORMATS, check_parameters, format_of
from everlog.files.location import Place, candidates
from everlog.files.rejects import BadRow, abort
from everlog.files.text.delimited import first_line_settled, read_delimited
from everlog.files.text.encodings import MARK, UTF8, cut_by_bytes
from everlog.files.text.headers import looks_at_first
from everlog.files.text.json import read_json
from everlog.files.text.jsonlines import rows_of_lines
from everlog.files.text.layout import Layout, layout_of, sources_of
from everlog.files.text_values import FactsError
from everlog.files.typed.arrow import piece_table
from everlog.files.zipped import beginning, is_zipped, unzipped
from everlog.spark_backend import loads
from everlog.spark_backend.column_types import arrow_table, frame_of_rows, kinds_of

if TYPE_CHECKING:
    from everlog.spark_backend.spark_types import DataFrame, SparkSession

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")  # two letters or more: C: is a disk
_LOCAL = re.compile("^file:/+")
_OURS = frozenset({"IO", "filename", "name", "format", "table", "mode", "attributeNames", "columns", "null"})
# The options of Spark's file readers and writers that are allowed.
_SPARK_FILES = frozenset(
    "mergeSchema pathGlobFilter recursiveFileLookup modifiedBefore modifiedAfter datetimeRebaseMode"
    " int96RebaseMode partitionOverwriteMode".split()
)
_ANY = frozenset({"jdbc", "spark"})  # Spark checks their parameters


@frozen
class Source:
    """A relation, the parameters of its directive, and the folder, as written."""

    spark: SparkSession
    relation: Relation
    params: Mapping[str, str]
    folder: str

    @property
    def place(self) -> Place:
        return Place(self.relation, self.params, Path(self.folder))

    def path(self, suffix: str) -> str:
        """The location of the facts: with a scheme as it is, else a local path."""
        name = self.params.get("filename", self.params.get("name", self.relation.name) + suffix)
        if has_scheme(name):
            return name
        if has_scheme(self.folder):
            return f"{self.folder.rstrip('/')}/{name}"
        return str((Path(self.folder) / name).absolute())

    @property
    def options(self) -> dict[str, str]:
        return {key: value for key, value in self.params.items() if key not in _OURS}

    @property
    def mode(self) -> str:
        return self.place.mode

    @property
    def given(self) -> loads.Given:
        """The columns according to the directive."""
        positions = sources_of(self.place) if "columns" in self.params else None
        return loads.Given(positions, self.place.nulls)

    def needed(self, key: str) -> str:
        if key not in self.params:
            raise FactsError(
                f"relation {self.relation.name}: IO={format_of(self.params)} needs the parameter `{key}`"
            )
        return self.params[key]


def has_scheme(text: str) -> bool:
    """Whether a location has a scheme.

    >>> has_scheme("s3a://bucket/x"), has_scheme("facts/x"), has_scheme("C:/facts")
    (True, False, False)
    """
    return _SCHEME.match(text) is not None


# ── in ───────────────────────────────────────────────────────────────────────────────────────


def load_inputs(
    spark: SparkSession, program: Program, folder: str, missing_ok: bool = False
) -> dict[str, DataFrame]:
    """The facts of all `.input` relations, lazily."""
    frames: dict[str, DataFrame] = {}
    for directive in program.inputs:
        frame = load_facts(spark, program.relations[directive.relation], directive.params, folder, missing_ok)
        known = frames.get(directive.relation)
        frames[directive.relation] = frame if known is None else known.unionAll(frame)
    return frames


def load_facts(
    spark: SparkSession, relation: Relation, params: Mapping[str, str], folder: str, missing_ok: bool = False
) -> DataFrame:
    """The facts of a relation, or FactsError; facts may repeat."""
    source = Source(spark, relation, params, folder)
    read: Reader = chosen(READERS, relation.name, params, "read")
    if "rejects" in params and read is not _load_here:
        raise FactsError(f"relation {relation.name}: rejects= is not for Spark: there a bad row ends the run")
    return read(source, missing_ok)


def _load_file(source: Source, missing_ok: bool) -> DataFrame:
    path = _found(source, source.path(".facts"), missing_ok)
    if path is None:
        return frame_of_rows(source.spark, [], kinds_of(source.relation))
    layout = layout_of(source.place, "")
    if layout.rfc4180 or not cut_by_bytes(layout.encoding) or _secretly_zipped(path):
        return loads.read_whole(
            source.spark, path, source.relation, partial(_whole_file, source.relation, source.params, path)
        )
    layouts = _layouts(source, path, layout)
    parse, has_header = partial(_some_lines, layouts, path), partial(_has_header, layouts)
    return loads.read_lines(source.spark, path, source.relation, parse, has_header)


Layouts: TypeAlias = Mapping[
    str, tuple[Layout, bool]
]  # for each file, and whether it has a header; "" stands for any other


def _layouts(source: Source, path: str, layout: Layout) -> Layouts:
    """The layout of each file; with headers, each file has its own."""
    if not looks_at_first(layout):
        return {"": (layout, False)}
    if not has_scheme(path) and Path(path).is_file():
        first = beginning(Path(path), 1 << 20).removeprefix(MARK).partition(b"\n")[0]
        return {"": first_line_settled(evolve(layout, file=path), first) if first else (layout, True)}
    firsts = loads.first_lines(source.spark, path, source.relation)
    layouts = {
        file: first_line_settled(evolve(layout, file=_shown(path, file)), line) for file, line in firsts.items()
    }
    return {"": (layout, False), **layouts}


def _has_header(layouts: Layouts, file: str) -> bool:
    return layouts.get(file, layouts[""])[1]


def _some_lines(layouts: Layouts, path: str, data: bytes, file: str, first_line: int | None) -> Any:
    """In a task: the facts of some lines."""
    layout, _ = layouts.get(file, layouts[""])
    return piece_table(evolve(layout, file=_shown(path, file)), data, first_line)


def _whole_file(
    relation: Relation, params: Mapping[str, str], path: str, data: bytes, file: str, first_line: int | None
) -> Any:
    """In a task: the facts of a whole file, which may have quoted fields."""
    name = _shown(path, file)
    data = unzipped(data, name)
    place = Place(relation, params, Path())
    if params.get("IO", "file") == "file":
        return arrow_table(read_delimited(place, data, name), kinds_of(relation))
    return arrow_table(read_json(place, data, name), kinds_of(relation))


def _shown(path: str, file: str) -> str:
    """The name of a file for messages: as it was given, or in full below a folder or a pattern."""
    if has_scheme(path):
        return file
    found = unquote(_LOCAL.sub("/", file))
    return path if found.endswith(f"/{Path(path).name}") else found


def _found(source: Source, path: str, missing_ok: bool) -> str | None:
    """The path, or that of its `.gz` or `.zst`; None if it is missing and may be."""
    if has_scheme(path) or any(mark in path for mark in "*?[{"):
        return path  # Spark looks it up
    for candidate in candidates(Path(path)):
        if candidate.exists():
            return str(candidate)
    if missing_ok:
        return None
    raise FactsError(f"cannot open fact file {path} of relation {source.relation.name}: there is no such file")


def _secretly_zipped(path: str) -> bool:
    """Whether a file is compressed, but its name does not show it to Spark."""
    if has_scheme(path) or path.endswith(".gz") or not Path(path).is_file():
        return False
    with Path(path).open("rb") as file:
        return is_zipped(file.read(4))


def _load_json_file(source: Source, missing_ok: bool) -> DataFrame:
    path = _found(source, source.path(".json"), missing_ok)
    if path is None:
        return frame_of_rows(source.spark, [], kinds_of(source.relation))
    return loads.read_whole(
        source.spark, path, source.relation, partial(_whole_file, source.relation, source.params, path)
    )


def _load_json(source: Source, missing_ok: bool) -> DataFrame:
    return (_load_json_file if "filename" in source.params else _load_here)(source, missing_ok)


def _load_here(source: Source, missing_ok: bool) -> DataFrame:
    """Facts that only the driver can read, sent to Spark with Arrow."""
    rows = read_facts(source.relation, source.params, Path(source.folder), missing_ok=missing_ok, stdin=sys.stdin)
    return frame_of_rows(source.spark, rows, kinds_of(source.relation))


def _load_format(format: str, suffix: str, source: Source, missing_ok: bool) -> DataFrame:
    path = _found(source, source.path(suffix), missing_ok)
    if path is None:
        return frame_of_rows(source.spark, [], kinds_of(source.relation))
    return loads.read_columns(source.spark, source.relation, format, source.options, path, source.given)


def _load_json_lines(source: Source, missing_ok: bool) -> DataFrame:
    path = _found(source, source.path(".jsonl"), missing_ok)
    if path is None:
        return frame_of_rows(source.spark, [], kinds_of(source.relation))
    place = Place(source.relation, source.params, Path())
    if not cut_by_bytes(source.params.get("encoding", UTF8)) or _secretly_zipped(path):
        return loads.read_whole(source.spark, path, source.relation, partial(_json_lines, place, path, True))
    parse = partial(_json_lines, place, path, False)
    return loads.read_lines(source.spark, path, source.relation, parse, _no_header)


def _no_header(file: str) -> bool:
    return False


def _json_lines(place: Place, path: str, is_whole: bool, data: bytes, file: str, first_line: int | None) -> Any:
    """In a task: the facts of lines of JSON; a whole file may begin with a mark."""
    name = _shown(path, file)

    def refuse(bad: BadRow) -> None:
        if first_line is not None:
            abort(bad)
        raise FactsError(f"{name}: {bad.reason}, in the line {shown(bad.values)}")

    data = unzipped(data, name) if is_whole else MARK + data
    rows = rows_of_lines(place, data, name, refuse, first_line or 1)
    return arrow_table(rows, kinds_of(place.relation))


def _load_jdbc(source: Source, missing_ok: bool) -> DataFrame:
    source.needed("url")
    options = source.options
    if "query" not in options:
        options.setdefault("dbtable", source.params.get("name", source.relation.name))
    return loads.read_columns(source.spark, source.relation, "jdbc", options, None, source.given)


def _load_table(source: Source, missing_ok: bool) -> DataFrame:
    return loads.read_table(source.spark, source.relation, source.needed("table"), source.given)


def _load_spark(source: Source, missing_ok: bool) -> DataFrame:
    path = source.path("") if "filename" in source.params else None
    format = source.needed("format")
    return loads.read_columns(source.spark, source.relation, format, source.options, path, source.given)


Reader: TypeAlias = Callable[[Source, bool], "DataFrame"]
READERS: Mapping[str, Reader] = {
    "arrow": _load_here,
    "duckdb": _load_here,
    "file": _load_file,
    "jdbc": _load_jdbc,
    "json": _load_json,
    "jsonfile": _load_json_file,
    "jsonl": _load_json_lines,
    "orc": partial(_load_format, "orc", ".orc"),
    "parquet": partial(_load_format, "parquet", ".parquet"),
    "postgres": _load_here,
    "spark": _load_spark,
    "sqlite": _load_here,
    "stdin": _load_here,
    "table": _load_table,
}


_DEAR = {"file", "json", "jsonfile", "jsonl", "jdbc"}  # parsed by Python, or read from a server


def dear_inputs(program: Program) -> set[str]:
    """The inputs that are expensive to read, and better read once."""
    return {one.relation for one in program.inputs if format_of(one.params) in _DEAR}


def chosen(table: Mapping[str, Any], relation: str, params: Mapping[str, str], verb: str) -> Any:
    """The table's entry for `IO=`; FactsError if it or a parameter is unknown."""
    way = format_of(params)
    if way not in table:
        raise FactsError(f"cannot {verb} facts on Spark with IO={shown(way)}; use {', '.join(sorted(table))}")
    if way not in _ANY:
        check_parameters(relation, params, _taken(way, verb), verb)
    return table[way]


def _taken(way: str, verb: str) -> frozenset[str]:
    if way in ("parquet", "orc"):
        return FORMATS["parquet"].taken(verb) | _SPARK_FILES
    if way == "table":
        return FORMATS["parquet"].taken(verb) - {"compression", "filename"} | {"table"}
    return FORMATS[way].taken(verb)


def check_inputs(program: Program) -> None:
    """Raise FactsError if a parameter of an `.input` is wrong."""
    for directive in program.inputs:
        chosen(READERS, directive.relation, directive.params, "read")

"""The table of formats: the values of `IO=`, with file suffixes and URL schemes.

A format is one module of this package and one entry here: a function that reads all facts of a
`Reading` or raises FactsError, and one that writes all facts to a `Place` or leaves it unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING

from attrs import frozen

from everlog.files.location import Place, Reader, Writer
from everlog.files.text.delimited import read_file, read_stdin, read_words, write_file, write_stdout
from everlog.files.text.json import read_json_file, read_json_stream, write_json_file, write_json_stream
from everlog.files.text.jsonlines import read_json_lines, write_json_lines
from everlog.files.text_values import FactsError
from everlog.files.typed.duckdb import read_duckdb, write_duckdb
from everlog.files.typed.ipc import read_ipc, read_ipc_words, write_ipc
from everlog.files.typed.jdbc import read_jdbc, write_jdbc
from everlog.files.typed.parquet import read_parquet, read_parquet_words, write_parquet
from everlog.files.typed.postgres import read_postgres, write_postgres
from everlog.files.typed.sqlite import read_sqlite, write_sqlite
from everlog.files.zipped import without_suffix

if TYPE_CHECKING:
    from everlog.core.native._machine import Relation as Words
    from everlog.core.native._machine import Symbols

_TEXT = "delimiter headers attributeNames columns rfc4180 compress compression encoding"
_JSON = "format compress compression encoding"
_COLUMNAR = "columns compression"
_TABLE = "dbname dbtable table query columns mode"
FILE_NAMES = ("filename", "name", "rejects")  # parameters that are names of files
_COMMON = frozenset("IO null n".split()).union(FILE_NAMES)
_INPUT = frozenset("columns encoding null query rejects".split())  # meaningless for a writer
_SPARK = "partitionColumn lowerBound upperBound numPartitions fetchsize batchsize"  # tuning on Spark
# Parameters that Soufflé itself adds to directives.
_SOUFFLE = frozenset("intermediate params types operation auxArity".split())
_FOLDERS = frozenset({"fact-dir", "output-dir"})  # which it adds, too


@frozen
class Format:
    """The reader and the writer of a format, its suffixes, schemes and parameters.

    `words` reads ordinary files for the compiled machine, and gives None for others.

    `in_folder` says that its facts are in files of the folder of facts, or go to standard output:
    so its parameters, but for names of files, lead nowhere else.
    """

    read: Reader | None
    write: Writer | None
    parameters: str = ""
    suffixes: tuple[str, ...] = ()
    schemes: tuple[str, ...] = ()
    in_folder: bool = False
    words: Callable[[Place, Symbols], Words | None] | None = None

    def taken(self, verb: str) -> frozenset[str]:
        """The parameters that reading, or writing, accepts."""
        taken = _COMMON.union(self.parameters.split())
        return taken if verb == "read" else taken - _INPUT | {"mode"}

    @property
    def knows_mode(self) -> bool:
        return "mode" in self.parameters.split()

    @property
    def appends(self) -> bool:
        """Whether facts can be appended to existing ones."""
        return "dbtable" in self.parameters.split()


FORMATS: Mapping[str, Format] = {
    "file": Format(read_file, write_file, _TEXT, in_folder=True, words=read_words),
    "stdin": Format(read_stdin, None, _TEXT),
    "stdout": Format(None, write_stdout, _TEXT, in_folder=True),
    "json": Format(read_json_stream, write_json_stream, _JSON),
    "jsonfile": Format(read_json_file, write_json_file, _JSON, in_folder=True),
    "jsonl": Format(
        read_json_lines, write_json_lines, f"{_JSON} mode", (".jsonl", ".ndjson", ".jsonlines"), in_folder=True
    ),
    "parquet": Format(
        read_parquet,
        write_parquet,
        f"{_COLUMNAR} mode",
        (".parquet", ".pq"),
        in_folder=True,
        words=read_parquet_words,
    ),
    "arrow": Format(
        read_ipc,
        write_ipc,
        f"{_COLUMNAR} mode",
        (".arrow", ".feather", ".ipc", ".arrows"),
        in_folder=True,
        words=read_ipc_words,
    ),
    "sqlite": Format(read_sqlite, write_sqlite, _TABLE, (".sqlite", ".sqlite3")),
    "duckdb": Format(read_duckdb, write_duckdb, _TABLE, (".duckdb", ".ddb")),
    "postgres": Format(
        read_postgres, write_postgres, f"{_TABLE} url user password", (), ("postgresql", "postgres")
    ),
    "jdbc": Format(read_jdbc, write_jdbc, f"{_TABLE} url user password driver {_SPARK}", (), ("jdbc",)),
}
KNOWN_PARAMETERS = _COMMON.union(*(of.parameters.split() for of in FORMATS.values()))
IN_FOLDER = frozenset(way for way, of in FORMATS.items() if of.in_folder)
# how facts are laid out in such files, and nothing about where they are
LAYOUT_PARAMETERS = _COMMON.union(_SOUFFLE, *(FORMATS[way].parameters.split() for way in IN_FOLDER)) - {
    *FILE_NAMES
}


def check_parameters(relation: str, params: Mapping[str, str], taken: frozenset[str], verb: str) -> None:
    """Raise FactsError for a parameter without meaning, instead of ignoring it."""
    unknown = [key for key in params if key not in taken | _SOUFFLE | _FOLDERS]
    if unknown:
        way = format_of(params)
        purpose = "reading" if verb == "read" else "writing"
        close = get_close_matches(unknown[0], taken, 1)
        hint = f" (did you mean `{close[0]}`?)" if close else ""
        raise FactsError(
            f"relation {relation}: IO={way} has no parameter `{unknown[0]}` for {purpose}{hint}; it takes"
            f" {', '.join(sorted(taken - {'n'}))}"
        )


def format_of(params: Mapping[str, str]) -> str:
    """The format of a directive: from `IO=`, else from its URL or file suffix.

    >>> format_of({}), format_of({"filename": "e.jsonl.gz"}), format_of({"url": "postgresql://host/db"})
    ('file', 'jsonl', 'postgres')
    """
    if "IO" in params:
        return params["IO"]
    scheme = params.get("url", "").partition(":")[0]
    name = without_suffix(params.get("filename", "")).lower()
    for way, known in FORMATS.items():
        if scheme in known.schemes or name.endswith(known.suffixes or ("\0",)):
            return way
    return "file"

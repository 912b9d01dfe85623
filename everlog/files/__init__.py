"""Facts in files, streams and databases, in Soufflé's formats and others.

    text_values   one value of a column: from text to Python and back; `FactsError`
    rejects       rows that do not fit: an error, or a file of them
    zipped        gzip and zstd
    location      names, paths, atomic writes, streams
    encodings     UTF-8, other encodings, byte order marks
    layout        the parameters of delimited text
    headers       the first line: column names, or a fact
    delimited     delimited text: the careful reader, line by line, and the writer
    bulk          delimited text: the fast reader, column by column, for ordinary files
    rfc4180       quoted fields
    typed_values  typed values and their schema, checked against the declaration
    json          arrays of arrays or of objects
    jsonlines     one object per line
    columnar      Arrow columns, for parquet, ipc (Arrow's files) and duckdb
    sqlite        one table per relation
    postgres      tables, with COPY
    jdbc          Spark's name for databases
    formats       the table of formats, selected by `IO=` or the name of the file
    suffixes      parameters from the name of a file
    dispatch      the facts of a directive
    connect       the facts of a path or a URL, from Python and the prompt
    within        limits on what untrusted directives may name

A read returns all rows or raises `FactsError`; a write replaces the whole file or nothing.
"""

from everlog.files.dispatch import read_facts, write_facts, write_size
from everlog.files.formats import KNOWN_PARAMETERS
from everlog.files.text_values import FactsError, NoSuchFile

__all__ = ["KNOWN_PARAMETERS", "FactsError", "NoSuchFile", "read_facts", "write_facts", "write_size"]

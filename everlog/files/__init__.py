"""The facts of relations in files, on the screen and in databases, as Soufflé has them.

    values       one value of a column: from text to Python and back; `FactsError`
    rejects      rows that do not fit: an error, or a file of them
    zipped       gzip and zstd
    place        where facts live: names, paths, files renamed into place, streams
    encodings    UTF-8, other encodings, byte order marks
    layout       the parameters of delimited text
    headers      the first line: names of columns, or a fact
    delimited    delimited text: the careful reader, line by line, and the writer
    bulk         delimited text: the fast reader, column by column, for ordinary files
    rfc4180      quoted fields
    typed        values that have types, and the schema they come with, against the declaration
    json         arrays of arrays or of objects
    jsonlines    an object per line
    columnar     columns of Arrow; parquet, ipc (Arrow's files), duckdb: where they come from
    sqlite       one table per relation
    postgres     tables by COPY
    jdbc         Spark's name for databases
    formats      the table of formats: `IO=`, or the name of the file, picks one of the above
    suffixes     the name of a file as parameters
    dispatch     the facts of a directive
    connect      the facts of a path or a URL, from Python and the prompt

A read returns all rows or raises `FactsError`; a written file appears whole or not at all.
"""

from everlog.files.dispatch import read_facts, write_facts, write_size
from everlog.files.formats import KNOWN_PARAMETERS
from everlog.files.text_values import FactsError, NoSuchFile

__all__ = ["KNOWN_PARAMETERS", "FactsError", "NoSuchFile", "read_facts", "write_facts", "write_size"]

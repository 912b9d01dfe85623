"""The facts of relations in files, on the screen and in databases, as Soufflé has them.

    values       one value of a column: from text to Python and back; `FactsError`
    place        where facts live: names, paths, gzip, files renamed into place, streams
    layout       the parameters of delimited text, and messages that point into a file
    delimited    delimited text: the careful reader, line by line, and the writer
    bulk         delimited text: the fast reader, column by column, for ordinary files
    rfc4180      quoted fields
    json         arrays of arrays or of objects
    sqlite       one table per relation
    suffixes     the name of a file as parameters
    dispatch     the parameter `IO=` picks one of the above

A read returns all rows or raises `FactsError`; a written file appears whole or not at all.
"""

from everlog.files.dispatch import KNOWN_PARAMETERS, read_facts, write_facts, write_size
from everlog.files.values import FactsError, NoSuchFile

__all__ = ["KNOWN_PARAMETERS", "FactsError", "NoSuchFile", "read_facts", "write_facts", "write_size"]

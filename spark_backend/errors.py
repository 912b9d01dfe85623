"""Failures of Spark in one sentence, with a remedy.

Spark reports failures as Java stack traces of a hundred lines, with the cause in the middle.  Here
the few causes that users meet are recognized by patterns in the text; `clear_errors` converts them
to `SparkError`, and passes other exceptions on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from everlog.core.program.values import EvaluationError


class SparkError(RuntimeError):
    """Spark cannot do what was asked; the message says why, and what may help."""


_MEMORY = (
    "ran out of memory: give it more (`--memory 4g`; in Python `memory=`), or split the work into smaller pieces"
    " (`--conf spark.sql.shuffle.partitions=400`)"
)
# pattern in the text → its meaning; the first match counts
_KNOWN: tuple[tuple[str, str], ...] = (
    (r"exit(?:ed with)?(?: command)?(?: status| code)?:? \(?(?:137|52)\b", f"an executor {_MEMORY}"),
    (r"OutOfMemoryError|SparkOutOfMemoryError|UNABLE_TO_ACQUIRE_MEMORY", f"Spark {_MEMORY}"),
    (
        r"StackOverflowError",
        "the rules or terms of the program are nested too deeply for Java's stack: enlarge it"
        " (`--conf spark.driver.extraJavaOptions=-Xss64m`), or split the rules into smaller ones",
    ),
    (r"Container killed by YARN for exceeding|OOMKilled", f"an executor {_MEMORY}"),
    (r"bigger than spark\.driver\.maxResultSize", f"the driver {_MEMORY}"),
    (
        r"All masters are unresponsive",
        "the master does not answer: it is down, or has another version of Spark",
    ),
    (
        r"ExecutorLostFailure|Executor(?: \w+)? lost|executor has been removed",
        "executors were lost repeatedly: see the log of the workers; most often they lack memory",
    ),
    (
        r"PYTHON_VERSION_MISMATCH|Python in worker has different version",
        "the executors have another version of Python: set PYSPARK_PYTHON to the same one",
    ),
    (
        r"No module named '(pyarrow|pandas)'",
        "the Python of the executors lacks pyarrow or pandas: `pip install 'everlog[spark]'` there,"
        " or set PYSPARK_PYTHON to one that has them",
    ),
    (
        r"Cannot run program \"([^\"]*)\"",
        "the executors cannot start Python: set PYSPARK_PYTHON to one that exists on all machines",
    ),
    (
        r"MALFORMED_RECORD_IN_PARSING.*?record parsing: (.*?)\.\n?",
        "facts do not fit their relation (a value of another type, or text that is not JSON); as far as they were"
        " parsed: {}",
    ),
    (r"No space left on device", "a disk is full: shuffles and checkpoints go to `spark.local.dir` and to"
     " `spark.checkpoint.dir`"),
    (
        r"SparkContext was shut down|stopped SparkContext",
        "Spark was stopped while it worked: the master has gone, or another thread stopped the session",
    ),
)  # fmt: skip
_GONE = (
    "Spark's Java process ended unexpectedly, most often for lack of memory: give it more"
    " (`--memory 4g`; in Python `memory=`)"
)
_FACTS = re.compile(r"FactsError: (.*?)(?: SQLSTATE: \w+)?(?:\n|$)")
_EVALUATION = re.compile(r"EvaluationError: (.*?)(?:\n\s*(?:in the rule\s+(.*))?|$)")


def explained(error: BaseException) -> Exception | None:
    """The error in plain words, or None if it is not a known one.

    >>> str(explained(RuntimeError("Job aborted: java.lang.OutOfMemoryError: heap")))[:37]
    'Spark ran out of memory: give it more'
    >>> explained(KeyError("x"))
    """
    if type(error).__module__.startswith("everlog."):
        return None  # clear already
    kind, text = type(error), f"{type(error).__name__}: {error}"
    if kind.__name__ == "Py4JNetworkError" or isinstance(error, ConnectionRefusedError | ConnectionResetError):
        return SparkError(_GONE)  # a refused connection can only be that to Java
    evaluation = _EVALUATION.search(text)
    if evaluation is not None:
        return EvaluationError(evaluation[1], (evaluation[2] or "").strip())
    facts = _FACTS.search(text)
    if facts is not None:
        return SparkError(facts[1])
    for mark, meaning in _KNOWN:
        found = re.search(mark, text)
        if found is not None:
            return SparkError(meaning.format(*found.groups()))
    return None


@contextmanager
def clear_errors() -> Iterator[None]:
    """Convert known errors of Spark; the original is the cause."""
    try:
        yield
    except Exception as error:
        clear = explained(error)
        if clear is None:
            raise
        raise clear from error

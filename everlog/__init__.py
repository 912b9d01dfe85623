"""Datalog that stays current: rules over flat relations, in Soufflé's dialect.

`everlog.Database` holds a program and keeps its relations current under inserts and deletes.
`everlog.compile_text` and `everlog.compile_file` check a program, `everlog.evaluate` runs it once.
The command line is `everlog.cli`.  The parts live in `everlog.dsl` (the language), `everlog.core`
(the engine) and `everlog.files` (facts in files).
"""

from everlog._version import __version__

TYPE_CHECKING = False  # a fast stand-in: importing `typing` takes most of the time of `--version`
if TYPE_CHECKING:
    from everlog.api.changes import Changes
    from everlog.api.database import Database
    from everlog.api.lifecycle import NestedWrite, OtherThread
    from everlog.api.live import RuleError
    from everlog.api.once import evaluate
    from everlog.api.queries import QueryError
    from everlog.api.relation_view import RelationView
    from everlog.api.results import ChangedMeanwhile, Result
    from everlog.api.shared import SharedDatabase
    from everlog.api.subscriptions import Subscription
    from everlog.api.transactions import Transaction
    from everlog.api.watching import Watch
    from everlog.core.engine.planning.systems import NoSuchStrategy
    from everlog.core.program.executor import InsertOnly, Update
    from everlog.core.program.fact_rows import FactError
    from everlog.core.program.values import EvaluationError
    from everlog.core.proofs import NotDerived, Proof, WhyNot
    from everlog.core.runtime.guards import LimitExceeded, Limits
    from everlog.dsl.check import compile_file, compile_text
    from everlog.dsl.diagnostics import DatalogError
    from everlog.extras import MissingPackage
    from everlog.files.text_values import FactsError
    from everlog.functors import FunctorError
    from everlog.store.durable_database import DurableDatabase
    from everlog.store.errors import (
        AlreadyOpen,
        Damaged,
        FileMoved,
        ForeignFile,
        NewerFormat,
        NoSuchDatabase,
        NoSuchStep,
        NotWritten,
        OtherProgram,
        ReadOnly,
        StoreError,
    )
    from everlog.store.past import Past

__all__ = [
    "AlreadyOpen",
    "ChangedMeanwhile",
    "Changes",
    "Damaged",
    "Database",
    "DatalogError",
    "DurableDatabase",
    "EvaluationError",
    "FactError",
    "FactsError",
    "FileMoved",
    "ForeignFile",
    "FunctorError",
    "InsertOnly",
    "LimitExceeded",
    "Limits",
    "MissingPackage",
    "NestedWrite",
    "NewerFormat",
    "NoSuchDatabase",
    "NoSuchStep",
    "NoSuchStrategy",
    "NotDerived",
    "NotWritten",
    "OtherProgram",
    "OtherThread",
    "Past",
    "Proof",
    "QueryError",
    "ReadOnly",
    "RelationView",
    "Result",
    "RuleError",
    "SharedDatabase",
    "StoreError",
    "Subscription",
    "Transaction",
    "Update",
    "Watch",
    "WhyNot",
    "__version__",
    "compile_file",
    "compile_text",
    "evaluate",
    "over",
]

_LAZY = {
    "AlreadyOpen": "everlog.store.errors",
    "ChangedMeanwhile": "everlog.api.results",
    "Changes": "everlog.api.changes",
    "Damaged": "everlog.store.errors",
    "Database": "everlog.api.database",
    "DatalogError": "everlog.dsl.diagnostics",
    "DurableDatabase": "everlog.store.durable_database",
    "EvaluationError": "everlog.core.program.values",
    "FactError": "everlog.core.program.fact_rows",
    "FactsError": "everlog.files.text_values",
    "FileMoved": "everlog.store.errors",
    "ForeignFile": "everlog.store.errors",
    "FunctorError": "everlog.functors",
    "InsertOnly": "everlog.core.program.executor",
    "LimitExceeded": "everlog.core.runtime.guards",
    "Limits": "everlog.core.runtime.guards",
    "MissingPackage": "everlog.extras",
    "NestedWrite": "everlog.api.lifecycle",
    "NewerFormat": "everlog.store.errors",
    "NoSuchDatabase": "everlog.store.errors",
    "NoSuchStep": "everlog.store.errors",
    "NoSuchStrategy": "everlog.core.engine.planning.systems",
    "NotDerived": "everlog.core.proofs",
    "NotWritten": "everlog.store.errors",
    "OtherProgram": "everlog.store.errors",
    "OtherThread": "everlog.api.lifecycle",
    "Past": "everlog.store.past",
    "Proof": "everlog.core.proofs",
    "QueryError": "everlog.api.queries",
    "ReadOnly": "everlog.store.errors",
    "RelationView": "everlog.api.relation_view",
    "Result": "everlog.api.results",
    "RuleError": "everlog.api.live",
    "SharedDatabase": "everlog.api.shared",
    "StoreError": "everlog.store.errors",
    "Subscription": "everlog.api.subscriptions",
    "Transaction": "everlog.api.transactions",
    "Update": "everlog.core.program.executor",
    "Watch": "everlog.api.watching",
    "WhyNot": "everlog.core.proofs",
    "compile_file": "everlog.dsl.check",
    "compile_text": "everlog.dsl.check",
    "evaluate": "everlog.api.once",
    "over": "everlog.tables.inferred",
}


def __getattr__(name: str) -> object:
    """Import on first use: `everlog --version` must not load a parser."""
    if name in _LAZY:
        from importlib import import_module

        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def load_ipython_extension(shell: object) -> None:
    """Load the magics of everlog.jupyter; IPython calls this for `%load_ext everlog`."""
    from everlog.jupyter import load

    load(shell)

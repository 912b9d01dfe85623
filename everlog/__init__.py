"""Datalog that stays current: rules over flat relations, in Soufflé's dialect.

`everlog.Database` holds a program and keeps its relations current under inserts and deletes.
`everlog.compile_text` and `everlog.compile_file` check a program, `everlog.evaluate` runs it once.
The command line is `everlog.cli`.  The parts live in `everlog.dsl` (the language), `everlog.core`
(the engine) and `everlog.files` (facts in files).
"""

from everlog._version import __version__

TYPE_CHECKING = False  # which `typing` would tell, too, in a tenth of the time that a user waits for `--version`
if TYPE_CHECKING:
    from everlog.changes import Changes
    from everlog.core.engine.plan import NoSuchStrategy
    from everlog.core.executor import InsertOnly, Update
    from everlog.core.fact_rows import FactError
    from everlog.core.guards import LimitExceeded, Limits
    from everlog.core.proofs import NotDerived, Proof, WhyNot
    from everlog.core.seminaive import evaluate
    from everlog.core.values import EvaluationError
    from everlog.database import Database
    from everlog.dsl.check import compile_file, compile_text
    from everlog.dsl.diagnostics import DatalogError
    from everlog.extras import MissingPackage
    from everlog.files.values import FactsError
    from everlog.functors import FunctorError
    from everlog.live import RuleError
    from everlog.queries import QueryError
    from everlog.relation_view import RelationView
    from everlog.results import ChangedMeanwhile, Result
    from everlog.shared import SharedDatabase
    from everlog.state import NestedWrite, OtherThread
    from everlog.store.database import DurableDatabase
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
    from everlog.subscriptions import Subscription
    from everlog.transactions import Transaction
    from everlog.watching import Watch

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
]

_LAZY = {
    "AlreadyOpen": "everlog.store.errors",
    "ChangedMeanwhile": "everlog.results",
    "Changes": "everlog.changes",
    "Damaged": "everlog.store.errors",
    "Database": "everlog.database",
    "DatalogError": "everlog.dsl.diagnostics",
    "DurableDatabase": "everlog.store.database",
    "EvaluationError": "everlog.core.values",
    "FactError": "everlog.core.fact_rows",
    "FactsError": "everlog.files.values",
    "FileMoved": "everlog.store.errors",
    "ForeignFile": "everlog.store.errors",
    "FunctorError": "everlog.functors",
    "InsertOnly": "everlog.core.executor",
    "LimitExceeded": "everlog.core.guards",
    "Limits": "everlog.core.guards",
    "MissingPackage": "everlog.extras",
    "NestedWrite": "everlog.state",
    "NewerFormat": "everlog.store.errors",
    "NoSuchDatabase": "everlog.store.errors",
    "NoSuchStep": "everlog.store.errors",
    "NoSuchStrategy": "everlog.core.engine.plan",
    "NotDerived": "everlog.core.proofs",
    "NotWritten": "everlog.store.errors",
    "OtherProgram": "everlog.store.errors",
    "OtherThread": "everlog.state",
    "Past": "everlog.store.past",
    "Proof": "everlog.core.proofs",
    "QueryError": "everlog.queries",
    "ReadOnly": "everlog.store.errors",
    "RelationView": "everlog.relation_view",
    "Result": "everlog.results",
    "RuleError": "everlog.live",
    "SharedDatabase": "everlog.shared",
    "StoreError": "everlog.store.errors",
    "Subscription": "everlog.subscriptions",
    "Transaction": "everlog.transactions",
    "Update": "everlog.core.executor",
    "Watch": "everlog.watching",
    "WhyNot": "everlog.core.proofs",
    "compile_file": "everlog.dsl.check",
    "compile_text": "everlog.dsl.check",
    "evaluate": "everlog.core.seminaive",
}


def __getattr__(name: str) -> object:
    """Import on first use: `everlog --version` must not load a parser."""
    if name in _LAZY:
        from importlib import import_module

        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def load_ipython_extension(shell: object) -> None:
    """`%load_ext everlog` in IPython and Jupyter: see everlog.jupyter."""
    from everlog.jupyter import load

    load(shell)

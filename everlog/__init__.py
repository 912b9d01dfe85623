"""Datalog that stays current: rules over flat relations, in Soufflé's dialect.

`everlog.compile_text` and `everlog.compile_file` check a program, `everlog.evaluate` runs it.
The command line is `everlog.cli`.  The parts live in `everlog.dsl` (the language), `everlog.core`
(the engine) and `everlog.files` (facts in files).
"""

from typing import TYPE_CHECKING

from everlog._version import __version__

if TYPE_CHECKING:
    from everlog.core.seminaive import evaluate
    from everlog.core.values import EvaluationError
    from everlog.dsl.check import compile_file, compile_text
    from everlog.dsl.diagnostics import DatalogError

__all__ = ["DatalogError", "EvaluationError", "__version__", "compile_file", "compile_text", "evaluate"]

_LAZY = {
    "DatalogError": "everlog.dsl.diagnostics",
    "EvaluationError": "everlog.core.values",
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

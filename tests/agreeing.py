"""Whole evaluation on both machines gives what the reference gives."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import assume, note

from everlog.core.evaluate import reference, seminaive
from everlog.core.program import Program, Row
from everlog.core.program.values import EvaluationError
from everlog.dsl.check import compile_text
from everlog.dsl.diagnostics import DatalogError


def agree(program: Program, inputs: Any) -> None:
    """The reference, the compiled machine (if it was built) and Python give the same relations."""
    try:
        expected = reference.evaluate(program, inputs)
    except EvaluationError:
        expected = None
    for pure in ("", "1"):
        with patch.dict(os.environ, EVERLOG_PURE=pure):
            evaluates_to(program, inputs, expected)


def evaluates_to(program: Program, inputs: Any, expected: dict[str, frozenset[Row]] | None) -> None:
    if expected is None:
        with pytest.raises(EvaluationError):
            seminaive.evaluate(program, inputs)
        return
    result = seminaive.evaluate(program, inputs)
    for words in result.relations.words.values():
        words.check()
    for name in program.relations:
        assert result.relation(name) == expected[name], name
        assert list(result.rows(name)) == sorted(expected[name]), f"{name}: order"
    for name, table in result.tables.items():
        table.check()
        assert frozenset(table.rows()) == expected[name]


def agrees_run_with(text: str, inputs: Any, way: AbstractContextManager[object]) -> None:
    """A random program that does not fail means inside `way` what the reference says."""
    note(text)
    try:
        program = compile_text(text)
        expected = reference.evaluate(program, inputs)
    except (DatalogError, EvaluationError):
        assume(False)
        return
    with way:
        found = seminaive.evaluate(program, inputs)
    for name in program.relations:
        assert found.relation(name) == expected[name], name

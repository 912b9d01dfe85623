"""Specification files on Spark, beside the reference evaluator, without commands.

Nearly all of what a specification computes is tiny, so the session is set up for tiny plans: one
part, no generated code.  `tests/spark/test_expressions.py` runs with Spark's usual settings.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import pytest
from attrs import evolve
from dlt import EXECUTORS, Block, Mismatch, Session

from everlog.core.program import Program, Row
from everlog.core.program.executor import Executor, InsertOnly, Run, Update
from everlog.core.program.values import EvaluationError
from everlog.dsl.fact_text import FactTextError, read_update
from everlog.spark_backend.column_types import fetch, kinds_of
from everlog.spark_backend.evaluate import evaluate
from everlog.spark_backend.executor import SparkExecutor
from everlog.spark_backend.frames.expressions import NotOnSpark
from everlog.spark_backend.plan import plan
from everlog.spark_backend.settings import tuned

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TINY = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.leafNodeDefaultParallelism": "1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.constraintPropagation.enabled": "false",
}


@contextmanager
def tiny(spark: SparkSession) -> Iterator[None]:
    with tuned(spark, TINY):
        yield


_COMPUTING = ("program", "file", "step", "query", "view", "skip")


def every_step(executor: SparkExecutor) -> type[Session]:
    """A session that runs steps and queries on the reference and on `executor`.

    Steps run one by one, and once more as a single step.
    """

    class EveryStep(Session):
        executors: ClassVar[Mapping[str, Executor]] = {"reference": EXECUTORS["reference"], "spark": executor}

        def answer(self, block: Block) -> list[str]:
            return super().answer(block) if block.command in _COMPUTING else block.expected

        def _runs(self) -> dict[str, Run]:
            if not self.runs and refused(self):
                self.executors = last_state(executor).executors
            return super()._runs()

    return EveryStep


def last_state(executor: SparkExecutor, by_itself: bool = True) -> type[Session]:
    """A session in which `executor` takes all steps at once, and failing steps alone.

    Unless `by_itself`, the program is evaluated on the facts after the last step, which is half the
    work.
    """

    class LastState(Session):
        executors: ClassVar[Mapping[str, Executor]] = {"reference": EXECUTORS["reference"]}

        def answer(self, block: Block) -> list[str]:
            if block.command == "program":
                self.replay_as_one()
            return super().answer(block) if block.command in _COMPUTING else block.expected

        def do_step(self, block: Block) -> list[str]:
            told = super().do_step(block)
            if told[0].startswith("error: ") and not refused(self):
                try:
                    step = [read_update(line, self._program().relations) for line in block.input if line.strip()]
                except FactTextError:
                    return told
                with pytest.raises((EvaluationError, InsertOnly)) as caught:
                    executor.start(self._program()).apply([*self.updates, *step])
                error = caught.value
                assert told == [f"error: {error.message if isinstance(error, EvaluationError) else error}"]
            return told

        def replay_as_one(self) -> None:
            if self.runs and not refused(self):
                program, expected = self._program(), self.runs["reference"]
                found = taken(executor, program, self.updates) if by_itself else evaluated(program, self.updates)
                for name, relation in program.relations.items():
                    if not relation.choices:
                        assert found[name] == expected.view(name), name
            self.runs = {}

    def evaluated(program: Program, updates: Iterable[Update]) -> Mapping[str, frozenset[Row]]:
        facts = {name: set(program.facts.get(name, ())) for name in program.relations}
        for update in updates:
            (facts[update.relation].add if update.insert else facts[update.relation].discard)(update.row)
        result = evaluate(executor.spark, evolve(program, facts={}), facts, executor.settings, unique=True)
        kinds = {name: kinds_of(relation) for name, relation in program.relations.items()}
        rows = fetch({name: (result[name], kinds[name]) for name in kinds if name not in result.rows})
        result.release()
        assert rows is not None
        found = {**result.rows, **rows}
        for name, every in found.items():
            assert len(every) == len(set(every)), f"{name}: a fact stands there twice"
        return {name: frozenset(every) for name, every in found.items()}

    return LastState


def taken(executor: Executor, program: Program, updates: Iterable[Update]) -> Mapping[str, frozenset[Row]]:
    run = executor.start(program)
    run.apply(updates)
    run.check()
    return {name: run.view(name) for name in program.relations}


def refused(session: Session) -> bool:
    """Whether Spark refuses the program, which the file must say: `skip spark: WHY`."""
    skipped = "spark" in session.skipped
    try:
        plan(session._program())
    except NotOnSpark as error:
        if not skipped:
            raise Mismatch(f"Spark refuses the program ({error}), and there is no `skip spark: WHY`") from None
        return True
    if skipped:
        raise Mismatch("`spark` is skipped but can do it now")
    return False


def has_steps(path: Path) -> bool:
    return any(
        line.startswith(("step", "query", "view")) for line in path.read_text(encoding="utf-8").splitlines()
    )

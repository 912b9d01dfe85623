"""How a program is to run on Spark: what goes to which place, and how large things may be there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from attrs import frozen

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@frozen
class Settings:
    """`recursion` is `auto`, or what recursive units do if they can: `in process`, `decomposed`,
    `iterated`.

    `cyclic` is what a cyclic join does: `cube` (inside the tasks), `plan` (two atoms at a time), or
    `auto`, a cube where the plan would have many rows between two joins.

    `small` is the number of rows that a recursive unit may read to be finished in process; past
    `most` facts it is given back to Spark.  `shipped` is the number of rows of other relations that
    a decomposed unit may send to each task.  `partitions` (0: as many as the session shuffles into,
    at most two for each core) is how many parts a recursion has.  `compact` is how many iterations
    of known facts are kept apart.  `reliable` checkpoints go to the session's checkpoint folder and
    survive a lost executor; without it they are kept by the executors (None: on `local[…]` only).
    """

    recursion: str = "auto"
    cyclic: str = "auto"
    small: int = 100_000
    most: int = 20_000_000
    shipped: int = 4_000_000
    partitions: int = 0
    compact: int = 8
    reliable: bool | None = None


DEFAULT = Settings()

# While a recursion is iterated: what is partitioned alike is joined where it lies, the number of
# parts stays, and rounds share the code that Spark generates, which it knows again by its text,
# names included.
ITERATION = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.requireAllClusterKeysForCoPartition": "false",
    "spark.sql.autoBroadcastJoinThreshold": "2097152",
    "spark.sql.codegen.useIdInClassName": "false",
}


@contextmanager
def tuned(spark: SparkSession, conf: Mapping[str, str]) -> Iterator[None]:
    """Settings of the session, for a while."""
    before: dict[str, str | None] = {name: spark.conf.get(name, None) for name in conf}
    for name, value in conf.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, old in before.items():
            if old is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, old)


def is_local(spark: SparkSession) -> bool:
    """Whether driver and executors are one process, whose blocks are lost only together."""
    return (spark.conf.get("spark.master", "") or "").startswith("local")


def partitions_of(spark: SparkSession, settings: Settings) -> int:
    if settings.partitions:
        return settings.partitions
    shuffled = int(spark.conf.get("spark.sql.shuffle.partitions", "200") or 200)
    try:
        return max(1, min(shuffled, 2 * spark.sparkContext.defaultParallelism))
    except Exception:  # Spark Connect has no context to ask
        return min(shuffled, 8)

"""Settings of a run on Spark: strategies and limits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from attrs import frozen

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@frozen
class Settings:
    """The settings of a run.

    `recursion` is `auto`, or the strategy of recursive units where possible: `in process`,
    `decomposed`, `iterated`.

    `cyclic` is the strategy of a cyclic join: `cube` (inside the tasks), `plan` (two atoms at a
    time), or `auto`, a cube if the plan would have many intermediate rows.

    `small` is the number of rows that a program with recursion, or a recursive unit, may read to be
    computed in process; beyond `most` facts it is returned to Spark.  `shipped` is the number of
    rows of other relations that a decomposed unit may send to each task.  `partitions` is the
    number of parts of a recursion (0: as in the session, at most two per core).  `compact` is the
    number of pieces of known facts that are not merged.  `reliable` checkpoints go to the session's
    checkpoint folder and survive a lost executor; otherwise executors keep them (None: only on
    `local[…]`).
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

# During an iterated recursion: frames with the same partitioning are joined in place, the number of
# partitions stays, and rounds share the code that Spark generates and caches by its text, including
# names.
ITERATION = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.requireAllClusterKeysForCoPartition": "false",
    "spark.sql.autoBroadcastJoinThreshold": "2097152",
    "spark.sql.codegen.useIdInClassName": "false",
}


@contextmanager
def tuned(spark: SparkSession, conf: Mapping[str, str]) -> Iterator[None]:
    """Set settings of the session, for the block."""
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
    """Whether driver and executors are one process, which fails as a whole."""
    return (spark.conf.get("spark.master", "") or "").startswith("local")


def partitions_of(spark: SparkSession, settings: Settings) -> int:
    if settings.partitions:
        return settings.partitions
    shuffled = int(spark.conf.get("spark.sql.shuffle.partitions", "200") or 200)
    try:
        return max(1, min(shuffled, 2 * spark.sparkContext.defaultParallelism))
    except Exception:  # Spark Connect has no context
        return min(shuffled, 8)

"""Ctrl-C while Spark starts, and while it works.

Ctrl-C does not reach Java, and an aborted start would leave it running: so a start is completed,
then ended.  While Spark works, its jobs are cancelled.  PySpark would do so on the connection that
waits for a job, in the middle of its answer; here another thread does it, on its own connection.
"""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PATIENCE = 5.0  # seconds to cancel jobs


@contextmanager
def interrupts_wait() -> Iterator[None]:
    """Delay Ctrl-C to the end of the block; raise a second one at once."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    heard: list[int] = []

    def hear(number: int, frame: FrameType | None) -> None:
        heard.append(number)
        if len(heard) > 1:
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, hear)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before or signal.default_int_handler)
    if heard:
        raise KeyboardInterrupt


class _Cancelling:
    """A handler of Ctrl-C: cancels the session's jobs, then calls the old handler."""

    def __init__(self, spark: SparkSession, before: Any) -> None:
        self.spark = spark
        self.before: Any = before.before if isinstance(before, _Cancelling) else before

    def __call__(self, number: int, frame: FrameType | None) -> None:
        cancelling = threading.Thread(target=self._cancel, daemon=True)
        cancelling.start()
        cancelling.join(_PATIENCE)
        if not callable(self.before):
            raise KeyboardInterrupt
        self.before(number, frame)

    def _cancel(self) -> None:
        with suppress(Exception):  # the session was stopped
            self.spark.sparkContext.cancelAllJobs()


def _is_news(record: logging.LogRecord) -> bool:
    """Filter py4j's log of Ctrl-C with its stack."""
    return "KeyboardInterrupt while sending command" not in record.getMessage()


def cancel_on_interrupt(spark: SparkSession) -> None:
    """Make Ctrl-C cancel the jobs of this session."""
    if threading.current_thread() is threading.main_thread():
        logging.getLogger().addFilter(_is_news)
        signal.signal(signal.SIGINT, _Cancelling(spark, signal.getsignal(signal.SIGINT)))

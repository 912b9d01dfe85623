"""A program over 50 million generated rows, within 6 GiB of memory.

Sales, prices and closed shops are Parquet files.  The program joins, negates, filters, computes and
sums; the timed work is evaluating it and writing both outputs as Parquet.  The input is measured at
an eighth, a quarter, half and all of its rows, the best of the rounds each: a doubling may take 2 ×
1.2 of the time.  Memory is the peak of all processes, the driver with its executor and Python's
workers.

    python -P bench/spark_large.py [--small] [--rows 50000000] [--rounds 2]
"""

from __future__ import annotations

import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parent))

from _common import at_most, options
from spark import peak_megabytes

PROGRAM = """.decl sale(item:number, shop:number, amount:number)
.input sale
.decl price(item:number, each:number)
.input price
.decl closed(shop:number)
.input closed
.decl revenue(shop:number, total:number)
.output revenue
.decl large(item:number, shop:number, value:number)
.output large
revenue(s, t) :- sale(_, s, _), !closed(s), t = sum a * e : { sale(i, s, a), price(i, e) }.
large(i, s, a * e) :- sale(i, s, a), price(i, e), a * e > 95000, !closed(s).
"""


def generate(spark: Any, folder: Path, rows: int) -> None:
    """Sales spread over items, shops and amounts by hashing; one in 50 is a duplicate."""
    from pyspark.sql import functions as F

    n = F.col("id") - F.when(F.col("id") % 50 == 1, 1).otherwise(0)
    items, shops = max(rows // 50, 1), max(rows // 2000, 1)
    drawn = [F.pmod(F.xxhash64(F.lit(seed), n), F.lit(most)) for seed, most in enumerate((items, shops, 1000))]
    sale = spark.range(rows).select(*(column.alias(f"c{i}") for i, column in enumerate(drawn)))
    sale.write.parquet(str(folder / "sale"))
    price = spark.range(items).select(F.col("id").alias("c0"), ((F.col("id") * 17) % 100 + 1).alias("c1"))
    price.write.parquet(str(folder / "price"))
    spark.range(0, shops, 10).select(F.col("id").alias("c0")).write.parquet(str(folder / "closed"))


def run(spark: Any, folder: Path) -> float:
    from everlog.dsl.check import compile_text
    from everlog.spark_backend.evaluate import evaluate

    program = compile_text(PROGRAM)
    start = time.perf_counter()
    inputs = {d.relation: spark.read.parquet(str(folder / d.relation)) for d in program.inputs}
    wanted = [d.relation for d in program.outputs]
    found = evaluate(spark, program, inputs, wanted=wanted)
    for name in wanted:
        found[name].write.mode("overwrite").parquet(str(folder / "out" / name))
    found.release()
    return time.perf_counter() - start


def main() -> None:
    asked = options(__doc__, rows=50_000_000, rounds=2)
    if asked.small:
        asked.rows = 80_000
    from everlog.spark_backend.spark_session import spark_session

    try:
        # many parts at first, since a part must fit into memory; adaptive execution joins small
        # ones
        conf = {"spark.sql.adaptive.coalescePartitions.initialPartitionNum": "64"}
        spark = spark_session("local[2]", memory="4g", conf=conf)
    except Exception as error:
        print(f"no Spark here: {error}")
        return
    seconds: list[float] = []
    with tempfile.TemporaryDirectory() as name:
        for part in (8, 4, 2, 1):
            rows, folder = asked.rows // part, Path(name) / str(part)
            generate(spark, folder, rows)
            if part == 8:
                run(spark, folder)  # Java warms up
            seconds.append(min(run(spark, folder) for _ in range(asked.rounds)))
            revenue = spark.read.parquet(str(folder / "out" / "revenue")).count()
            large = spark.read.parquet(str(folder / "out" / "large")).count()
            print(f"  {rows:>9} rows {seconds[-1]:8.1f} s   {revenue} shops, {large} large sales", flush=True)
        memory = peak_megabytes()
        spark.stop()
    growth = max(after / before / 2 for before, after in pairwise(seconds))
    at_most("50 M rows: time of a doubling over twice the time", growth, 1.2, small=asked.small)
    at_most("50 M rows: peak memory of all processes", memory / 1024, 6, "GiB", asked.small)


if __name__ == "__main__":
    main()

"""Measuring side by side: workloads (bench/workloads) on everlog and on others (bench/competitors).

| module | holds |
|---|---|
| `workload` | what a workload, a side and an update are |
| `discovery` | all workloads and all sides, found by their files |
| `streams` | updates: random, a window, undone, hubs |
| `cases` | a workload of one size as a folder that every side reads |
| `measure` | one measurement, inside a process of its own (`python -m everlog.bench.harness.measure`) |
| `runs` | those processes: time limits, rounds by turns, answers compared before a time counts |
| `digests`, `machine` | answers as numbers; memory of a process, what machine this is |
| `jobs`, `growth`, `soak`, `bars` | what is measured: tables, exponents, a long run, the bars of the issue |
| `markdown_tables`, `plots`, `markdown_page` | Markdown, PNG and SVG from the JSON; the generated parts of docs/performance.md |
| `main` | the command line |
"""

"""The harness: workloads (bench/workloads) on everlog and bench/competitors.

| module | holds |
|---|---|
| `workload` | what a workload, a side and an update are |
| `discovery` | all workloads and all sides, found by their files |
| `streams` | updates: random, a window, undone, hubs |
| `cases` | a workload of one size as a folder that every side reads |
| `measure` | one measurement, in a process of its own |
| `runs` | those processes: time limits, rounds in turn, answers compared before a time counts |
| `digests`, `machine` | answers as numbers; memory of a process, description of the machine |
| `figures` | the least of several runs, their spread, ratios |
| `jobs`, `growth`, `soak`, `bars` | the measurements: tables, exponents, a long run, the bars |
| `markdown_tables`, `plots`, `markdown_page` | tables, plots and docs/performance.md from JSON |
| `main` | the command line |
"""

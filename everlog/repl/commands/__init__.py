"""The commands of the prompt, one function each: `everlog.repl.table` finds them.

| module | holds |
|---|---|
| `help` | `.help`, `.quit` |
| `programs`, `rules`, `relations` | programs, their rules and relations |
| `facts`, `durable` | facts in files; databases in files, and their past |
| `changes` | `.watch`, and the changes of the last steps |
| `reasons`, `questions` | `.why`, `.why-not`; steps that are only tried: `.what-if`, `.how` |
| `parameters`, `output`, `measuring` | parameters of queries; formats; time, memory and limits |
"""

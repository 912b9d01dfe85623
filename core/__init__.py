"""The engine room: what a program is, what it means, and how it is run.

=====================  ======================================================================
`core.program`         the checked program: the narrow waist between language and executors
`core.values`          64-bit arithmetic, strings and conversions, as Soufflé has them
`core.functors`        the table of built-in functors: one entry per name and kind
`core.reference`       naive evaluation: the meaning of a program, and the oracle of every test
`core.dependencies`    which relation needs which; strongly connected components; the ordered units
`core.executor`        the protocol of everything that runs a program
`core.tables`          how facts are stored, and indexes; `core.shapes` chooses the form
`core.codegen`         rules as Python functions over indexes
`core.choice`          what `choice-domain` means; likewise `core.subsume`, `core.equivalence`, `core.counters`
`core.seminaive`       whole-program evaluation by compiled rules over indexes
`core.dbsp`            signed changes after DBSP; the delta rules of a rule, derived
`core.engine`          the living engine: every view follows inserts and deletes
`core.proofs`          why a fact is there, and why another is not
`core.guards`          limits on a step, Ctrl-C, progress
=====================  ======================================================================
"""

"""The engine room: what a program is, what it means, and how it is run.

=====================  ======================================================================
`core.program`         the checked program: the narrow waist between language and executors
`core.values`          64-bit arithmetic, strings and conversions, as Soufflé has them
`core.functors`        the table of built-in functors: one entry per name and kind
`core.reference`       naive evaluation: the meaning of a program, and the oracle of every test
`core.dependencies`    which relation needs which; strongly connected components; strata
`core.plan`            the ordered units of a program
`core.seminaive`       whole-program evaluation by compiled rules over indexes
=====================  ======================================================================
"""

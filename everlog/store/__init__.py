"""Databases that last: program, given facts and the log of steps in one SQLite file.

`errors`    what can go wrong, one class each
`locking`   one writer at a time, by a lock of the operating system
`column_codec`   columns of values as bytes, and back
`records`   what one step changed, and what a relation holds, as checked pieces of bytes
`program_text`  a program with its text and the names of its rules, as text
`file_format`    the tables of a file; which files are ours, and which are refused
`copying`   files that are complete or not there
`checkpoint` given facts and state after a step
`log`       what each step changed
`file`      the file while it is open: steps are written, the past is read
`states`    what the engine keeps, in a checkpoint: when to write it, when to believe it
`recovery`  from a file to a running engine: by evaluation, or from a checkpoint of its state
`past`      states, differences and changes of the past
`opening`   a new file, one that goes on, another program for it
`durable_database`  `DurableDatabase`, which `Database.open` gives

A step goes through the engine first and is written last: the engine shows each step to the file at
its very end, and undoes it if the file raises.  So memory and file agree, whatever fails.
"""

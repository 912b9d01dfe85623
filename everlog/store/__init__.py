"""Durable databases: program, base facts and the log of steps in one SQLite file.

    errors            the errors, one class each
    locking           one writer at a time, with a lock of the operating system
    file_guard        detects files that were renamed or replaced while open
    column_codec      columns of values as bytes, and back
    records           the change of a step and the facts of a relation, with checksums
    program_text      a program with the names of its rules, as text
    file_format       the tables of a file; checks that a file is ours
    copying           files that appear only when they are complete
    checkpoint        base facts and engine state after a step
    log               the changes of each step
    file              an open file: writes steps, reads the past
    sorted_rows       relations that are read from the file as needed
    states            when to write the engine's state, and when to trust it
    recovery          from a file to a running engine
    past              past states, differences and changes
    opening           creates a file, opens one, replaces its program
    durable_database  `DurableDatabase`, the type of `Database.open(…)`

The engine applies a step first and the file is written last: the engine passes each step to the
file at its very end, and undoes it if the file raises.  So memory and file agree after any failure.
"""

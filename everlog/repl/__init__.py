"""The prompt: `everlog` reads rules, facts, queries and commands.

    loop           reads input from a terminal or a script, statement by statement
    prompt         the terminal: history, keys, several lines, colours (prompt_toolkit)
    continuation   the kind of an input (command, query, step, …), and whether it is complete
    session        the state: a database, an open transaction, settings; runs one input at a time
    statements     adds and drops rules, inserts and deletes facts, answers queries
    transactions   updates that wait for `commit`
    ddlog          `start; insert …, delete …; commit dump_changes; dump R; clear R; rollback;`
    table          the table of commands; a command is one function of a module of `commands/`
    settings       the values of `.set` and `.show`
    screen         output: the terminal in colour, a pipe, the file of `.output`; `pager` pauses it
    modes          rows as a table, CSV, JSON or facts, a piece at a time
    reports        the changes of a step as lines; the class and the cost of a rule
    tab_completion completion with Tab

The prompt appears first: nothing here imports the engine before the first input needs it.
"""

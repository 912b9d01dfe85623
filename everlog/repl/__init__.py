"""The prompt: `everlog`, where rules, facts, queries and commands are typed.

    loop         lines from a terminal or a script, one after the other, until the end
    prompt       the terminal's side: history, keys, several lines, colours (prompt_toolkit)
    lines        what a line is: a command, a query, a step, statements of the language; and whether it is complete
    session      the state: a database, an open transaction, settings; it runs one line at a time
    statements   rules and declarations that come and go, facts in and out, queries
    transactions updates that wait for `commit`
    ddlog        `start; insert …, delete …; commit dump_changes; dump R; clear R; rollback;`
    table        the table of commands; a command is one function of a module of `commands/`
    settings     what `.set` changes and `.show` shows
    screen       where answers go: the terminal in colour, a pipe, the file of `.output`; `pager` pauses them
    modes        rows as a table, CSV, JSON or facts, a piece at a time
    telling      what a step changed, in lines; the class and the cost of a rule
    completion   what Tab offers

Nothing here loads the engine before the first line needs it: the prompt is there first.
"""

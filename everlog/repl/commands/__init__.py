"""The commands of the prompt, one function each: see `everlog.repl.table`."""

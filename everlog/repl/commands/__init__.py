"""The commands of the prompt by theme, one function each: see `everlog.repl.table`."""

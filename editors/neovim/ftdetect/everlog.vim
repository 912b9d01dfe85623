" Datalog programs; `setfiletype` would lose against a filetype that is already set
autocmd BufRead,BufNewFile *.dl set filetype=everlog

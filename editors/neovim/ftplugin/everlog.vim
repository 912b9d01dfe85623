" Comments and words of Datalog, for `gc`, `gq`, `*` and the like
setlocal commentstring=//\ %s
setlocal comments=s1:/*,mb:*,ex:*/,://
setlocal iskeyword+=?
setlocal suffixesadd=.dl
setlocal include=^\\s*[.#]include

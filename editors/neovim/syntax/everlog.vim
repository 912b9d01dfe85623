" Datalog as everlog reads it; tests compare the words with those of the language
if exists('b:current_syntax')
  finish
endif

syntax keyword everlogFunction cat ord range strlen substr to_float to_number to_string to_unsigned itof itou utoi utof ftoi ftou count sum mean min max match contains autoinc recursive_iteration_cnt as
syntax keyword everlogOperator band bor bxor bshl bshr bshru land lor lxor bnot lnot
syntax keyword everlogBoolean true false
syntax keyword everlogKeyword input output printsize overridable eqrel inline no_inline magic no_magic brie btree btree_delete nil debug_delta stateful
syntax keyword everlogType number unsigned float symbol
syntax match everlogKeyword /\<choice-domain\>/
syntax match everlogDirective /\.\(comp\|decl\|functor\|init\|input\|insert_only\|lattice\|limitsize\|number_type\|output\|override\|plan\|pragma\|printsize\|strategy\|symbol_type\|type\|view\|include\|once\)\>/
syntax match everlogNumber /\<\d\+\(\.\d\+\([eE][+-]\?\d\+\)\?\)\?u\?\>/
syntax match everlogNumber /\<0x\x\+u\?\>\|\<0b[01]\+u\?\>/
syntax match everlogFunction /@[A-Za-z_?][A-Za-z0-9_?]*/
syntax match everlogSymbol /:-\|<:\|<=\|>=\|!=\|->\|!/
syntax region everlogString start=/"/ skip=/\\./ end=/"/
syntax match everlogPreproc /^\s*#.*$/
syntax match everlogComment +//.*$+ contains=@Spell
syntax region everlogComment start=+/\*+ end=+\*/+ contains=@Spell

highlight default link everlogFunction Function
highlight default link everlogOperator Operator
highlight default link everlogSymbol Operator
highlight default link everlogBoolean Boolean
highlight default link everlogKeyword Keyword
highlight default link everlogType Type
highlight default link everlogDirective PreProc
highlight default link everlogNumber Number
highlight default link everlogString String
highlight default link everlogPreproc PreProc
highlight default link everlogComment Comment

let b:current_syntax = 'everlog'

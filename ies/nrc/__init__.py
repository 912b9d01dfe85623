"""NRC^aggr, the nested relational calculus with aggregates.

text       grammar.lark, lexer, builder, items, parser: to terms and systems; printer: back to text
terms      types, terms, walk; desugar: to the constructs of the paper alone
types      unify, check: the type of a term, its height, and what is wrong with it
values     meaning: the paper's definition; compiled_terms: fast, by term_analysis, loops,
           code_writer, looping, codegen, indexes; arithmetic; value_text; errors
functions  prelude, prelude.nrc: count, avg, minimum, nest, rank and others, in the calculus itself
"""

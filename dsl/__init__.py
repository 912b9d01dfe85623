"""The language: from text to a checked program, or to diagnostics.

=====================  ======================================================================
`dsl.preprocess`       `#define`, `#if`, `#include`, `.include`: files to one `Source`
`dsl.source`           that text, and where each of its lines came from
`dsl.keywords`            the words of the language, as nothing but strings
`dsl.lexer`            characters to tokens; leaves of the syntax tree are tokens
`dsl.grammar.lark`     the grammar
`dsl.parser`           tokens to `dsl.ast`, with recovery: every syntax error of a file
`dsl.prompt_input`            what is typed at a prompt: statements with marks, and whether more has to come
`dsl.components`       `.comp` and `.init` gone: a flat list of statements
`dsl.check`            the checker: a flat syntax tree to a `core.Program`
`dsl.inference`        kinds and types of terms; `dsl.kinds` says what does not fit
`dsl.walk`             copies of syntax trees with something replaced, and all below a node
`dsl.diagnostics`      what a user is told; every code is in `dsl.diagnostic_codes`
`dsl.printer`          syntax tree to text
`dsl.formatter`           text as written to text in the house style, comments kept
=====================  ======================================================================
"""

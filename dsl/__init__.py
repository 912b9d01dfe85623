"""The language: from text to a checked program, or to diagnostics.

====================  ========================================================================
`dsl.preprocess`      resolves `#define`, `#if`, `#include`, `.include`; makes one `Source`
`dsl.source`          that text, with the file and line of each of its lines
`dsl.keywords`        the words of the language, as plain strings
`dsl.lexer`           characters to tokens; leaves of the syntax tree are tokens
`dsl.grammar.lark`    the grammar
`dsl.parser`          tokens to `dsl.ast`; recovers, so it reports every syntax error of a file
`dsl.prompt_input`    statements typed at a prompt, with `+`, `-` and `?-`
`dsl.components`      expands `.comp` and `.init` into a flat list of statements
`dsl.check`           the checker: a flat syntax tree to a `core.Program`
`dsl.inference`       infers kinds and types of terms; `dsl.kinds` checks them
`dsl.walk`            copies and traversals of syntax trees
`dsl.diagnostics`     messages to the user; every code is in `dsl.diagnostic_codes`
`dsl.printer`         syntax tree to text
`dsl.formatter`       reformats a file in the house style and keeps its comments
====================  ========================================================================
"""

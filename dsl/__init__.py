"""The language: from text to a checked program, or to diagnostics.

| module | holds |
|---|---|
| `preprocess`, `macros` | `#define`, `#if`, `#include`, `.include`: files to one `Source` |
| `source` | that text, and where each of its lines came from |
| `keywords`, `lexer` | characters to tokens; leaves of the syntax tree are tokens |
| `grammar.lark`, `automaton`, `builder`, `parser` | tokens to `ast`, with all syntax errors |
| `walk` | copies of syntax trees with something replaced, and all below a node |
| `check` | the checker: a syntax tree to a `core.Program`, through the stages in `checks` |
| `query_text`, `fact_text`, `prompt_input` | queries, facts, and what is typed at a prompt |
| `printer`, `formatter` | back to text; in the house style, with comments kept |
| `diagnostics`, `diagnostic_codes` | what a user is told |
"""

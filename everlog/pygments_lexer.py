"""A Pygments lexer for Sphinx, MkDocs, Jupyter and the prompt.

Pygments finds it by its names (`souffle`, `datalog-everlog`, `dl`) and by the suffix `.dl`, through
the package's entry points.  It also colours input of the prompt: updates, queries, and commands
that begin with a dot.  It accepts any text: what is not Datalog stays plain.
"""

from __future__ import annotations

from typing import ClassVar

from pygments.lexer import RegexLexer, bygroups, using, words
from pygments.token import (
    Comment,
    Generic,
    Keyword,
    Name,
    Number,
    Operator,
    Punctuation,
    String,
    Text,
    Whitespace,
)

from everlog.dsl.keywords import DIRECTIVES, KEYWORDS

_IDENT = r"[?A-Za-z_][?A-Za-z0-9_]*"
_KINDS = ("number", "unsigned", "float", "symbol")
_FUNCTIONS = {"BUILTIN", "AGGREGATE", "STRINGTEST", "AUTOINC", "ITERATION", "AS"}
_OPERATORS = {"BINOP", "UNOP"}


def _of(types: set[str], inside: bool = True) -> tuple[str, ...]:
    return tuple(word for word, type in KEYWORDS.items() if (type in types) is inside)


class DatalogLexer(RegexLexer):
    """Datalog in Soufflé's dialect, as everlog reads it.

    >>> from pygments import lex
    >>> [text for kind, text in lex('p(x) :- q(x, "a").', DatalogLexer()) if kind in Name.Function]
    ['p', 'q']
    """

    name = "Datalog (everlog, Soufflé)"
    aliases: ClassVar[list[str]] = ["souffle", "datalog-everlog", "everlog", "dl"]
    filenames: ClassVar[list[str]] = ["*.dl"]
    mimetypes: ClassVar[list[str]] = ["text/x-souffle"]
    url = "https://souffle-lang.github.io"
    version_added = ""

    tokens: ClassVar = {
        "root": [
            (r"\s+", Whitespace),
            (r"//[^\n]*", Comment.Single),
            (r"/\*", Comment.Multiline, "comment"),
            (r"^[ \t]*#[^\n]*", Comment.Preproc),
            (r"\?-", Keyword),
            (r'"', String, "string"),
            (r"[0-9]+\.[0-9]+\.[0-9]+\.[0-9]+", Number),
            (r"[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?", Number.Float),
            (r"0b[01]+u?\b", Number.Bin),
            (r"0x[0-9a-fA-F]+u?\b", Number.Hex),
            (r"[0-9]+u?\b", Number.Integer),
            (words(tuple(DIRECTIVES), suffix=r"(?=\s)"), Keyword.Declaration),
            (r"\.include\b", Keyword.Declaration),
            (r"^([ \t]*)(\.[a-z][a-z_-]*)", bygroups(Whitespace, Keyword.Namespace)),
            (r"choice-domain\b", Keyword),
            (rf"(-)(\s*)({_IDENT}(?:\.{_IDENT})*#[0-9]+)", bygroups(Operator, Whitespace, Name.Label)),
            (rf"@{_IDENT}", Name.Decorator),
            (r"\$[A-Za-z_][A-Za-z0-9_]*(?![A-Za-z0-9_(])", Name.Variable.Global),
            (r"@!?\[", Punctuation, "annotation"),
            (rf"(:)(\s*)({'|'.join(_KINDS)})\b", bygroups(Punctuation, Whitespace, Keyword.Type)),
            (words(_of(_FUNCTIONS), suffix=r"\b"), Name.Builtin),
            (words(_of(_OPERATORS), prefix=r"\b", suffix=r"\b"), Operator.Word),
            (words(_of(_FUNCTIONS | _OPERATORS, inside=False), prefix=r"\b", suffix=r"\b"), Keyword),
            (rf"{_IDENT}(?=\s*\()", Name.Function),
            (r"_\b", Name.Variable.Magic),
            (_IDENT, Name.Variable),
            (r":-|<:|->", Operator),
            (r"<=|>=|!=|[<>=!+\-*/%^]", Operator),
            (r"[][(){}|$,:;.@]", Punctuation),
            (r".", Text),
        ],
        "comment": [
            (r"[^*]+", Comment.Multiline),
            (r"\*/", Comment.Multiline, "#pop"),
            (r"\*", Comment.Multiline),
        ],
        "string": [
            (r'[^"\\]+', String),
            (r"\\.", String.Escape),
            (r'"', String, "#pop"),
        ],
        "annotation": [
            (r'"(?:\\.|[^"\\])*"', String),
            (r"[(\[{]", Punctuation, "#push"),
            (r"[)\]}]", Punctuation, "#pop"),
            (r'[^\[\](){}"]+', Comment.Special),
            (r'"', String),
        ],
    }


_PROMPT = r"everlog(?: \[[^\]\n]*\])?> |\s+\.\.\.> "


class SessionLexer(RegexLexer):
    """A transcript of the prompt: input in colour, answers plain, changes marked.

    >>> from pygments import lex
    >>> tokens = lex("everlog> edge(1, 2).\\n+edge(1, 2).\\n", SessionLexer())
    >>> [text for kind, text in tokens if kind in Generic]
    ['everlog> ', '+edge(1, 2).']
    """

    name = "everlog session"
    aliases: ClassVar[list[str]] = ["everlog-session"]
    filenames: ClassVar[list[str]] = []
    url = DatalogLexer.url
    version_added = ""

    tokens: ClassVar = {
        "root": [
            (rf"^({_PROMPT})([^\n]*\n?)", bygroups(Generic.Prompt, using(DatalogLexer))),
            (r"^-.*", Generic.Deleted),
            (r"^\+.*", Generic.Inserted),
            (r"^error\b.*", Generic.Error),
            (r"[^\n]+", Generic.Output),
            (r"\n", Whitespace),
        ]
    }

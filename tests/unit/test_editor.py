"""The features of the language server, each on small programs, without a server."""

from __future__ import annotations

from pathlib import Path

import pytest
from editor_documents import URI, applied, at, everything, view_of
from lsprotocol import types as lsp

from everlog.dsl import ast
from everlog.dsl.check import diagnose
from everlog.dsl.checks.components import flatten
from everlog.dsl.diagnostics import Report
from everlog.dsl.formatter import format_text
from everlog.dsl.keywords import DIRECTIVES, KEYWORDS
from everlog.dsl.source import Source
from everlog.dsl.walk import everything_below
from everlog.editor.analysis import Place, Settings
from everlog.editor.features import navigation
from everlog.editor.features.call_help import signature_help
from everlog.editor.features.completing import completions
from everlog.editor.features.cost_hints import CostMemory, code_lenses, inlay_hints
from everlog.editor.features.hovering import hover
from everlog.editor.features.outline import document_symbols, folding_ranges
from everlog.editor.features.quick_fixes import code_actions
from everlog.editor.features.token_colours import TYPES, semantic_tokens
from everlog.editor.features.told_diagnostics import diagnostics
from everlog.editor.features.word_help import DIRECTIVE_HELP, WORDS
from everlog.editor.open_documents import Documents
from everlog.editor.program_view import ProgramView

ROADS = """\
// A road, one way.
.decl road(from: number, to: number)
road(1, 2).
road(2, 3).
// Which place reaches which.
.decl path(x: number, y: number)
path(x, y) :- road(x, y).
path(x, z) :- path(x, y), road(y, z).
.decl ring(a: number)
ring(a) :- road(a, b), road(b, c), road(c, a).
"""
SHOP = """\
.comp Log<T> {
    .type Id <: T
    .decl entry(id: Id, what: symbol)
    .decl last(id: Id) overridable
    last(x) :- entry(x, _).
}
.comp Shop : Log<number> {
    .override last
    last(x) :- entry(x, "sold").
    .init inner = Log<symbol>
}
.init shop = Shop
shop.entry(as(1, shop.Id), "sold").
shop.inner.entry(as("a", shop.inner.Id), "x").
.decl seen(x: number)
seen(x) :- shop.last(x).
"""


def hovered(marked: str) -> str:
    text, position = at(marked)
    found = hover(view_of(text), position)
    assert found is not None
    assert isinstance(found.contents, lsp.MarkupContent)
    return found.contents.value


def labels(marked: str, snippets: bool = False) -> list[str]:
    text, position = at(marked)
    return [item.label for item in completions(view_of(text), position, snippets)]


def spans(locations: list[lsp.Location]) -> list[tuple[int, int, int]]:
    return sorted(
        (each.range.start.line, each.range.start.character, each.range.end.character) for each in locations
    )


# ── diagnostics ──────────────────────────────────────────────────────────────────────────────


def test_diagnostics_are_those_of_check() -> None:
    text = ROADS + "ring(z) :- rod(z, y).\n"
    _, report = diagnose(Source(text))
    told = diagnostics(view_of(text))[URI]
    assert [item.code for item in told] == [item.code for item in report.sorted()]
    assert told[0].range == lsp.Range(lsp.Position(10, 11), lsp.Position(10, 20))
    assert "hint: did you mean `road`?" in told[0].message
    assert [item.severity for item in told] == [lsp.DiagnosticSeverity.Error, lsp.DiagnosticSeverity.Warning]


def test_columns_are_counted_in_the_units_of_the_editor() -> None:
    text = '.decl p(x: symbol)\np("🦉é") . p(1).\n'
    view = view_of(text)
    for encoding, column in (("utf-16", 13), ("utf-8", 16), ("utf-32", 12)):
        view.encoding = encoding
        [item] = diagnostics(view)[URI]
        assert item.range.start == lsp.Position(1, column), encoding


def test_a_second_place_is_related_information() -> None:
    [item] = diagnostics(view_of(".decl p(x: number)\n.decl p(x: number)\np(1)."))[URI]
    assert item.related_information is not None
    assert item.related_information[0].location.range.start == lsp.Position(0, 6)


def test_an_error_in_an_included_file_is_told_there(tmp_path: Path) -> None:
    (tmp_path / "lib.dl").write_text(".decl edge(x: number)\nedge(y).\n")
    main = tmp_path / "main.dl"
    view = view_of('.include "lib.dl"\n.decl p(x: number)\np(x) :- edge(x).\n', main.as_uri())
    found = diagnostics(view)
    assert [item.code for item in found[(tmp_path / "lib.dl").as_uri()]] == ["DL053"]
    assert found[main.as_uri()] == []


def test_an_included_file_is_read_as_a_part_of_its_program(tmp_path: Path) -> None:
    """Alone, the file would use relations that nothing declares."""
    (tmp_path / "main.dl").write_text('.decl edge(x: number)\nedge(1).\n.include "rules.dl"\n')
    rules = tmp_path / "rules.dl"
    rules.write_text(".decl p(x: number)\np(x) :- edge(x).\n")
    documents = Documents(folders=[tmp_path])
    document = documents.put(rules.as_uri(), rules.read_text())
    analysis = documents.analysis(document.uri)
    assert (analysis.file, analysis.report.items) == (str(tmp_path / "main.dl"), [])
    view = ProgramView(documents, document, analysis)
    [location] = navigation.definition(view, lsp.Position(1, 9))
    assert location.uri == (tmp_path / "main.dl").as_uri()


def test_the_program_of_a_file_is_found_in_other_folders_of_the_workspace(tmp_path: Path) -> None:
    for name in ("lib", "app", "node_modules"):
        (tmp_path / name).mkdir()
    for name in ("app", "node_modules"):
        (tmp_path / name / "main.dl").write_text('.decl edge(x: number)\n.include "../lib/rules.dl"\n')
    rules = tmp_path / "lib" / "rules.dl"
    rules.write_text("edge(1).\n")
    documents = Documents(folders=[tmp_path])
    documents.put(rules.as_uri(), rules.read_text())
    assert documents.analysis(rules.as_uri()).file == str(tmp_path / "app" / "main.dl")
    alone = Documents()
    alone.put(rules.as_uri(), rules.read_text())
    assert alone.analysis(rules.as_uri()).file == str(rules)


def test_the_text_of_an_open_include_counts_not_its_file(tmp_path: Path) -> None:
    (tmp_path / "lib.dl").write_text(".decl old(x: number)\n")
    lib, main = (tmp_path / "lib.dl").as_uri(), (tmp_path / "main.dl").as_uri()
    view = view_of('.include "lib.dl"\nnew(1).\n', main, None, **{lib: ".decl new(x: number)\n"})
    assert view.analysis.report.items == []


def test_macros_and_folders_of_the_command_line_count(tmp_path: Path) -> None:
    (tmp_path / "x.dl").write_text(".decl p(x: number)\n")
    settings = Settings((tmp_path,), {"N": "7"})
    assert view_of('.include "x.dl"\np(N).\n', settings=settings).analysis.report.items == []


# ── hover ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("marked", "shown"),
    [
        (ROADS.replace("path(x, y) :- road", "path(x, y) :- ro¦ad"), [".decl road(from: number, to: number)", "A road, one way."]),
        (ROADS.replace("path(x, z) :-", "pa¦th(x, z) :-"), ["**path#2**", "recursive", "Which place reaches which."]),
        (ROADS.replace("ring(a) :-", "ri¦ng(a) :-"), ["time in proportion to the joined relations", "O(D) amortized", "cyclic"]),
        (ROADS.replace("path(x, y), road(y, z)", "path(x, y), road(y, ¦z)"), ["z: number"]),
        (ROADS.replace("(a: number)", "(¦a: number)"), ["a: number", "a column of `ring`"]),
        (ROADS.replace(".decl ring", ".de¦cl ring"), ["declares a relation"]),
        (".decl p(x: number)\np(str¦len(\"a\")).", ["strlen(s: symbol): number", "in bytes"]),
        (".type A <: number // an id\n.decl p(x: ¦A)\np(1).", [".type A <: number", "an id"]),
        (".functor twice(x: number): number\n.decl p(x: number)\np(@tw¦ice(1)).", [".functor twice(x: number): number"]),
        (".functor both(a: number, b: number): number\n.decl p(x: number)\np(1).\np(v) :- v = @@bo¦th x : 0, { p(x) }.", [".functor both(a: number, b: number): number"]),
        (SHOP.replace(".init shop = Shop", ".init shop = Sh¦op"), [".comp Shop : Log<number>"]),
    ],
)  # fmt: skip
def test_hover(marked: str, shown: list[str]) -> None:
    text = hovered(marked)
    assert [part for part in shown if part not in text] == []


def test_every_word_of_the_language_has_help() -> None:
    assert set(KEYWORDS) <= set(WORDS)
    assert set(DIRECTIVES) <= set(DIRECTIVE_HELP)


# ── completion and signatures ────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("marked", "wanted", "unwanted"),
    [
        (ROADS + "ring(a) :- ¦", ["path", "road", "ring", "count", "strlen"], [".decl", "number"]),
        (ROADS + "ring(a) :- road(a, b), pa¦", ["path", "a", "b"], [".decl"]),
        (ROADS + "ring(a) :- road(a, ¦", ["to", "a", "cat"], ["path", "true"]),
        (ROADS + ".de¦", [".decl", ".include"], ["path"]),
        (ROADS + "¦", [".decl", "path"], ["cat"]),
        (ROADS + ".output ¦", ["path", "road"], ["cat", ".decl"]),
        (ROADS + ".output path(¦", ["IO", "filename"], ["path"]),
        (ROADS + ".decl p(x: ¦", ["number", "symbol"], ["path"]),
        (ROADS + ".decl p(x: number) ¦", ["eqrel", "choice-domain"], ["path", "number"]),
        (ROADS + ".type A = ¦", ["number"], ["path"]),
        (ROADS + "ring(a) :- road(a, _).\n.strategy ¦", ["auto", "view_tree", "ranked_python"], ["path"]),
        (SHOP + "seen(x) :- shop.¦", ["entry", "last", "inner"], ["seen", "cat"]),
        (SHOP + ".init other = ¦", ["Shop", "Log"], ["entry"]),
        (SHOP + "seen(as(x, ¦", ["number"], ["seen"]),
        (".functor twice(x: number): number\np(@¦", ["twice"], ["cat"]),
        ("#de¦", ["define", "ifdef"], [".decl"]),
        ('p("a ¦', [], ["cat", "p"]),
        ("// a comm¦", [], ["cat"]),
        ("/* a comm¦", [], ["cat"]),
    ],
)  # fmt: skip
def test_completion(marked: str, wanted: list[str], unwanted: list[str]) -> None:
    found = labels(marked)
    assert [word for word in wanted if word not in found] == []
    assert [word for word in unwanted if word in found] == []


def test_a_relation_is_completed_with_its_columns() -> None:
    text, position = at(ROADS + "ring(a) :- ro¦")
    item = next(each for each in completions(view_of(text), position, True) if each.label == "road")
    assert isinstance(item.text_edit, lsp.TextEdit)
    assert item.text_edit.new_text == "road(${1:from}, ${2:to})"
    assert item.text_edit.range == lsp.Range(lsp.Position(10, 11), lsp.Position(10, 13))


def test_include_completes_files(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "roads.dl").write_text("")
    text, position = at('.include "lib/¦')
    view = view_of(text, (tmp_path / "main.dl").as_uri())
    assert [item.label for item in completions(view, position)] == ["roads.dl"]


@pytest.mark.parametrize(
    ("marked", "label", "active"),
    [
        (ROADS + "ring(a) :- road(a, ¦", "road(from: number, to: number)", 1),
        (ROADS + "ring(a) :- road(¦", "road(from: number, to: number)", 0),
        ('.decl p(x: symbol)\np(substr("a", 1, ¦', "substr(s: symbol, from: number, length: number): symbol", 2),
        ('p(cat("a", "b", "c", ¦', "cat(a: symbol, b: symbol, …): symbol", 2),
        (".functor f(x: number, symbol): float\np(@f(1, ¦", "@f(x: number, symbol): float", 1),
        (SHOP + "seen(x) :- shop.entry(¦", "shop.entry(id: Id, what: symbol)", 0),
    ],
)
def test_signature_help(marked: str, label: str, active: int) -> None:
    text, position = at(marked)
    found = signature_help(view_of(text), position)
    assert found is not None
    assert (found.signatures[0].label, found.active_parameter) == (label, active)


# ── names ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("marked", "line", "name"),
    [
        (ROADS.replace("path(x, y) :- road", "path(x, y) :- ro¦ad"), 1, "road"),
        (ROADS.replace("road(2", "¦road(2"), 1, "road"),
        (SHOP.replace("seen(x) :- shop.last", "seen(x) :- shop.la¦st"), 3, "last"),
        (SHOP.replace("seen(x) :- shop.last", "seen(x) :- sh¦op.last"), 11, "shop"),
        (SHOP.replace("shop.inner.entry", "shop.inn¦er.entry"), 9, "inner"),
        (SHOP.replace("shop.inner.entry", "shop.inner.ent¦ry"), 2, "entry"),
        (SHOP.replace('"a", shop.inner.Id', '"a", shop.inner.I¦d'), 1, "Id"),
        (SHOP.replace(".comp Shop : Log", ".comp Shop : L¦og"), 0, "Log"),
        (SHOP.replace(".override last", ".override la¦st"), 3, "last"),
        (SHOP.replace("Id <: T", "Id <: ¦T"), 0, "T"),
    ],
)
def test_definition(marked: str, line: int, name: str) -> None:
    text, position = at(marked)
    view = view_of(text)
    [found] = navigation.definition(view, position)
    start, end = found.range.start, found.range.end
    assert (start.line, text.split("\n")[start.line][start.character : end.character]) == (line, name)


def test_references_are_all_places_of_a_name() -> None:
    text, position = at(ROADS.replace(".decl road", ".decl ro¦ad"))
    found = spans(navigation.references(view_of(text), position, True))
    assert found == [
        (1, 6, 10),
        (2, 0, 4),
        (3, 0, 4),
        (6, 14, 18),
        (7, 26, 30),
        (9, 11, 15),
        (9, 23, 27),
        (9, 35, 39),
    ]
    assert len(navigation.references(view_of(text), position, False)) == len(found) - 1
    assert len(navigation.implementations(view_of(text), position)) == 2


def test_names_resolve_as_the_checker_resolves_them() -> None:
    """The checker works on copies of components; each atom has the declaration that it finds."""
    view = view_of(SHOP)
    declared = view.analysis.checked.declared
    assert declared is not None
    compared = 0
    for clause in flatten(view.analysis.tree, Report(view.analysis.source)):
        if isinstance(clause, ast.Clause):
            for root in [*clause.heads, *([clause.body] if clause.body else [])]:
                for node in everything_below(root):
                    if isinstance(node, ast.Atom):
                        end = node.pos + len(view.analysis.source.text[node.pos : node.end].partition("(")[0])
                        found = view.analysis.names.at(end)
                        assert found is not None
                        assert found.symbol.pos == declared.relations[node.name].node.pos
                        compared += 1
    assert compared >= 8


@pytest.mark.parametrize(
    ("marked", "new", "changed"),
    [
        (ROADS.replace(".decl road", ".decl ro¦ad"), "street", 8),
        (ROADS.replace("ring(a) :-", "ring(¦a) :-"), "start", 3),
        (SHOP.replace(".decl last", ".decl la¦st"), "final", 5),
        (SHOP.replace(".init shop", ".init sh¦op"), "store", 6),
        (SHOP.replace("Log<T> {", "Log<¦T> {"), "Key", 2),
    ],
)
def test_a_renamed_program_has_no_new_errors(marked: str, new: str, changed: int) -> None:
    text, position = at(marked)
    view = view_of(text)
    edit = navigation.renamed(view, position, new)
    after = applied(view, edit)[URI]
    assert sum(len(edits) for edits in (edit.changes or {}).values()) == changed
    assert view_of(after).analysis.report.items == view.analysis.report.items == []


@pytest.mark.parametrize(
    ("marked", "new", "why"),
    [
        (ROADS.replace(".decl road", ".decl ro¦ad"), "path", "something else"),
        (ROADS.replace("ring(a) :-", "ring(¦a) :-"), "b", "something else"),
        (ROADS.replace(".decl road", ".decl ro¦ad"), "count", "is no name"),
        (ROADS.replace(".decl road", ".decl ro¦ad"), "a b", "is no name"),
        (ROADS.replace(".decl road", "¦.decl road"), "street", "no name here"),
        ("#define R road\n.decl ro¦ad(x: number)\nR(1).\n", "street", "macro"),
    ],
)
def test_a_rename_that_would_break_the_program_is_refused(marked: str, new: str, why: str) -> None:
    text, position = at(marked)
    with pytest.raises(navigation.CannotRename, match=why):
        navigation.renamed(view_of(text), position, new)


def test_a_rename_changes_every_file_of_the_program(tmp_path: Path) -> None:
    (tmp_path / "lib.dl").write_text(".decl edge(x: number)\nedge(1).\n")
    text, position = at('.include "lib.dl"\n.decl p(x: number)\np(x) :- ed¦ge(x).\n')
    view = view_of(text, (tmp_path / "main.dl").as_uri())
    after = applied(view, navigation.renamed(view, position, "arc"))
    assert after[(tmp_path / "lib.dl").as_uri()] == ".decl arc(x: number)\narc(1).\n"
    assert after[(tmp_path / "main.dl").as_uri()].endswith("p(x) :- arc(x).\n")


# ── outline, folds, colours ──────────────────────────────────────────────────────────────────


def test_the_outline_has_declarations_rules_and_components() -> None:
    found = document_symbols(view_of(SHOP))
    assert [each.name for each in found] == ["Log", "Shop", "shop", "seen", "seen"]
    assert [each.name for each in found[0].children or []] == ["Id", "entry", "last", "last"]
    assert [each.name for each in (found[0].children or [])[1].children or []] == ["id", "what"]


def test_folds() -> None:
    text = "// a\n// b\n.comp C {\n    .decl p(x: number)\n}\n#if 1\np(1).\n#endif\n/* x */\n"
    found = sorted((each.start_line, each.end_line) for each in folding_ranges(view_of(text)))
    assert found == [(0, 1), (2, 4), (5, 7)]


def decoded(view: ProgramView) -> list[tuple[str, str]]:
    data, out = semantic_tokens(view).data, []
    line = column = 0
    for at_ in range(0, len(data), 5):
        down, right, length, kind, _ = data[at_ : at_ + 5]
        line, column = line + down, right if down else column + right
        out.append((view.document.lines[line][column : column + length], TYPES[kind]))
    return out


def test_colours_tell_names_apart() -> None:
    view = view_of('.decl p(x: number, s: symbol)\np(count : { p(_, _) }, cat(s, "a")) :- p(_, s), 1 < 2.\n')
    assert decoded(view) == [
        (".decl", "keyword"), ("p", "struct"), ("x", "property"), ("number", "type"), ("s", "property"),
        ("symbol", "type"), ("p", "struct"), ("count", "function"), ("p", "struct"), ("cat", "function"),
        ("s", "variable"), ('"a"', "string"), ("p", "struct"), ("s", "variable"), ("1", "number"), ("2", "number"),
    ]  # fmt: skip


def test_a_line_that_a_macro_changed_has_no_colours() -> None:
    assert decoded(view_of("#define N 12\n.decl p(x: number)\np(N).\np(3).\n"))[-2:] == [
        ("number", "type"),
        ("p", "struct"),
    ]


# ── costs, lenses, fixes ─────────────────────────────────────────────────────────────────────


def test_each_rule_has_its_promise_beside_it() -> None:
    view = view_of(ROADS)
    found = inlay_hints(view, CostMemory(), 0, 99, lambda name: 2 if name == "road" else None)
    assert [(each.position.line, each.label) for each in found] == [
        (6, "⟨recursive: follows the change⟩"),
        (7, "⟨recursive: follows the change⟩"),
        (9, "⟨O(D) amortized⟩"),
        (1, "2 facts"),
    ]
    assert [each.position.line for each in inlay_hints(view, CostMemory(), 9, 9, lambda _: None)] == [9]


def test_costs_stay_shown_while_the_program_has_errors() -> None:
    memory = CostMemory()
    inlay_hints(view_of(ROADS), memory, 0, 99, lambda _: None)
    broken = inlay_hints(view_of(ROADS + "path(x, \n"), memory, 0, 99, lambda _: None)
    assert [each.position.line for each in broken] == [6, 7, 9]
    gone = inlay_hints(view_of(ROADS.replace("ring(a) :-", "ring(c) :-") + "p(\n"), memory, 0, 99, lambda _: None)
    assert [each.position.line for each in gone] == [6, 7]


def test_lenses_run_relations_and_explain_rules() -> None:
    found = [(each.range.start.line, each.command.title) for each in code_lenses(view_of(ROADS)) if each.command]
    assert found == [
        (6, "▶ run path"), (6, "explain path#1"), (7, "explain path#2"), (9, "▶ run ring"), (9, "explain ring#1"),
    ]  # fmt: skip


FIXES = [
    (ROADS + "ring(a) :- rod(a, _).\n", "Change to `road`", ROADS + "ring(a) :- road(a, _).\n"),
    (ROADS + "ring(a) :- road(a, x).\n", "Change to `_`", ROADS + "ring(a) :- road(a, _).\n"),
    (ROADS + "far(a, \"x\") :- road(a, _).\n", "Declare `far`", ROADS + ".decl far(a:number, x2:symbol)\nfar(a, \"x\") :- road(a, _).\n"),
    (".decl p(x: symbol)\np(ab).\n", 'Change to `"ab"`', '.decl p(x: symbol)\np("ab").\n'),
    (".decl p(x: number) input\n", "Write `.input p`", ".decl p(x: number)\n.input p\n"),
    (".decl p(x: number)\np(1)\n.output p\n", "End the statement with `.`", ".decl p(x: number)\np(1).\n.output p\n"),
    ('.decl p(x: symbol)\np("a\n', 'Close it with `"`', '.decl p(x: symbol)\np("a"\n'),
    (".decl p(x: number)\np(1).\n/* never closed\n", "Close it with `*/`", ".decl p(x: number)\np(1).\n/* never closed*/\n"),
    (".decl p(x: number)\np((1.\n", "Close the parenthesis", None),
    (".decl p(x: Colour)\np(1).\n", "Declare type `Colour`", ".type Colour <: symbol\n.decl p(x: Colour)\np(1).\n"),
    (".decl p(x: numbr)\np(1).\n", "Change to `number`", ".decl p(x: number)\np(1).\n"),
    (".decl p(x: number)\np(@f(\"a\")).\n", "Declare `@f`", ".decl p(x: number)\n.functor f(x1:symbol):number\np(@f(\"a\")).\n"),
    (".decl p(x: number)\n.decl q(x: number)\np(1).\nq(v) :- v = @@f x : 0, { p(x) }.\n", "Declare `@f`", ".decl p(x: number)\n.decl q(x: number)\np(1).\n.functor f(value:number, x:number):number\nq(v) :- v = @@f x : 0, { p(x) }.\n"),
    (".decl p(x: number) btree\np(1).\np(x) <= p(y) :- x < y.\n", "Add `btree_delete`", ".decl p(x: number) btree_delete\np(1).\np(x) <= p(y) :- x < y.\n"),
]  # fmt: skip


@pytest.mark.parametrize(("before", "title", "after"), FIXES, ids=[title for _, title, _ in FIXES])
def test_a_fix_does_what_the_hint_says(before: str, title: str, after: str | None) -> None:
    view = view_of(before)
    actions = {each.title: each for each in code_actions(view, view.whole())}
    if after is None and title not in actions:
        pytest.skip("the parser gives another hint here")
    assert title in actions
    edit = actions[title].edit
    assert edit is not None
    if after is not None:
        assert applied(view, edit) == {URI: after}


# ── places ───────────────────────────────────────────────────────────────────────────────────


def test_a_place_is_found_again_after_macros_and_includes(tmp_path: Path) -> None:
    (tmp_path / "lib.dl").write_text(".decl edge(x: number)\n")
    text = '#define LIMIT 10\n.include "lib.dl"\n.decl p(x: number)\np(x) :- edge(x), x < LIMIT, x > 0.\n'
    view = view_of(text, (tmp_path / "main.dl").as_uri())
    file = str(tmp_path / "main.dl")
    for column in (0, 8, 30, 34):
        place = Place(file, 3, column)
        offset = view.analysis.offset(place)
        assert offset is not None
        assert view.analysis.place(offset) == place
    assert view.analysis.offset(Place(file, 99, 0)) is None


def test_formatting_is_that_of_fmt() -> None:
    view = view_of("p(x):-q(x).\r\n")
    assert format_text(view.document.raw, "x.dl")[0] == "p(x) :- q(x).\r\n"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n",
        ".",
        "p(",
        '"',
        "/*",
        ".decl",
        ".decl p(x:",
        "#if",
        "a.b.c(",
        "\ufeff.decl p()",
        "\r",
        "p(1).\r\nq",
    ],
)
def test_nothing_fails_on_half_written_text(text: str) -> None:
    for line in range(text.count("\n") + 2):
        for column in range(8):
            everything(view_of(text), lsp.Position(line, column))

"""The catalogue of diagnostics: the meaning of each code.

A code stands for one kind of error and keeps its number for ever.  A report prints `rule` after `=
rule:`; `explanation` is the paragraph of the documentation.  `docs/diagnostics.md` holds the
examples, and a test runs them.  Another test compares the codes that `dsl` uses with this table and
that page.

    DL00x  characters      DL04x  grounding, strata        DL08x  inlining
    DL01x  grammar, size   DL05x  names and places         DL09x  not in this language
    DL02x  declarations    DL06x  warnings                 DL10x  preprocessor
    DL03x  kinds, types    DL07x  components               DL11x  strategies
                                                           DL12x  parameters
"""

from __future__ import annotations

from attrs import frozen


@frozen
class Entry:
    """One code of the catalogue."""

    code: str
    title: str
    rule: str
    explanation: str


ENTRIES: tuple[Entry, ...] = (
    # ── characters ───────────────────────────────────────────────────────────────────────────
    Entry(
        "DL001",
        "unexpected character",
        "outside symbols and comments there are only ASCII letters, digits and the signs of the language",
        "This character begins no token. Typographic quotes, currency signs and letters with "
        "accents come from text editors and copied web pages; they are allowed in symbols and comments only.",
    ),
    Entry(
        "DL002",
        "never closed",
        'a symbol ends with `"`, and a comment that begins with `/*` ends with `*/`',
        "A symbol or a comment is opened and the text ends before it is closed. A symbol may contain line "
        "breaks, so a forgotten quote reaches to the next quote in the file: look above the place that is "
        "shown, too.",
    ),
    Entry(
        "DL003",
        "unknown escape sequence",
        "a backslash in a symbol begins one of the known escape sequences",
        r"The escape sequences are `\"` `\'` `\\` `\a` `\b` `\f` `\n` `\r` `\t` and `\v`. Write a backslash "
        "itself twice, also in the patterns of `match`.",
    ),
    Entry(
        "DL004",
        "not an IPv4 address",
        "each of the four parts of an IPv4 address is a number from 0 to 255",
        "Four numbers with dots between them are read as an IPv4 address, the number of its 32 bits.",
    ),
    # ── grammar and size ─────────────────────────────────────────────────────────────────────
    Entry(
        "DL010",
        "syntax error",
        "every statement follows the grammar; facts and rules end with `.`",
        "A word stands where the grammar does not allow it. The message lists what is allowed. The checker "
        "drops the statement, goes on with the next one, and reports the other errors of the file too.",
    ),
    Entry(
        "DL015",
        "too many alternatives",
        "one rule expands to at most 10000 rules without `;` and inlined relations",
        "A body with `;` stands for one rule per alternative, and alternatives that are joined multiply: "
        "fourteen pairs of them make 16384 rules. Give a part of the body a relation of its own to keep it "
        "small. Relations that are `inline` multiply in the same way; written out, they have at most 200000 "
        "conditions.",
    ),
    Entry(
        "DL016",
        "nested too deeply",
        "terms, formulas, components and types are nested at most 200 levels deep",
        "Hand-written programs rarely nest this deep; macros and generated programs do. Give the inner parts "
        "relations or variables of their own. A long chain such as `a + b + c + …`, `a, b, c, …` or "
        "`cat(a, b, c, …)` is not deep.",
    ),
    Entry(
        "DL017",
        "too many atoms",
        "a query and the body of an aggregate have at most 1000 atoms",
        "A query shows all of its variables and an aggregate counts them, so the join keeps all of them to "
        "the end. The body of a rule may be longer: give parts of it relations of their own.",
    ),
    Entry(
        "DL018",
        "disjunction inside an aggregate",
        "the body of an aggregate is one conjunction",
        "An aggregate over `a ; b` would not say whether a fact that holds in both ways counts once or "
        "twice. Write a relation for the disjunction and aggregate over that: a relation is a set, so it "
        "counts once.",
    ),
    # ── declarations ─────────────────────────────────────────────────────────────────────────
    Entry(
        "DL020",
        "declared twice",
        "a name is declared once, as a relation, a type or a functor",
        "Two declarations have the same name. Relations and types share one namespace; a component may "
        "not declare again what a base of it declares.",
    ),
    Entry(
        "DL021",
        "built-in type declared again",
        "`number`, `unsigned`, `float` and `symbol` are part of the language",
        "The four primitive types are built in and mean the same everywhere.",
    ),
    Entry(
        "DL022",
        "undefined type",
        "every type in use is primitive or declared with `.type`",
        "The type of a column, of a functor, of a cast, or in another type's definition does not exist.",
    ),
    Entry(
        "DL023",
        "type defined by itself",
        "a type is defined by other types, never by itself",
        "The definitions form a cycle, so they do not say which values the type has.",
    ),
    Entry(
        "DL024",
        "union of different kinds",
        "all members of a union are of one kind: number, unsigned, float or symbol",
        "A column stores values of one kind. A union of a type of numbers and a type of symbols would need two.",
    ),
    Entry(
        "DL025",
        "subset of a union",
        "`<:` derives a type from a primitive type or a subset type, not from a union",
        "As in Soufflé, list a type as a member of the union to make it a subtype.",
    ),
    Entry(
        "DL026",
        "two columns of one name",
        "the columns of a relation have different names",
        "Choice domains, headers of files and JSON objects name columns, so a name must mean one column.",
    ),
    Entry(
        "DL027",
        "conflicting qualifiers",
        "a qualifier is given once, and of `brie`, `btree`, `btree_delete` and `eqrel` at most one",
        "These four say how a relation is stored, so they exclude each other. The first three "
        "change nothing here.",
    ),
    Entry(
        "DL028",
        "choice-domain over no column",
        "a choice-domain names columns of its relation",
        "A key of a choice-domain is one column or several in parentheses, by the names that the declaration "
        "gives them.",
    ),
    Entry(
        "DL029",
        "not an equivalence relation",
        "an equivalence relation has two columns of one type",
        "`eqrel` closes a relation under reflexivity, symmetry and transitivity, which makes sense only for "
        "pairs of values of the same type.",
    ),
    # ── kinds and types ──────────────────────────────────────────────────────────────────────
    Entry(
        "DL030",
        "wrong kind of value",
        "every term has one kind (number, unsigned, float or symbol), the kind that its place needs",
        "A symbol stands where a number is expected, or the other way round; or one variable stands in "
        "columns of different kinds. Kinds are never converted silently: use `to_number`, `to_unsigned`, "
        "`to_float` or `to_string`.",
    ),
    Entry(
        "DL031",
        "wrong type",
        "the type of a variable is a subtype of the type of every column in which it stands",
        "The kinds agree, the declared types do not. Subtypes separate values that should not be mixed, such as "
        "the names of people and of cities. To mix them on purpose, write `as(…, type)`.",
    ),
    Entry(
        "DL032",
        "comparison of different kinds",
        "both sides of a comparison are of one kind",
        "A number never equals a symbol, and there is no order between the two. Convert one side.",
    ),
    Entry(
        "DL033",
        "operator not defined for this kind",
        "an operator or aggregate is applied to values of a kind that it is defined for",
        "There is no `*` for symbols, no `%` for floats and no `-x` for unsigned; `sum`, `min`, `max` and `mean` "
        "need numbers. Operators do not take values of a union type either: `as(x, number)` says which type is "
        "meant.",
    ),
    Entry(
        "DL034",
        "wrong number of arguments of a functor",
        "a functor gets as many arguments as it takes",
        "The language reference lists the built-in functors; those of a user are declared with `.functor`.",
    ),
    Entry(
        "DL035",
        "number out of range",
        "a literal fits into 64 bits: from -2^63 to 2^63 - 1 as a number, from 0 to 2^64 - 1 as an unsigned",
        "Arithmetic wraps around at 64 bits, but a literal that does not fit is certainly a mistake.",
    ),
    # ── grounding and strata ─────────────────────────────────────────────────────────────────
    Entry(
        "DL040",
        "variable not grounded",
        "every variable occurs in a positive body atom, or equals a term of variables that do",
        "Nothing in the body binds the variable to values. A positive atom binds it; so does an equality "
        "whose other side is known. An atom under `!`, a comparison such as `x < y`, and an argument that "
        "computes, such as `p(x + 1)`, do not. Inside an aggregate, its own body must do it.",
    ),
    Entry(
        "DL041",
        "grounded only inside an aggregate",
        "a variable that is used outside an aggregate is grounded outside it, except a witness of `min` or `max`",
        "For one sum per group, bind the group outside the aggregate. Only `min` and `max` give witnesses: "
        "the values that go with the extreme one.",
    ),
    Entry(
        "DL042",
        "aggregates that depend on each other",
        "the aggregates of a rule can be computed one after the other",
        "The result of one aggregate is used inside another, whose result is used inside the first. Bind one of "
        "the variables by an atom.",
    ),
    Entry(
        "DL044",
        "counter in a recursive rule",
        "`autoinc()` stands in no recursive rule",
        "Each use gives a new number, hence a new fact, hence another use: the rule would never come to an end. "
        "Number the facts in a rule above the recursion.",
    ),
    Entry(
        "DL045",
        "recursion through negation or aggregation",
        "no relation depends on itself through negation or aggregation",
        "`!` and aggregates read which facts a relation lacks, so the relation must be complete before. The "
        "message shows the cycle that makes this impossible. Sums and counts that only grow, and `min` and `max` "
        "in heads, are exceptions.",
    ),
    # ── names and places ─────────────────────────────────────────────────────────────────────
    Entry(
        "DL050",
        "undefined relation",
        "every relation that is used is declared with `.decl`",
        "Often a misspelling: the hint names a similar relation if there is one. A relation of a component "
        "instance has the name of the instance as prefix, as in `graph.edge`.",
    ),
    Entry(
        "DL051",
        "wrong number of columns",
        "an atom has one argument for each column of its relation",
        "Write `_` for the columns that do not matter.",
    ),
    Entry(
        "DL052",
        "`_` in a head",
        "a head gives every column a value",
        "In a body `_` matches any value. A head must say which value the new fact has.",
    ),
    Entry(
        "DL053",
        "fact with variables",
        "the arguments of a fact are constants, or computed from constants",
        "A name without quotes is a variable. Aggregates and counters need a rule: give it the body `true`.",
    ),
    Entry(
        "DL054",
        "`_` outside an atom",
        "`_` is an argument of a body atom, nothing else",
        "Every `_` is a variable of its own that nothing else can mention, so a comparison with it, or an "
        "aggregate over it, has no meaning.",
    ),
    Entry(
        "DL055",
        "ill-formed subsumption",
        "a subsumption compares two facts of one relation, which has columns and can lose facts",
        "`p(x) <= p(y) :- …` removes the fact on the left when the one on the right is there and the body holds. "
        "A relation declared `btree`, `brie` or `eqrel` cannot lose facts; one declared `btree_delete`, or "
        "without such a qualifier, can.",
    ),
    Entry(
        "DL056",
        "undefined functor",
        "every functor that is used with `@` is declared with `.functor`",
        "The declaration gives the kinds of the arguments and of the result; the Python function comes from "
        "`functors.py` or `-l`.",
    ),
    Entry(
        "DL057",
        "target of an aggregate",
        "`count` has no target; `sum`, `min`, `max`, `mean` and functions of your own have one",
        "The target is the term between the aggregate's name and the colon.",
    ),
    Entry(
        "DL058",
        "plan does not fit its rule",
        "a plan has an order for versions that the rule has, and each order lists every positive atom once",
        "Version 0 is for the first recursive atom of the rule, 1 for the second. Without a plan the engine "
        "orders joins itself.",
    ),
    Entry(
        "DL059",
        "directive given twice or without size",
        "a relation has at most one `.printsize` and one `.limitsize`, which gives its size as `n`",
        "A relation may have several `.input`, whose facts add up, and several `.output`, which write it "
        "several times.",
    ),
    # ── warnings ─────────────────────────────────────────────────────────────────────────────
    Entry(
        "DL060",
        "empty relation",
        "a relation gets its facts from the text, from rules or from `.input`",
        "A warning: the program runs, but this relation stays empty. A rule or an `.input` was "
        "forgotten, or the name is misspelt elsewhere.",
    ),
    Entry(
        "DL061",
        "variable that occurs once",
        "a variable that occurs once is written `_`, and one that begins with `_` occurs once",
        "A warning. A variable that occurs once joins nothing, which is often a misspelling. If it is intended, "
        "write `_`, or begin its name with `_`.",
    ),
    Entry(
        "DL062",
        "unknown parameter",
        "a directive has the parameters that the language reference lists",
        "A warning. A run that would read or write with it refuses to, instead of ignoring it.",
    ),
    Entry(
        "DL063",
        "plan that is not followed as written",
        "an order lists the atoms of the rule that is joined, and begins with the one of which it reads what is "
        "new",
        "A warning; answers do not depend on it. Version 0 of a recursive rule reads what is new in its first "
        "recursive atom, and joins that first. A rule that is not recursive has version 0 alone. The atoms of an "
        "inlined relation are atoms of the rule. Recursion that passes a column on unchanged needs no order: its "
        "sets flow through the components of a graph, for all rules at once.",
    ),
    # ── components ───────────────────────────────────────────────────────────────────────────
    Entry(
        "DL070",
        "undefined component, or declared twice",
        "every component that is used is declared with `.comp`, once",
        "A component is visible in the scope where it is declared and inside the components of that scope.",
    ),
    Entry(
        "DL071",
        "wrong number of type parameters",
        "a component gets as many type parameters as it declares",
        "`.comp C<A, B>` is used as `.init c = C<number, symbol>`.",
    ),
    Entry(
        "DL072",
        "component without end",
        "a component neither inherits from itself nor contains an instance of itself",
        "Its expansion would never end. Instances nest at most 200 deep, and all of them together expand to "
        "at most 200000 statements.",
    ),
    Entry(
        "DL073",
        "override of nothing",
        "`.override` stands in a component and names a relation that one of its bases declares `overridable`",
        "An override drops the rules that the bases have for a relation. The base allows it with the "
        "qualifier `overridable`.",
    ),
    Entry(
        "DL074",
        "component instance made twice",
        "the instances of components have different names",
        "The relations of an instance have its name as prefix, so two instances of one name would clash.",
    ),
    # ── inlining ─────────────────────────────────────────────────────────────────────────────
    Entry(
        "DL080",
        "recursive inlined relation",
        "an inlined relation or a view does not depend on itself, nor do several on each other",
        "An inlined relation is replaced by the bodies of its rules, and this replacement would never end.",
    ),
    Entry(
        "DL081",
        "negated inlined relation",
        "an inlined relation or a view under `!` has no variables but those of its heads, and no `_`",
        "Under `!` each rule of the relation must fail. Where a rule has variables of its own, this must be "
        "tested for all their values, which a rule body cannot express. Declare the relation without `inline` "
        "or `.view`.",
    ),
    Entry(
        "DL082",
        "inlined relation inside an aggregate",
        "no inlined relation stands inside an aggregate, and only a view with one derivation for each fact",
        "Its rules would become a disjunction there. Without `inline` the relation can be aggregated. So can a "
        "view of one rule, whose head has all variables of its body, without `_` in its use.",
    ),
    Entry(
        "DL083",
        "inlined relation with a directive",
        "an inlined relation is not read, written, counted or limited",
        "Its rules are copied into their uses: it stores no facts.",
    ),
    Entry(
        "DL084",
        "counter in an inlined relation",
        "neither the rules of an inlined relation nor its uses count with `autoinc()`, nor rules that read a view",
        "Every use would count again, so the same relation would have different numbers in each place. A rule "
        "that reads a view would count the ways in which its facts come about.",
    ),
    Entry(
        "DL085",
        "relation that cannot be a view",
        "a view has rules, and these join positive atoms, compare, and do not fail",
        "The facts of a view are not stored: its rules are searched when somebody asks. What needs its facts at "
        "hand, or is decided in the step that changes them, needs a relation that is stored.",
    ),
    # ── not in this language ─────────────────────────────────────────────────────────────────
    Entry(
        "DL090",
        "value that is not flat",
        "every value is a number, an unsigned, a float or a symbol",
        "Records, algebraic types and `nil` are left out: relations are flat here. Give each field a column. "
        "Where values nest, give each an id, and use a relation with the id and one column per field.",
    ),
    Entry(
        "DL091",
        "lattice",
        "a lattice is a type with a functor `Lub`, which joins two of its values",
        "`.lattice L<> { Bottom -> 0, Lub -> @lub(_, _) }` gives the type `L` an order. A column `v:L<>` has one "
        "value for each key: the join of all that are derived. Other operators are `Glb`, `Leq` and `Top`.",
    ),
    Entry(
        "DL092",
        "rounds of the evaluation",
        "a program cannot read how it is evaluated: `debug_delta` and `recursive_iteration_cnt` are left out",
        "The rounds of an evaluation are not part of a program's meaning, and differ between strategies. Use a "
        "column that counts steps instead.",
    ),
    Entry(
        "DL093",
        "old style qualifier",
        "`.input`, `.output` and `.printsize` are separate directives",
        "A warning: the qualifier does the same as the directive of that name, without parameters.",
    ),
    # ── preprocessor ─────────────────────────────────────────────────────────────────────────
    Entry(
        "DL101",
        "include file not found",
        "an included file is beside the file that includes it, or in a directory named by `-I`",
        "The hint lists the directories that were searched, in order.",
    ),
    Entry(
        "DL102",
        "malformed directive of the preprocessor",
        "a line that begins with `#` is a complete directive of the C preprocessor",
        "The name of the directive is unknown, or what it needs is missing: a macro's name, a file's name, a "
        "condition made of integers.",
    ),
    Entry(
        "DL103",
        "unbalanced condition",
        "every `#if` has one `#endif`, and between them at most one `#else`, as the last branch",
        "A condition ends in the file in which it begins.",
    ),
    Entry(
        "DL104",
        "#error was reached",
        "a program that reaches `#error` is rejected",
        "The author of the program wrote the message.",
    ),
    Entry(
        "DL105",
        "includes without end",
        "no file includes itself for ever",
        "Put `.once` or `#pragma once` at the top of a file that is included from several places, or a condition "
        "around it.",
    ),
    Entry(
        "DL106",
        "wrong call of a macro",
        "a macro gets as many arguments as it has parameters, closed by `)`, and its expansion comes to an end",
        "Commas separate arguments, unless they stand in parentheses of their own or in a symbol.",
    ),
    # ── strategies ───────────────────────────────────────────────────────────────────────────────
    Entry(
        "DL110",
        "no such strategy for this rule",
        "`.strategy` names a strategy that exists and that can maintain the rule before it",
        "Rules that are not recursive are maintained by `delta`, `view_tree`, "
        "`calibrated`, `generations`, `heavy_light`, `factorized`, `auto` or `recompute`; recursive ones by "
        "`flow` (where a column is carried along), `ranked` (on the compiled machine), "
        "`ranked_python` or `recompute`. "
        "Without `.strategy` the planner chooses; `everlog explain` shows its choice and the reason.",
    ),
    # ── parameters ───────────────────────────────────────────────────────────────────────────────
    Entry(
        "DL120",
        "parameter and value do not match",
        "each parameter `$name` of a query gets a value of its kind from the caller; a program has none",
        "A parameter stands in a query for a value that is passed beside the text: by name in Python "
        '(`db.query("age($who, x)", who=name)`), in `"params"` over HTTP, by `.param` at the prompt, by a '
        "variable of the notebook. A program has no parameters. A query is rejected if a parameter has no value "
        "or a value of another kind than its place, and if a value has no parameter.",
    ),
    # ── aggregates in heads ──────────────────────────────────────────────────────────────────────
    Entry(
        "DL130",
        "misplaced aggregate of a head",
        "`min(…)`, `max(…)`, `sum(…)`, `mean(…)` and `count()` with one argument or none are whole columns of a "
        "rule's head",
        "In a head, such a column aggregates what the rules of the relation derive, grouped by the other columns. "
        "In a body, an aggregate has a body of its own: `min x : { … }`. With two arguments or more, `min` and "
        "`max` are functors.",
    ),
    Entry(
        "DL131",
        "aggregates that do not fit together",
        "all rules of a relation aggregate the same columns in the same way",
        "Such a relation maps its other columns to the aggregates. With a single `min` or `max` it may also have "
        "facts of its own, which count as candidates; with a sum, a count or a mean it has none.",
    ),
    Entry(
        "DL132",
        "aggregate that is not monotone in a recursion",
        "when a value in a recursion improves or grows, everything that was derived must still hold",
        "A value may be passed on, added to (`+`), multiplied by what is known not to be negative, combined by "
        "`min` and `max`, and compared in the direction in which it improves (`d <= 5` for a minimum). A "
        "sum or count whose addends are not negative may be compared so that a larger one passes, too (`s > 50`), "
        "and a value of a lattice goes through functors. Then the recursion has one least fixpoint, whatever the "
        "order in which facts are derived. Outside the recursion the relation is used like any other.",
    ),
    Entry(
        "DL133",
        "wrong function of an aggregate",
        "in `@@f x : start, { … }`, `@f` takes the value so far and `x` and gives the next value, first `start`",
        "The functor is declared as `f(value:T, x:U):T`. The value is `start` before the first match, a constant "
        "of its type, and each match replaces it by what the function gives.",
    ),
)

CATALOGUE: dict[str, Entry] = {entry.code: entry for entry in ENTRIES}
RULES: dict[str, str] = {entry.code: entry.rule for entry in ENTRIES}

"""Checks `.input`, `.output`, `.printsize`, `.limitsize`, `.insert_only` and `.view`."""

from __future__ import annotations

from attrs import frozen

from everlog.core import program as core
from everlog.core.program.values import integer
from everlog.dsl import ast
from everlog.dsl.checks.declarations import Declarations
from everlog.dsl.diagnostics import Label, Report

# Known parameters; any other gets a warning.
PARAMETERS = frozenset(
    "IO filename delimiter headers rfc4180 compress columns name dbname attributeNames format n"
    " intermediate params types operation fact-dir output-dir auxArity"
    " compression dbtable driver encoding mode null password query rejects table url user"
    " partitionColumn lowerBound upperBound numPartitions fetchsize batchsize".split()  # on Spark
)


_DIGITS = 18  # of a size; no relation has more facts


_SORTED = "rows are written in order of their columns; a query asks for another: `{}(…) order by … limit 10`"


@frozen
class Directives:
    inputs: tuple[core.Directive, ...]
    outputs: tuple[core.Directive, ...]
    printsizes: tuple[core.Directive, ...]
    limits: dict[str, int]
    insert_only: frozenset[str]


def check_directives(declared: Declarations, report: Report) -> Directives:
    found: dict[str, list[core.Directive]] = {"input": [], "output": [], "printsize": []}
    limits: dict[str, int] = {}
    insert_only: set[str] = set()
    first: dict[tuple[str, str], ast.Name] = {}
    for directive in declared.directives:
        params = dict(directive.params)
        for key in params:
            if key not in PARAMETERS:
                hint = _SORTED.format(directive.relations[0].name) if key in ("order_by", "limit") else ""
                message = f"parameter `{key}` of `.{directive.kind}` is not known here"
                report.warn("DL062", message, directive, hint=hint)
        for name in directive.relations:
            signature = declared.relations.get(name.name)
            if signature is None:
                report.error("DL050", f"undefined relation `{name.name}`", name, hint=declared.similar(name.name))
                continue
            if signature.inline:
                message = f"relation `{name.name}` is inlined, so it has no facts to read or write"
                report.error("DL083", message, signature.node)
                continue
            if directive.kind == "limitsize":
                _limit(directive, name, params, limits, report)
                continue
            if directive.kind == "view":  # which its declaration knows
                continue
            if directive.kind == "insert_only":
                insert_only.add(name.name)
                continue
            known = first.setdefault((directive.kind, name.name), name)
            if known is not name and directive.kind == "printsize":
                label = Label(known.pos, known.end, "first given here")
                report.error("DL059", f"`.{directive.kind} {name.name}` is given twice", name, label)
                continue
            where = report.source.locate(name.pos)
            origin = core.Origin(report.source.text[directive.pos : directive.end], where.file, where.line)
            found[directive.kind].append(core.Directive(name.name, params, origin))
    return Directives(
        tuple(found["input"]), tuple(found["output"]), tuple(found["printsize"]), limits, frozenset(insert_only)
    )


def _limit(
    directive: ast.Directive, name: ast.Name, params: dict[str, str], limits: dict[str, int], report: Report
) -> None:
    size = params.get("n", "")
    if len(size) > _DIGITS and size.isascii() and size.isdigit():
        report.error("DL059", f"the size of `.limitsize {name.name}` has more than {_DIGITS} digits", directive)
    elif not size.isascii() or not size.isdigit():
        report.error(
            "DL059",
            f"`.limitsize {name.name}` needs a size",
            directive,
            hint=f"write .limitsize {name.name}(n=10)",
        )
    elif name.name in limits:
        report.error("DL059", f"`.limitsize {name.name}` is given twice", name)
    else:
        limits[name.name] = integer(size)

"""The style sheet of `everlog explain --html`.

Every colour is a variable with a light and a dark value.  Every text reaches WCAG AA (4.5 : 1) on
its background, in both; a test computes it from the styles.  The page has no script, so content
that is too wide for a phone scrolls in its own box.
"""

from __future__ import annotations

import re

_LIGHT = """
--paper:#faf9f6;--card:#fff;--ink:#20252b;--soft:#565d66;--hair:#dedad0;--line:#7c828a;
--link:#14578c;--focus:#b3261e;--sunk:#f3f1eb;--lit:#fff6d6;
--h:#1b6541;--h-on:#e4f3ea;--a:#17568a;--a-on:#e3eef8;--c:#8c4208;--c-on:#fcecdc;--r:#673a93;--r-on:#f1e8f9;
--serif:Charter,"Bitstream Charter","Iowan Old Style","Source Serif 4","Sitka Text",Cambria,Georgia,serif;
--mono:ui-monospace,"SF Mono",Menlo,Consolas,"Liberation Mono","DejaVu Sans Mono",monospace"""
_DARK = """
--paper:#15181c;--card:#1d2126;--ink:#e8e6e1;--soft:#abb1b9;--hair:#343a42;--line:#868e98;
--link:#8cc2f0;--focus:#ffb4a9;--sunk:#23282e;--lit:#3a3417;
--h:#8bd6ae;--h-on:#16352a;--a:#93c6f4;--a-on:#17324b;--c:#f5b884;--c-on:#43290f;--r:#d3b3f2;--r-on:#362549"""
_DRAWINGS = """
svg{display:block;max-width:100%;height:auto}
svg text{font:13px var(--mono);fill:var(--ink)}
.graph{margin:0 auto}
.graph .name,.tree .free{font-weight:700}
.graph .under,.tree .shared{font-size:11px;fill:var(--soft)}
.graph a{text-decoration:none}
.graph .box{fill:var(--card);stroke:var(--line);stroke-width:1.3}
.graph .given .box{fill:var(--sunk)}
.graph .stored{stroke:var(--line);stroke-width:1.3}
.graph a:hover .box,.graph a:focus-visible .box{stroke:var(--focus);stroke-width:2.6}
.graph .frame{fill:var(--r-on);stroke:var(--r);stroke-width:1}
.again{fill:var(--r-on);stroke:var(--r);stroke-width:1.2}
.turn{fill:none;stroke:var(--r);stroke-width:1.6;stroke-linecap:round;stroke-linejoin:round}
.arrow .line{fill:none;stroke:var(--line);stroke-width:1.4}
.arrow .head{fill:var(--line)}
.arrow.negative .line{stroke:var(--c);stroke-dasharray:6 4;stroke-width:1.6}
.arrow.negative .head{fill:var(--c)}
.arrow.aggregate .line{stroke:var(--a);stroke-dasharray:1 4;stroke-width:2.2;stroke-linecap:round}
.arrow.aggregate .head{fill:var(--card);stroke:var(--a);stroke-width:1.4}
.arrow:hover .line{stroke-width:2.8}
.tree .bag{fill:var(--card);stroke:var(--line);stroke-width:1.3}
.tree .rule{stroke:var(--hair)}
.tree .atom{font-size:12px;fill:var(--soft)}
.tree .branch{fill:none;stroke:var(--line);stroke-width:1.3}
.tree .label{fill:var(--sunk)}
"""
STYLE = (
    f":root{{color-scheme:light dark;{_LIGHT}}}\n@media (prefers-color-scheme:dark){{:root{{{_DARK}}}}}"
    + """
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%;scroll-padding-top:1.5rem}
body{margin:0;background:var(--paper);color:var(--ink);
font:1rem/1.6 system-ui,-apple-system,"Segoe UI",sans-serif}
a{color:var(--link);text-underline-offset:.18em;text-decoration-thickness:.06em}
a:hover{text-decoration-thickness:.14em}
:focus-visible{outline:3px solid var(--focus);outline-offset:3px;border-radius:4px}
.skip{position:absolute;left:1rem;top:-6rem;z-index:9;padding:.6rem 1rem;background:var(--card);
border-radius:8px}
.skip:focus{top:1rem}
main:focus{outline:none}
.page{max-width:1360px;margin:0 auto;padding:2.5rem clamp(1rem,4vw,3rem) 5rem}
h1,h2{font-family:var(--serif);font-weight:600;line-height:1.2;letter-spacing:-.01em;overflow-wrap:anywhere}
h1{font-size:clamp(2rem,5vw,3rem);margin:.1rem 0 .8rem}
h2{font-size:1.6rem;margin:0 0 .6rem}
h3{font:600 1.02rem/1.4 var(--mono);margin:0;overflow-wrap:anywhere}
code,pre,.mono{font-family:var(--mono);font-size:.9em}
p{margin:.4rem 0;max-width:68ch}
.kicker{margin:0;color:var(--soft);font-size:.9rem;letter-spacing:.04em}
.lead{font-size:1.12rem;max-width:60ch}
.soft{color:var(--soft)}
header.top{padding-bottom:2rem;border-bottom:1px solid var(--hair)}
.legend{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,17rem),1fr));gap:.7rem 2rem;
margin:1.6rem 0 0;
padding:0;list-style:none;font-size:.94rem}
.legend p{margin:.2rem 0 0;color:var(--soft)}
details.more summary{cursor:pointer;color:var(--link);width:fit-content}
.symbols{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,24rem),1fr));gap:.3rem 2rem;
margin:1.8rem 0 0;
font-size:.9rem;color:var(--soft)}
.symbols>div{display:grid;grid-template-columns:2.6rem 1fr;gap:.3rem}
.symbols dt{font:italic 1.08rem/1.4 var(--serif);color:var(--ink)}
.symbols dd{margin:0}
nav{margin:1.6rem 0 0;font-size:.94rem}
nav ul{display:flex;flex-wrap:wrap;gap:.2rem 1.3rem;margin:0;padding:0;list-style:none}
nav li{padding:.15rem 0}
nav .each{display:none}
main section{margin:3rem 0 0}
section>h2 .columns{font:400 .88rem/1.5 var(--mono);color:var(--soft);letter-spacing:0}
section>h2 code{font-size:1.25rem;font-weight:600}
.scroll{position:relative;overflow-x:auto;max-width:100%}
.panel{background:var(--card);border:1px solid var(--hair);border-radius:12px}
.panel.scroll{padding:1.2rem;margin-top:1rem}
.table.scroll{padding:0}
.keys{display:flex;flex-wrap:wrap;gap:.3rem 1.5rem;margin:.8rem 0;padding:0;list-style:none;font-size:.88rem;
color:var(--soft)}
.keys li{display:flex;align-items:center;gap:.5rem}.keys svg{width:38px;height:20px;flex:none}
.badge{display:inline-flex;align-items:center;gap:.4rem;padding:.1rem .65rem .1rem .3rem;border-radius:99px;
font:500 .86rem/1.5 system-ui,-apple-system,"Segoe UI",sans-serif;white-space:nowrap;vertical-align:middle;
background:var(--on);color:var(--own)}
.hierarchical{--own:var(--h);--on:var(--h-on)}.acyclic{--own:var(--a);--on:var(--a-on)}
.cyclic{--own:var(--c);--on:var(--c-on)}.recursive{--own:var(--r);--on:var(--r-on)}
.sign{width:20px;height:20px;flex:none;fill:var(--own)}
.sign text{fill:var(--on);font:700 11px/1 system-ui,sans-serif}
table{border-collapse:collapse;width:100%;min-width:48rem;font-size:.94rem}
th,td{padding:.6rem 1rem;text-align:left;vertical-align:top;border-bottom:1px solid var(--hair)}
thead th{font-weight:600;color:var(--soft);font-size:.86rem;vertical-align:bottom}
tbody th{font-weight:400;width:34%;max-width:20rem}
td{min-width:9.4rem}
tbody th a{font-family:var(--mono);font-size:.92em}
tbody th small{display:block;color:var(--soft);font:.8rem/1.5 var(--mono);overflow:hidden;text-overflow:ellipsis;
white-space:nowrap}
tbody tr:last-child>*{border-bottom:0}
tbody tr:hover{background:var(--sunk)}
td .strategy{display:block;color:var(--soft);font-size:.86rem}
.cost{font-family:var(--serif);font-size:1.1em;white-space:nowrap}
.cost sup{font-size:.72em;line-height:0}
.hide{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%);white-space:nowrap}
.given-list{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,19rem),1fr));gap:.8rem;
margin:1rem 0 0;
padding:0;list-style:none}
.given-list li{padding:.7rem 1rem;border-left:3px double var(--line)}
.given-list code{font-weight:600;overflow-wrap:anywhere}
.given-list .columns{font-weight:400;color:var(--soft)}
.given-list p{font-size:.88rem;color:var(--soft);margin:0}
article{margin:1.4rem 0 0;padding:1.3rem clamp(1rem,2.5vw,1.7rem) 1.5rem}
:target{scroll-margin-top:1.5rem}
article:target,li:target,section:target>h2{box-shadow:0 0 0 3px var(--lit),0 0 0 4px var(--line);
border-radius:10px}
.title{display:flex;flex-wrap:wrap;align-items:center;gap:.4rem .9rem}
.title .soft{margin-left:auto;font-size:.86rem}
pre{margin:.9rem 0;padding:.8rem 1rem;background:var(--sunk);border-radius:8px;font-size:.92rem;line-height:1.6;
white-space:pre-wrap;overflow-wrap:anywhere}
pre code{font-size:1em}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,13rem),1fr));gap:1rem 1.6rem;
margin:1.1rem 0}
.tiles>div{border-top:2px solid var(--hair);padding-top:.5rem}
.tiles>div.now{border-top-color:var(--ink)}
.tiles dt{font-size:.86rem;color:var(--soft)}
.tiles dd{margin:.1rem 0 0;font-size:.92rem}
.tiles dd.big{font-size:1rem}.tiles .cost{font-size:1.35rem;line-height:1.4}
.facts{display:grid;grid-template-columns:max-content 1fr;gap:.25rem 1.2rem;margin:1rem 0 0;font-size:.94rem}
.facts dt{color:var(--soft)}
.facts dd{margin:0;min-width:0;overflow-wrap:anywhere}
.drawings{display:flex;flex-wrap:wrap;gap:1.4rem 3rem;margin:1.4rem 0 0}
figure{margin:0;max-width:100%;min-width:0}
figcaption{margin:0 0 .7rem;font-size:.88rem;color:var(--soft)}
details.more{margin:1.2rem 0 0}
"""
    + _DRAWINGS
    + """
footer{margin:4rem 0 0;padding-top:1.2rem;border-top:1px solid var(--hair);color:var(--soft);font-size:.88rem}
@media (max-width:40rem){tbody th small{display:none}
th:first-child{position:sticky;left:0;background:var(--card)}table{min-width:38rem}.facts{grid-template-columns:1fr;
gap:0}
.facts dd{margin-bottom:.5rem}.title .soft{margin-left:0}th,td{padding:.55rem .7rem}}
@media (min-width:72rem){.page{display:grid;grid-template-columns:13rem minmax(0,1fr);gap:0 3.5rem}
header.top,footer{grid-column:1/-1}
nav{position:sticky;top:1.5rem;align-self:start;max-height:calc(100vh - 3rem);overflow-y:auto;margin-top:3rem;
padding:4px}
nav ul{display:block}nav .each{display:block;margin:.2rem 0 .8rem;padding-left:.8rem;
border-left:1px solid var(--hair)}
nav .each a{font-family:var(--mono);font-size:.84rem;overflow-wrap:anywhere}}
@media (min-width:60rem){.symbols{grid-template:auto auto/1fr 1.4fr 1.4fr;grid-auto-flow:column}}
@media print{.skip,nav{display:none}article,figure{break-inside:avoid}}
"""
)


def scoped(name: str) -> str:
    """The style of drawings alone, for one class of a page that is not ours.

    >>> scoped("mine").splitlines()[-1]
    '.mine .tree .label{fill:var(--sunk)}'
    """
    rules = []
    for rule in re.findall(r"[^{}]+\{[^{}]*\}", _DRAWINGS):
        selectors, _, declarations = rule.strip().partition("{")
        rules.append(",".join(f".{name} {each.strip()}" for each in selectors.split(",")) + "{" + declarations)
    own = (
        f".{name}{{{_LIGHT};background:var(--paper);color:var(--ink);padding:12px;max-width:100%;overflow-x:auto}}"
    )
    dark = f"@media (prefers-color-scheme:dark){{.{name}{{{_DARK}}}}}"
    return "\n".join([own, dark, *rules])

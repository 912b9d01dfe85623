"""The page of `everlog explain --html`, with drawings of rules and trees.

| module | holds |
|---|---|
| `page` | the whole page |
| `trees`, `tree_layout` | trees, and the layout of the rule graph |
| `drawing`, `markup`, `style` | SVG, HTML and CSS |
"""

"""The page of `everlog explain --html`: rules, join trees and variable orders, drawn.

| module | holds |
|---|---|
| `page` | the whole page |
| `trees`, `tree_layout` | trees, and where their nodes stand |
| `drawing`, `markup`, `style` | SVG, HTML and CSS |
"""

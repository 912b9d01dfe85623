"""What an update of a rule can cost, known before any data is loaded.

| module | holds |
|---|---|
| `query` | the positive join of a rule body as a hypergraph |
| `classes` | hierarchical, q-hierarchical, free-connex, acyclic, cyclic, Loomis–Whitney; why |
| `covers` | fractional edge covers, exact, with certificates |
| `decompositions` | join trees and tree decompositions |
| `widths` | fractional hypertree width, free-connex width |
| `multivariate` | the multivariate extension and its width |
"""

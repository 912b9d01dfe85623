"""How to make a fact come or go: the least changes of base facts that do it.

| module | holds |
|---|---|
| `repair` | what is asked, what is allowed, and what an answer is |
| `repair_search` | the search among sets of changes, smallest first, each tried on the engine |
| `next_changes` | in one state, the changes that a goal needs next |
| `instances` | bodies of rules that would hold if some facts came or went |
| `domain` | values for variables that nothing binds |
"""

from everlog.core.repairs.repair import Allowed, Bounds, Repair, Repairs
from everlog.core.repairs.repair_search import Trial, repairs

__all__ = ["Allowed", "Bounds", "Repair", "Repairs", "Trial", "repairs"]

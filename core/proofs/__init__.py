"""Why a fact is there, and why another is not.

| module | holds |
|---|---|
| `search` | `why`: the search for a proof |
| `missing` | `why_not`: rule by rule, where a derivation stops |
| `checker` | `verify`: a proof checked against the reference evaluator |
| `proof`, `render` | what a proof is; its forms as text, JSON and a graph |
| `solve`, `reader` | rule bodies solved over tables; lookups in one table |
| `forward` | derivations of a recursive unit whose engine names no last steps |
| `first_derivations` | the same where only the order of evaluation tells |
| `equivalences` | which pairs made two values equivalent |
| `demanded_facts` | proofs where relations are on demand |
| `evidence`, `notation` | the interface of an engine for proofs; literals as text |
"""

from everlog.core.proofs.checker import verify
from everlog.core.proofs.evidence import Evidence, LastStep
from everlog.core.proofs.missing import Attempt, WhyNot, why_not
from everlog.core.proofs.proof import Condition, NotDerived, Proof
from everlog.core.proofs.search import why

__all__ = [
    "Attempt",
    "Condition",
    "Evidence",
    "LastStep",
    "NotDerived",
    "Proof",
    "WhyNot",
    "verify",
    "why",
    "why_not",
]

"""Why a fact is there, and why another is not.

====================  ======================================================================
`proofs.search`       `why`: the search for a proof
`proofs.missing`      `why_not`: rule by rule, where a derivation stops
`proofs.checker`      `verify`: a proof checked against the reference evaluator
`proofs.proof`        what a proof is; `proofs.render` shows it as text, JSON or a graph
`proofs.solve`        rule bodies solved over tables; `proofs.reader` looks facts up
`proofs.forward`      recursion without witnesses; `proofs.replay`, where only the order tells
`proofs.classes`      which pairs made two values equivalent
`proofs.evidence`     what is asked of an engine; `proofs.words` has the wording
====================  ======================================================================
"""

from everlog.core.proofs.checker import verify
from everlog.core.proofs.evidence import Evidence, Witness
from everlog.core.proofs.missing import Attempt, WhyNot, why_not
from everlog.core.proofs.proof import Condition, NotDerived, Proof
from everlog.core.proofs.search import why

__all__ = [
    "Attempt",
    "Condition",
    "Evidence",
    "NotDerived",
    "Proof",
    "WhyNot",
    "Witness",
    "verify",
    "why",
    "why_not",
]

"""The functors of constant_propagation.dl: "" below every number, "any" above it."""


def join(a: str, b: str) -> str:
    return a or b if not a or not b or a == b else "any"


def meet(a: str, b: str) -> str:
    return b if a == "any" else a if b in ("any", a) else ""


def add(a: str, n: int) -> str:
    return a if a in ("", "any") else str(int(a) + n)

"""Functions that the specifications of this folder fold."""


def longer(a: str, b: str) -> str:
    return max(a, b, key=len)


def digits(value: int, digit: int) -> int:
    return 10 * value + digit


def product(value: int, factor: int) -> int:
    return value * factor


def hull(value: str, x: int) -> str:
    """The interval that also has `x`."""
    low, _, high = value.partition("..")
    return f"{min(x, int(low or x))}..{max(x, int(high or x))}"


def share(value: int, x: int) -> int:
    return value // x

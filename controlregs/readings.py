"""What the value of a field without codes means, in words: for `Field.reading`."""

from collections.abc import Callable, Mapping

Reading = Callable[[int], str]


def listed(noun: str = "", names: Mapping[int, str] | None = None, none: str = "") -> Reading:
    """A mask as the list of its ones, by *names* or by number: "filters 0, 3". *none* is said of 0."""

    def read(value: int) -> str:
        ones = [n for n in range(value.bit_length()) if value >> n & 1]
        if not ones:
            return none
        plural = noun + "s" if noun and len(ones) > 1 else noun
        return f"{plural} {', '.join((names or {}).get(n, str(n)) for n in ones)}".strip()

    return read


def every(exponent: int) -> Reading:
    """A period of 2**(value + *exponent*) units."""
    return lambda value: f"every {1 << value + exponent}"


def divided_by(value: int) -> str:
    """A clock divider: the input clock over value + 1."""
    return f"clock / {value + 1}"

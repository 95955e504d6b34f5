"""Numbers that stand for others in a text, and where the others are filled in."""

import re

NUMBER, OFFSET, POSITION, ADDRESS, VALUE, OLD, NEW, NAME, DISTANCE = range(9)
"""What is filled in. The last two: the name at an address, and the address's distance from it."""

_BASE = 7_362_910_000_000_000_000  # has digits like no other number, for texts that ignore formats
_PLACES = re.compile(f"⟦([0-9]):([0-9a-z]*)⟧|{_BASE // 10}([0-9])")


class Placeholder(int):
    """A number whose text is a mark for another one. *symbol*: what is at it, if it is an address."""

    symbol: "tuple[str, int] | None"

    def __new__(cls, place: int, *, named: bool = False) -> "Placeholder":
        made = super().__new__(cls, _BASE + place)
        made.symbol = (f"⟦{NAME}:s⟧", Placeholder(DISTANCE)) if named else None
        return made

    def __format__(self, spec: str) -> str:
        return f"⟦{int(self) - _BASE:d}:{spec}⟧"

    def __str__(self) -> str:
        return format(self, "")


def places_in(text: str) -> list[int]:
    """Return what is to be filled in, in the order of the text."""
    return [int(place or digit) for place, _, digit in _PLACES.findall(text)]


def conversions(text: str) -> str:
    """Return the text with a conversion of the % operator at each place."""
    return _PLACES.sub(lambda place: f"%{place[2] or 'd'}", text.replace("%", "%%"))

"""The search for places that ran, `trace find`: functions that were entered, lines, addresses, and ranges of them."""

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

from rvtrace_gdb.decode.history.events import EventKind
from rvtrace_gdb.decode.history.history import GAP, History
from rvtrace_gdb.decode.program.image import ContextImages, Image
from rvtrace_gdb.decode.search import CombinedSearch, Query, Search, arrivals, entries_of, executions
from rvtrace_gdb.rows.list_rows import FoundRow
from rvtrace_gdb.session.queries.search import Answer, BadQuestion, Places, Searching

EXECUTION = "execution"


class Executions(NamedTuple):
    """A search for executions: of the instructions at *first* and *others*; with *last*, of each arrival in the range
    from *first* to *last*; or of each entry of the function at *first*, of *functions* elsewhere, and of the
    instructions at *others*.

    *name*: the user's expression. *also*: more places, in the same list.
    """

    name: str
    first: int
    last: int | None = None
    function: bool = False
    others: tuple[int, ...] = ()
    functions: tuple[int, ...] = ()
    also: tuple["Executions", ...] = ()

    def answer(self, history: History, program: ContextImages, search: Searching) -> Answer:
        places = self._places()
        searches = [search(wanted) for wanted in _apart(places, program.base)]
        found = searches[0] if len(searches) == 1 else CombinedSearch(searches, len(history))
        none = _none(history, [place.name for place in places])
        if len(places) == 1 or not len(found):
            return _Executions(history, program, none, [], found)
        absent = [place.name for place in places if not any(len(search(it)) for it in place.wanted(program.base))]
        return _Executions(history, program, none, [_none(history, absent)] if absent else [], found)

    def comes(self, pc: int, history: History, program: ContextImages) -> bool:
        """Return whether the instruction at *pc*, if it runs after the history, begins one more execution."""
        last = history.pc(len(history) - 1) if len(history) else GAP
        wanted = (one for place in self._places() for one in place.wanted(program.base) if pc in one.addresses)
        return any(last == GAP or last not in one.not_after for one in wanted)

    def wanted(self, image: Image) -> list[Query]:
        """Return the searches for the addresses, range or functions of this place alone."""
        if self.last is not None:
            return [arrivals(self.first, self.last)]
        if not self.function:
            return [executions(self.first, *self.others)]
        entries = [entries_of(function, image) for function in (self.first, *self.functions)]
        with_loops = [wanted for wanted in entries if wanted.entered is not None]
        plain = [function for function, wanted in zip((self.first, *self.functions), entries, strict=True)
                 if wanted.entered is None]  # fmt: skip
        places = [*plain, *self.others]
        return [*with_loops, *([executions(*places)] if places else [])]

    def _places(self) -> list["Executions"]:
        return [self._replace(also=()), *self.also]

    def addresses(self) -> Sequence[int]:
        """Return the addresses that are searched; of a range, all in it."""
        return [self.first, *self.others, *self.functions] if self.last is None else range(self.first, self.last + 1)


def _apart(places: Sequence[Executions], image: Image) -> list[Query]:
    """Return the searches for all places, which have no result in common. Raises BadQuestion: a place is in a range."""
    for one, other in combinations(dict.fromkeys(places), 2):
        if (one.last is not None or other.last is not None) and _overlap(one, other):
            raise BadQuestion(f"{one.name} and {other.name} have code in common: search for one after the other")
    ranges, plain, entered = list[Query](), set[int](), dict[int, Query]()
    for place in dict.fromkeys(places):
        for wanted in place.wanted(image):
            if place.last is not None:
                ranges.append(wanted)
            elif wanted.entered is not None:
                entered[wanted.entered] = wanted
            else:
                plain.update(_set(wanted))
    loops = [wanted for function, wanted in entered.items() if function not in plain]
    return [*loops, *([executions(*plain)] if plain else []), *ranges]


def _set(wanted: Query) -> frozenset[int]:
    assert isinstance(wanted.addresses, frozenset)
    return wanted.addresses


def _overlap(one: Executions, other: Executions) -> bool:
    if one.last is None:
        return any(address in other.addresses() for address in one.addresses())
    if other.last is None:
        return _overlap(other, one)
    return one.first <= other.last and other.first <= one.last


def _none(history: History, names: Sequence[str]) -> str:
    """Return the message that places did not run."""
    listed = " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
    gaps = " It has gaps: see `trace gaps`." if history.gaps else ""
    return f"{listed} did not run in this history.{gaps}"


class _Executions:
    """Executions. *none*, *notes*: as of every answer."""

    def __init__(
        self, history: History, program: ContextImages, none: str, notes: list[str], search: Search | CombinedSearch
    ) -> None:
        self._places, self._search = Places(history, program), search
        self.none = none
        self.notes: Sequence[str] = notes

    def __len__(self) -> int:
        return len(self._search)

    def position(self, number: int) -> int:
        return self._search.position(number)

    def before(self, position: int) -> int:
        return self._search.before(position)

    def row(self, number: int) -> FoundRow:
        places, position = self._places, self._search.position(number)
        history = places.history
        said = history.events_between(position, position + 1)
        text = "; ".join(event.text for event in said if event.kind is EventKind.TRAP)
        here, source, time = places.at(position), places.before(position), history.time_at(position)
        return FoundRow(number + 1, position + 1, here, EXECUTION, text, source, None, time, None)

"""The search for places that ran, `trace find`: functions that were entered, lines, addresses, and ranges of them."""

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

from rvtrace_gdb.decode.history.events import EventKind
from rvtrace_gdb.decode.history.history import GAP, History
from rvtrace_gdb.decode.history.positions import history_number
from rvtrace_gdb.decode.program.context_images import ContextImages
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.search import AddressQuery, CombinedSearch, ExecutionSearch, arrivals, entries_of, executions
from rvtrace_gdb.rows.list_rows import FoundRow
from rvtrace_gdb.session.queries.lists.search import BadQuery, Places, QueryResults, Searcher

EXECUTION = "execution"


class ExecutionQuery(NamedTuple):
    """Asks for executions: of the instructions at *first* and *others*; with *last*, of each arrival in the range
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
    also: tuple["ExecutionQuery", ...] = ()

    def results(self, history: History, program: ContextImages, searcher: Searcher) -> QueryResults:
        places, image, images = self._alternatives(), program.all_programs, searcher.calls().images
        searches = [searcher.search(query) for query in place_queries(places, images, image)]
        found = searches[0] if len(searches) == 1 else CombinedSearch(searches, len(history))
        none_message = _none_message(history, [place.name for place in places])
        if len(places) == 1 or not len(found):
            return ExecutionResults(history, program, none_message, [], found)
        alone = ((place.name, place_queries([place], images, image)) for place in places)
        not_run = [name for name, queries in alone if not any(len(searcher.search(it)) for it in queries)]
        notes = [_none_message(history, not_run)] if not_run else []
        return ExecutionResults(history, program, none_message, notes, found)

    def comes(self, pc: int, history: History, program: ContextImages) -> bool:
        """Return whether the instruction at *pc*, if it runs after the history, begins one more execution."""
        last = history.pc(len(history) - 1) if len(history) else GAP
        places, image = self._alternatives(), program.all_programs
        queries = (query for place in places for query in place.queries(image) if pc in query.addresses)
        return any(last == GAP or last not in query.not_after for query in queries)

    def queries(self, image: Image) -> list[AddressQuery]:
        """Return the searches for the addresses, range or functions of this place alone."""
        if self.last is not None:
            return [arrivals(self.first, self.last)]
        if not self.function:
            return [executions(self.first, *self.others)]
        entries = [entries_of(function, image) for function in (self.first, *self.functions)]
        with_loops = [query for query in entries if query.entered is not None]
        plain = [function for function, query in zip((self.first, *self.functions), entries, strict=True)
                 if query.entered is None]  # fmt: skip
        places = [*plain, *self.others]
        return [*with_loops, *([executions(*places)] if places else [])]

    def _alternatives(self) -> list["ExecutionQuery"]:
        return [self._replace(also=()), *self.also]

    def addresses(self) -> Sequence[int]:
        """Return the addresses that are searched; of a range, all in it."""
        return [self.first, *self.others, *self.functions] if self.last is None else range(self.first, self.last + 1)


def place_queries(places: Sequence[ExecutionQuery], images: Sequence[Image], joined: Image) -> list[AddressQuery]:
    """Return the searches for all places, which have no result in common. *images*: of the programs that ran; *joined*:
    all of them in one. Another program may have other code at the address of a function: it is searched where it is.
    A program that has no code there may have it searched, too. Raises BadQuery: a place is in a range.
    """
    if len(images) < 2:
        return _disjoint_queries(places, joined)
    groups = dict[tuple[object, ...], tuple[list[ExecutionQuery], set[int]]]()
    named = [_in_programs(place, images) for place in places]
    searched = {at for found in named for it in found if it is not None and it.last is None for at in it.addresses()}
    others = {number for number, image in enumerate(images)
              if not any(found[number] for found in named) and not any(map(image.knows, searched))}  # fmt: skip
    for number, image in enumerate(images):
        here = [it for found in named if (it := found[number]) is not None]
        files = (image.file_at(it) for place in here if place.function for it in (place.first, *place.functions))
        key = (*here, *((file[0].path, file[1]) if file else None for file in files))
        groups.setdefault(key, (here, set(others)))[1].add(number)
    return [
        query._replace(programs=None if len(numbers) == len(images) else frozenset(numbers))
        for here, numbers in groups.values() if here
        for query in _disjoint_queries(here, images[min(numbers)])
    ]  # fmt: skip


def functions_searched(queries: Sequence[AddressQuery]) -> list[int]:
    """Return the functions whose entries are searched, in the order of their addresses."""
    return sorted({at for query in queries for at in _searched_addresses(query)})


def _in_programs(place: ExecutionQuery, images: Sequence[Image]) -> list[ExecutionQuery | None]:
    """Return the place that is meant in each of some programs, None: none. A function is where that program has one of
    that name; if none has, by what the user wrote, it is at its address in all of them.
    """
    given = {place.first, *place.functions}
    named = [{at for at, _ in image.symbols_named(place.name)} for image in images] if place.function else []
    if not any(named) and place.function:
        of_file = place.name.rpartition(":")[2]
        named = [{at for at, _ in image.symbols_named(of_file)} & given for image in images]
    if not any(named):
        return [place for _ in images]
    return [_at_functions(place, sorted(found), is_given=bool(found & given)) for found in named]


def _at_functions(place: ExecutionQuery, functions: list[int], *, is_given: bool) -> ExecutionQuery | None:
    """Return a place with other functions; *is_given*: it is about a program whose addresses the place has."""
    if not functions:
        return None
    return place._replace(
        first=functions[0], functions=tuple(functions[1:]), others=place.others if is_given else (), also=()
    )


def _disjoint_queries(places: Sequence[ExecutionQuery], image: Image) -> list[AddressQuery]:
    """Return the searches for all places, which have no result in common. Raises BadQuery: a place is in a range."""
    for one, other in combinations(dict.fromkeys(places), 2):
        if (one.last is not None or other.last is not None) and _overlap(one, other):
            raise BadQuery(f"{one.name} and {other.name} have code in common: search for one after the other")
    ranges, plain, entered = list[AddressQuery](), set[int](), dict[int, AddressQuery]()
    for place in dict.fromkeys(places):
        for query in place.queries(image):
            if place.last is not None:
                ranges.append(query)
            elif query.entered is not None:
                entered[query.entered] = query
            else:
                plain.update(_searched_addresses(query))
    loops = [query for function, query in entered.items() if function not in plain]
    return [*loops, *([executions(*plain)] if plain else []), *ranges]


def _searched_addresses(query: AddressQuery) -> frozenset[int]:
    assert isinstance(query.addresses, frozenset)
    return query.addresses


def _overlap(one: ExecutionQuery, other: ExecutionQuery) -> bool:
    if one.last is None:
        return any(address in other.addresses() for address in one.addresses())
    if other.last is None:
        return _overlap(other, one)
    return one.first <= other.last and other.first <= one.last


def _none_message(history: History, names: Sequence[str]) -> str:
    """Return the message that places did not run."""
    listed = " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
    gaps = " It has gaps: see `trace gaps`." if history.gaps else ""
    return f"{listed} did not run in this history.{gaps}"


class ExecutionResults:
    """Executions, see `QueryResults`."""

    def __init__(
        self, history: History, program: ContextImages, none_message: str, notes: list[str],
        search: ExecutionSearch | CombinedSearch,
    ) -> None:  # fmt: skip
        self._places, self._search = Places(history, program), search
        self.none_message = none_message
        self.notes: Sequence[str] = notes

    def __len__(self) -> int:
        return len(self._search)

    def position(self, index: int) -> int:
        return self._search.position(index)

    def count_before(self, position: int) -> int:
        return self._search.before(position)

    def row(self, index: int) -> FoundRow:
        places, position = self._places, self._search.position(index)
        history = places.history
        events = history.events_between(position, position + 1)
        traps = [event for event in events if event.kind is EventKind.TRAP]
        return FoundRow(
            number=index + 1,
            position=history_number(position),
            kind=EXECUTION,
            here=places.instruction(position),
            facts=None,
            text="; ".join(event.text for event in traps),
            source=places.source_place(position, traps),
            target=None,
            time=history.time_at(position),
            expected=None,
            offset=None,
            task=None,
            process=None,
            thread=None,
        )

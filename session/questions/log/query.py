"""What a dprintf would have printed, as a list: a row each time the program was at a place, with values of then."""

from abc import ABC, abstractmethod
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeVar

from rvtrace_gdb.decode.computed import Computed
from rvtrace_gdb.decode.expressions.compiled import (
    CompiledExpression,
    ExpressionCompiler,
    TextFunction,
    text_function,
)
from rvtrace_gdb.decode.expressions.evaluator import Evaluator
from rvtrace_gdb.decode.expressions.formatting import FORMATS, Formatter
from rvtrace_gdb.decode.expressions.locations import ExpressionMoment, UnknownValue
from rvtrace_gdb.decode.expressions.syntax import BadExpression, ChangingExpression, ExpressionNode
from rvtrace_gdb.decode.expressions.values import TypedValue
from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.decode.history.positions import history_number
from rvtrace_gdb.decode.program.context_images import ContextImages
from rvtrace_gdb.decode.program.csrs import ProgramContext
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.program.source.prologues import Prologues
from rvtrace_gdb.decode.program.source.source_lines import SourceLines
from rvtrace_gdb.rows.list_rows import LoggedRow, Place
from rvtrace_gdb.session.past.past import Past
from rvtrace_gdb.session.queries.lists.executions import ExecutionQuery
from rvtrace_gdb.session.queries.lists.search import AT_GAP, BadQuery, Places, QueryResults, Searcher
from rvtrace_gdb.session.questions.log.printf import FilledFormat, FormatPiece, count_of, parsed_format
from rvtrace_gdb.session.questions.moment import FunctionEntries, PastMoment, UnknownPast
from rvtrace_gdb.support.errors import Progress
from rvtrace_gdb.support.text import counted

_T = TypeVar("_T")
_HeldAt = Callable[[PastMoment], bool]
_STEP = 256  # conditions between two reports of progress


class NotUnderstood(BadQuery):
    """An expression that is none here; a debugger may know better."""


class LogRequest(NamedTuple):
    """What is logged: *expressions*, the first of which may be a format in quotes; *condition*: "" for none; *letter*:
    of `/x`.
    """

    expressions: tuple[str, ...]
    condition: str = ""
    letter: str = ""


class LogTools:
    """What evaluates expressions of a program."""

    def __init__(self, image: Image) -> None:
        self.evaluator, self.lines, self.prologues = Evaluator(image), SourceLines(image), Prologues(image)


class LogQuery(NamedTuple):
    """Asks for a log. *part*: positions of the history, None: all. *past*: None: no value is known."""

    where: ExecutionQuery
    request: LogRequest
    part: range | None
    past: Past | None
    tools: LogTools

    def results(self, history: History, program: ContextImages, searcher: Searcher) -> QueryResults:
        found = self.where.results(history, program, searcher)
        every: Hits = _Hits(found, self.part, len(history))
        positions = self._own_hits(every, searcher)
        if self.past is not None and len(positions):
            self.past.prepare(searcher.progress)
        log = LogTexts(self, history, program, searcher)
        if len(positions):
            log.check([positions.position(index) for index in range(min(len(positions), _CHECKED))])
        kept: Hits = positions
        undecided: frozenset[int] = frozenset()
        if self.request.condition and len(positions):
            kept, undecided = log.chosen(positions, searcher.progress)
        return LogResults(log, kept, undecided, found.none_message, len(every) - len(positions))

    def _own_hits(self, hits: "Hits", searcher: Searcher) -> "Hits":
        """Return the hits at code of which the expressions are about: where other programs have other code at the same
        addresses, what its variables are is not known.
        """
        calls = searcher.calls()
        if len(calls.images) < 2:
            return hits
        meant, kept, pc_of = self._meant_places(calls.images), array("Q"), calls.history.pc
        for index in range(len(hits)):
            if not index % _STEP:
                searcher.progress("looking for the program (times)", index, len(hits))
            position = hits.position(index)
            if meant[calls.program_at(position), pc_of(position)]:
                kept.append(position)
        return _ChosenHits(kept)

    def _meant_places(self, images: Sequence[Image]) -> Computed[tuple[int, int], bool]:
        """Return by the number of a program, and an address, whether the expressions and the place are about it: of a
        function, that it is in one of its name, or in code of it that is part of another one.
        """
        image, places = self.tools.evaluator.image, (self.where, *self.where.also)
        named = [{at for place in places for at, _ in it.symbols_named(place.name)} for it in images]
        parts = Computed[int, set[int]](lambda number: _inlined_entries(images[number], [it.name for it in places]))

        def is_meant(place: tuple[int, int]) -> bool:
            number, pc = place
            if _placed_file(images[number], pc) != _placed_file(image, pc):
                return False
            return not any(named) or images[number].function(pc) in named[number] or pc in parts[number]

        return Computed(is_meant)


def _inlined_entries(image: Image, names: Sequence[str]) -> set[int]:
    program = Evaluator(image).program
    return {at for name in names for at in program.inlined_entries(name)}


def _placed_file(image: Image, pc: int) -> tuple[str, int] | None:
    found = image.file_at(pc)
    return None if found is None else (found[0].path, found[1])


_CHECKED = 64  # rows that are looked at before an expression is refused


class Hits(ABC):
    """Positions in order."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def position(self, index: int) -> int: ...

    @abstractmethod
    def count_before(self, position: int) -> int: ...


class _Hits(Hits):
    """The executions of a search in a part of the history."""

    def __init__(self, executions: QueryResults, part: range | None, length: int) -> None:
        part = range(length) if part is None else part
        self._found = executions
        self._first, self._end = executions.count_before(part.start), executions.count_before(part.stop)

    def __len__(self) -> int:
        return self._end - self._first

    def position(self, index: int) -> int:
        return self._found.position(self._first + index)

    def count_before(self, position: int) -> int:
        return min(max(self._found.count_before(position) - self._first, 0), len(self))


class _ChosenHits(Hits):
    """Some of them."""

    def __init__(self, positions: "array[int]") -> None:
        self._positions = positions

    def __len__(self) -> int:
        return len(self._positions)

    def position(self, index: int) -> int:
        return self._positions[index]

    def count_before(self, position: int) -> int:
        return bisect_left(self._positions, position)


class LoggedValue(NamedTuple):
    """The text of a value, and whether it is known."""

    text: str
    is_known: bool


class LogTexts:
    """Makes the texts of a log."""

    def __init__(self, query: LogQuery, history: History, program: ContextImages, searcher: Searcher) -> None:
        self._query, self.history, self._program = query, history, program
        self._entries = FunctionEntries(history, searcher.calls)
        request = query.request
        expressions = list(request.expressions)
        self._format: Sequence[FormatPiece] | None = None
        self._evaluator = query.tools.evaluator
        if expressions and expressions[0].startswith('"'):
            self._format = _checked(parsed_format, expressions.pop(0))
            if count_of(self._format) != len(expressions):
                few = "many" if len(expressions) > count_of(self._format) else "few"
                raise NotUnderstood(f"Bad format string: {few} values: {len(expressions)} of {count_of(self._format)}")
        if request.letter and request.letter not in FORMATS:
            raise BadQuery(f"/{request.letter}: the formats are /{', /'.join(FORMATS)}")
        self.texts = expressions
        self._formatter = Formatter(self._evaluator, request.letter)
        self._parsed: dict[tuple[str, int], ExpressionNode] = {}
        self._compiled: dict[tuple[str, int], CompiledExpression | None] = {}
        self._printing: dict[tuple[str, int], TextFunction] = {}

    def moment(self, position: int) -> PastMoment:
        """Return what is known at a position."""
        past = self._query.past
        known = UnknownPast() if past is None else past
        return PastMoment(known, position, self.history.pc(position), self._entries)

    def check(self, positions: Sequence[int]) -> None:
        """Raise NotUnderstood if an expression is one at none of some positions."""
        texts = [*self.texts, *([self._query.request.condition] if self._query.request.condition else [])]
        firsts = {self.history.pc(position): position for position in reversed(positions)}
        for text in texts:
            problems = [why for it in firsts.values() if (why := self._problem(text, self.moment(it))) is not None]
            if len(problems) == len(firsts):
                raise NotUnderstood(_named(text, problems[0]))
        for position in firsts.values() if self._format is None else [min(firsts.values())]:
            moment = self.moment(position)
            for text in self.texts if self._format is None else ():
                _checked(self._printed, text, moment)
            if self._format is not None:
                _checked(self._formatted, moment)

    def _problem(self, text: str, moment: PastMoment) -> str | None:
        try:
            self._value(text, moment)
        except ChangingExpression as error:
            raise BadQuery(str(error)) from None
        except BadExpression as error:
            return str(error)
        except UnknownValue:
            pass
        return None

    def _value(self, text: str, moment: ExpressionMoment) -> TypedValue:
        compiled = self._compiled_expression(text, moment.pc)
        if compiled is not None:
            return compiled.value(moment)
        return self._evaluator.value(self._node(text, moment.pc), moment)

    def _compiled_expression(self, text: str, pc: int) -> CompiledExpression | None:
        key = (text, pc)
        if key not in self._compiled:
            self._compiled[key] = ExpressionCompiler(self._evaluator, pc).compiled(self._node(text, pc))
        return self._compiled[key]

    def _node(self, text: str, pc: int) -> ExpressionNode:
        scope = self._evaluator.program.scope_at(pc)
        key = (text, id(scope))
        if key not in self._parsed:
            self._parsed[key] = self._evaluator.parsed(text, scope)
        return self._parsed[key]

    def chosen(self, hits: Hits, progress: Progress) -> tuple[Hits, frozenset[int]]:
        """Return the hits at which the condition holds, or may hold, and the positions of those where it may."""
        conditions: dict[int, _HeldAt] = {}
        kept, undecided = array("Q"), set()
        for index in range(len(hits)):
            if not index % _STEP:
                progress("evaluating the condition (times)", index, len(hits))
            position = hits.position(index)
            moment = self.moment(position)
            condition = conditions.get(moment.pc)
            if condition is None:
                condition = conditions[moment.pc] = self._new_condition(moment.pc)
            holds = _decided(condition, moment)
            if holds is not False:
                kept.append(position)
            if holds is None:
                undecided.add(position)
        return _ChosenHits(kept), frozenset(undecided)

    def _new_condition(self, pc: int) -> _HeldAt:
        """Return the condition at an instruction."""
        text = self._query.request.condition
        try:
            compiled = ExpressionCompiler(self._evaluator, pc).compiled_condition(self._node(text, pc))
        except BadExpression:
            compiled = None
        return compiled or (lambda moment: self._evaluator.is_true(self._value(text, moment), moment))

    def logged(self, moment: PastMoment) -> tuple[str, list[tuple[str, str, bool]]]:
        """Return the text at a moment, and the values: (expression, text, whether it is known)."""
        values = [(text, *self._logged_value(text, moment)) for text in self.texts]
        if self._format is None:
            return ", ".join(f"{name} = {text}" for name, text, _ in values), values
        try:
            return self._formatted(moment), values
        except BadExpression as error:
            return f"<error: {error}>", values

    def _logged_value(self, text: str, moment: PastMoment) -> LoggedValue:
        try:
            return self._printed(text, moment)
        except BadExpression as error:
            return LoggedValue(f"<error: {error}>", False)

    def _printed(self, text: str, moment: PastMoment) -> LoggedValue:
        printing = self._printing.get((text, moment.pc))
        if printing is None:
            printing = self._printing[text, moment.pc] = self._new_printing(text, moment.pc)
        try:
            return LoggedValue(*printing(moment))
        except UnknownValue as unknown:
            return LoggedValue(unknown.text, False)

    def _new_printing(self, text: str, pc: int) -> TextFunction:
        """Return what makes the text of an expression at an instruction."""
        compiled = self._compiled_expression(text, pc)
        if compiled is not None:
            return text_function(compiled, self._formatter)
        return lambda moment: self._formatter.text(self._value(text, moment), moment)

    def _formatted(self, moment: PastMoment) -> str:
        assert self._format is not None
        return FilledFormat(self._evaluator, self._format).text(list(self._given(moment)), moment)

    def _given(self, moment: PastMoment) -> Iterator[TypedValue | UnknownValue]:
        for text in self.texts:
            try:
                yield self._value(text, moment)
            except UnknownValue as unknown:
                yield unknown


def _decided(condition: _HeldAt, moment: PastMoment) -> bool | None:
    """Return whether a condition holds, None: that is not known."""
    try:
        return condition(moment)
    except (UnknownValue, BadExpression):
        return None


def _checked(make: Callable[..., _T], *given: object) -> _T:
    """Return what a function makes. Raises NotUnderstood."""
    try:
        return make(*given)
    except BadExpression as error:
        raise NotUnderstood(str(error)) from None


def _named(text: str, why: str) -> str:
    return why if why.startswith(text) else f"{text}: {why}"


class LogResults:
    """The rows of a log: what was printed, and between them where trace is missing."""

    def __init__(
        self, log: LogTexts, hits: Hits, undecided: frozenset[int], none_message: str, elsewhere: int
    ) -> None:
        self._log, self._hits, self._undecided = log, hits, undecided
        self.none_message = none_message
        self._places = Places(log.history, log._program)
        self._known_places: dict[tuple[int, ProgramContext], tuple[Place, str]] = {}
        self._gaps = list(_gap_groups(log.history, hits))
        self._gaps_before = [before + at for at, (_, _, before) in enumerate(self._gaps)]
        self.notes: Sequence[str] = _notes(log, len(undecided), elsewhere)

    def __len__(self) -> int:
        return len(self._hits) + len(self._gaps) if len(self._hits) else 0

    def _at(self, index: int) -> tuple[int, bool]:
        """Return the number of a row among its kind, and whether it is a gap."""
        gaps = bisect_left(self._gaps_before, index)
        if gaps < len(self._gaps) and self._gaps_before[gaps] == index:
            return gaps, True
        return index - gaps, False

    def position(self, index: int) -> int:
        number, is_gap = self._at(index)
        return self._gaps[number][0] if is_gap else self._hits.position(number)

    def count_before(self, position: int) -> int:
        return self._hits.count_before(position) + bisect_left(self._gaps, position, key=lambda it: it[0])

    def row(self, index: int) -> LoggedRow:
        number, is_gap = self._at(index)
        if is_gap:
            return self._gap_row(index, *self._gaps[number][:2])
        return self._hit(index, self._hits.position(number))

    def _hit(self, index: int, position: int) -> LoggedRow:
        moment = self._log.moment(position)
        text, values = self._log.logged(moment)
        here, where = self._place_and_line(moment)
        is_undecided = position in self._undecided
        condition = self._log._query.request.condition
        return LoggedRow(
            number=index + 1,
            position=history_number(position),
            here=here,
            where=where,
            text=text.rstrip("\n"),
            why=f"{condition} is not known" if is_undecided else "",
            values=[{"what": name, "value": it, **({} if known else {"unknown": 1})} for name, it, known in values],
            time=self._log.history.time_at(position),
        )

    def _place_and_line(self, moment: PastMoment) -> tuple[Place, str]:
        """Return the place, and the source line, of what runs next."""
        key = moment.pc, self._log.history.context_at(moment.position)
        if key not in self._known_places:
            here = self._places.address(moment.pc, moment.position)
            self._known_places[key] = here, self._log._query.tools.lines.line_at(moment.pc)
        return self._known_places[key]

    def _gap_row(self, index: int, first: int, last: int) -> LoggedRow:
        history = self._log.history
        texts = list(dict.fromkeys(event.text for event in history.events_between(first, last + 1)))
        more = "" if first == last else f"; gaps up to @{history_number(last)}"
        return LoggedRow(
            number=index + 1,
            position=history_number(first),
            here=AT_GAP,
            where="",
            text=f"{'; '.join(texts) or 'trace is missing'}{more}",
            why="",
            values=[],
            time=history.time_at(first),
        )


def _gap_groups(history: History, hits: Hits) -> Iterator[tuple[int, int, int]]:
    """Yield (first gap, last gap, hits before them) of the gaps between two rows, those within the list."""
    group: tuple[int, int, int] | None = None
    for position in history.gap_positions:
        before = hits.count_before(position)
        if group is not None and group[2] == before:
            group = (group[0], position, before)
        else:
            if group is not None:
                yield group
            group = (position, position, before)
    if group is not None:
        yield group


def _notes(log: LogTexts, undecided: int, elsewhere: int) -> Sequence[str]:
    notes = list(log._evaluator.problems)
    if elsewhere:
        times = counted(elsewhere, "time")
        notes.append(f"programs have different code there: {times} another function or program ran, and is left out")
    if log._query.past is None:
        notes.append("no value is known in this trace: see `trace values`")
    if undecided:
        times = "once" if undecided == 1 else f"{undecided} times"
        notes.append(f"whether {log._query.request.condition} holds is not known {times}: these rows say so")
    return notes

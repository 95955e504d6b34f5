"""Each call of a function, as a list: where from, with which arguments, what it returned, and what it called.

An argument has the value that it had where a breakpoint of the function stops; what a call returned, that which was in
the registers of the ABI behind the very return of that call. Calls of which the return is not in the trace have none.
"""

from bisect import bisect_left
from collections import Counter, OrderedDict
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from rvtrace_gdb.decode.calls.call_history import CallHistory, FunctionRun
from rvtrace_gdb.decode.calls.stacks.frame import StackOperationKind
from rvtrace_gdb.decode.history.events import Trap
from rvtrace_gdb.decode.history.history import GAP, History
from rvtrace_gdb.decode.history.positions import history_number
from rvtrace_gdb.decode.program.context_images import ContextImages
from rvtrace_gdb.decode.program.image import CodeMissing
from rvtrace_gdb.decode.program.instructions import IType, UndecodableInstruction
from rvtrace_gdb.decode.search import executions
from rvtrace_gdb.reports.intervals.calls import calls_of
from rvtrace_gdb.rows.list_rows import OneCallRow
from rvtrace_gdb.session.past.past import Past
from rvtrace_gdb.session.queries.lists.executions import ExecutionQuery, functions_searched, place_queries
from rvtrace_gdb.session.queries.lists.search import Places, QueryResults, Searcher
from rvtrace_gdb.session.questions.calls_of.values import CallValues
from rvtrace_gdb.session.questions.log.query import LoggedValue, LogTools
from rvtrace_gdb.session.questions.moment import FunctionEntries, PastMoment, UnknownPast
from rvtrace_gdb.support.errors import Progress

_CALLS = (IType.UNINFERABLE_CALL, IType.INFERABLE_CALL)
_KEPT = 8  # blocks of functions
_MOST_RUNS = 1 << 14  # functions that are looked at in a call, for what it called
_SHOWN = 6  # different functions that it called
NO_RETURN, LOST = "had not returned", "trace is missing in it"
UNWOUND = "was left in another way than by its return"


class CallsOfQuery(NamedTuple):
    """Asks for the calls of the functions that begin at *functions*. *breakpoints*: of each, where one would stop.
    *part*: positions at which the calls begin, None: all. *past*: None: no value is known.
    """

    name: str
    functions: tuple[int, ...]
    breakpoints: tuple[int, ...]
    part: range | None
    past: Past | None
    tools: LogTools

    def results(self, history: History, program: ContextImages, searcher: Searcher) -> QueryResults:
        place = ExecutionQuery(self.name, self.functions[0], function=True, functions=self.functions[1:])
        queries = place_queries([place], searcher.calls().images, program.all_programs)
        entries = sorted(at for it in queries for at in searcher.search(it).positions(searcher.progress))
        if self.past is not None and entries:
            self.past.prepare(searcher.progress)
        return CallsOf(self._replace(functions=tuple(functions_searched(queries))), history, program, searcher, entries)


class _CallEnd(NamedTuple):
    """Where a call ended. *depth*: how many calls of the function it is in."""

    end: int
    depth: int


class _ProgramCalls:
    """The values and lines of the calls in a program."""

    def __init__(self, tools: LogTools) -> None:
        self._tools, self.values = tools, CallValues(tools)
        self._lines: dict[int, str] = {}

    def line_at(self, pc: int) -> str:
        """Return the source line of an instruction."""
        if pc not in self._lines:
            self._lines[pc] = self._tools.lines.line_at(pc)
        return self._lines[pc]


class CallsOf:
    """The calls, see `QueryResults`."""

    def __init__(
        self, query: CallsOfQuery, history: History, program: ContextImages, searcher: Searcher, entries: list[int]
    ) -> None:
        self._query, self._history, self._program = query, history, program
        self._places, self._calls, self._searcher = Places(history, program), searcher.calls(), searcher
        self._ends = _ends_of(self._calls, query.functions, entries, searcher.progress)
        part = range(len(history)) if query.part is None else query.part
        self._entries = [it for it in entries if it in part]
        self._functions = FunctionEntries(history, searcher.calls)
        self._evaluator = query.tools.evaluator
        self._programs: dict[int, _ProgramCalls] = {}  # by the id of the image, which is kept
        self._blocks: OrderedDict[int, list[FunctionRun]] = OrderedDict()
        gaps = " It has gaps: see `trace gaps`." if history.gaps else ""
        self.none_message = f"{query.name} was not called in this history.{gaps}"
        self.notes: Sequence[str] = self._new_notes()

    def _new_notes(self) -> list[str]:
        notes = list(self._evaluator.problems)
        if self._query.past is None:
            notes.append("no value is known in this trace: see `trace values`")
        inlined = self._evaluator.program.inlined_entries(self._query.name)
        if inlined:
            notes.append(f"{self._query.name} is part of other functions, too (inlined): that is no call")
        return notes

    def __len__(self) -> int:
        return len(self._entries)

    def position(self, index: int) -> int:
        return self._entries[index]

    def count_before(self, position: int) -> int:
        return bisect_left(self._entries, position)

    def row(self, index: int) -> OneCallRow:
        begin = self._entries[index]
        ended = self._ends.get(begin)
        pc = self._history.pc(begin)
        entry, values = self._moment(begin, pc), self._program_at(begin).values
        stop = self._stop(begin, len(self._history) if ended is None else ended.end)
        why = self._why(entry, ended)  # in the order of positions, which is the fast one
        arguments = values.arguments(pc, None if stop is None else self._moment(stop, self._history.pc(stop)))
        value = None if ended is None or why else values.returned(entry, self._moment(ended.end, pc))
        times = [self._history.time_at(it) for it in (begin, *([] if ended is None else [ended.end]))]
        called, more = self._called(begin, ended)
        traps = self._calls.traps_at(begin)
        source = self._places.source_place(begin, traps)
        return OneCallRow(
            number=index + 1,
            position=history_number(begin),
            here=self._places.instruction(begin),
            source=source,
            where="" if isinstance(source, str) else self._program_at(max(begin - 1, 0)).line_at(source[0]),
            text="; ".join(it.text for it in traps),
            arguments=[_fields(name, it) for name, it in arguments],
            returned=None if value is None else _fields("", value),
            why=why,
            instructions=None if ended is None else ended.end - begin,
            ticks=None if None in times or len(times) < 2 else (times[1] or 0) - (times[0] or 0),
            end=None if ended is None else history_number(ended.end),
            depth=None if ended is None else ended.depth,
            called=called,
            more=more,
            time=times[0],
        )

    def _program_at(self, position: int) -> "_ProgramCalls":
        """Return what is known of the program that runs at a position: of several, each has its own functions."""
        image = self._calls.image_at(position) if len(self._calls.images) > 1 else self._program.all_programs
        found = self._programs.get(id(image))
        if found is None:
            is_whole = image is self._query.tools.evaluator.image
            found = self._programs[id(image)] = _ProgramCalls(self._query.tools if is_whole else LogTools(image))
        return found

    # -- values

    def _moment(self, position: int, pc: int) -> PastMoment:
        past = self._query.past
        return PastMoment(UnknownPast() if past is None else past, position, pc, self._functions)

    def _stop(self, begin: int, end: int) -> int | None:
        """Return the first position of a call at which a breakpoint of the function stops."""
        if self._history.pc(begin) in self._query.breakpoints:
            return begin
        before = self._breakpoints.before(begin)
        stop = self._breakpoints.position(before) if before < len(self._breakpoints) else end
        following = bisect_left(self._entries, begin + 1)
        limit = min(end, self._entries[following]) if following < len(self._entries) else end
        return stop if stop < limit and not self._is_cut(begin, stop) else None

    @cached_property
    def _breakpoints(self):  # type: ignore[no-untyped-def] # what searches return
        return self._searcher.search(executions(*self._query.breakpoints))

    # -- how it ended

    def _is_cut(self, begin: int, end: int) -> bool:
        """Return whether trace is missing from one position to another."""
        gaps = self._history.gap_positions
        return bisect_left(gaps, begin) < bisect_left(gaps, end)

    def _why(self, entry: PastMoment, ended: _CallEnd | None) -> str:
        """Return why there is no value, "" if the call returned."""
        if ended is None:
            return LOST if self._is_cut(entry.position, len(self._history)) else NO_RETURN
        return "" if self._returns(entry, ended.end) else UNWOUND

    def _returns(self, entry: PastMoment, end: int) -> bool:
        """Return whether a call ended by a return to where it came from, or a trap's handler by an xRET."""
        last = self._itype(end - 1)
        if last is IType.TRAP_RETURN:
            return self._is_trap_return(entry.position, end)
        if last is not IType.RETURN or end == len(self._history) or self._calls.traps_at(end):
            return last is IType.RETURN
        back = entry.named_register("ra")
        return back is None or back == self._history.pc(end)

    def _is_trap_return(self, begin: int, end: int) -> bool:
        """Return whether the xRET before *end* is how what began at *begin* returns: a trap led there, directly or by
        a jump of the vectors. An interrupted program goes on where it was; what asked for an exception, elsewhere.
        """
        traps = self._calls.traps_at(begin)
        if not traps:
            return begin > 0 and self._itype(begin - 1) not in _CALLS
        hit, fact = traps[-1].last_pc, traps[-1].fact
        is_interrupt = isinstance(fact, Trap) and not fact.may_be_exception
        if hit is None or not is_interrupt or end == len(self._history):
            return True
        return bool(self._calls.traps_at(end)) or self._history.pc(end) == hit

    def _itype(self, position: int) -> IType | None:
        """Return the kind of the instruction at a position; None: it is not known."""
        image = self._program.image_of(self._history.context_at(position))
        try:
            return image.instruction(self._history.pc(position)).itype
        except (CodeMissing, UndecodableInstruction):
            return None

    # -- what it called

    def _called(self, begin: int, ended: _CallEnd | None) -> tuple[list[str], bool]:
        """Return the functions that a call called itself, with how often, and whether there are more."""
        end = len(self._history) if ended is None else ended.end
        found: Counter[str] = Counter()
        level: int | None = None
        for looked, run in enumerate(self._runs(begin, end)):
            if level is None:
                level = run.level
                continue
            if looked > _MOST_RUNS or run.pc == GAP:
                return _named_counts(found), True
            if run.level != level + 1:
                continue
            if run.kind is StackOperationKind.TRAP:
                found["[trap]"] += 1
            elif run.kind is StackOperationKind.CALL:
                symbol = self._program.image_of(self._history.context_at(run.begin)).symbol(run.pc)
                found["??" if symbol is None else symbol[0]] += 1
        names = _named_counts(found)
        return names[:_SHOWN], len(names) > _SHOWN

    def _runs(self, begin: int, end: int) -> Iterator[FunctionRun]:
        """Yield the functions that begin at positions *begin* to *end* - 1."""
        block = self._calls.block_at(begin)
        while block < len(self._calls.lowest) and self._calls.begin_of(block) < end:
            runs = self._block(block)
            first = bisect_left(runs, begin, key=lambda run: run.begin)
            for at in range(first, len(runs)):
                if runs[at].begin >= end:
                    return
                yield runs[at]
            block += 1

    def _block(self, number: int) -> list[FunctionRun]:
        if number not in self._blocks:
            self._blocks[number] = self._calls.functions_in(number)
            if len(self._blocks) > _KEPT:
                self._blocks.popitem(last=False)
        return self._blocks[number]


def _ends_of(
    calls: CallHistory, functions: Sequence[int], entries: Sequence[int], progress: Progress
) -> dict[int, _CallEnd]:
    """Return where each call ended, by where it began, of those of which that is known."""
    from array import array

    intervals = calls_of(calls, functions, array("Q", entries), progress).intervals
    return {it.begin: _CallEnd(it.end, it.depth) for it in intervals}


def _named_counts(counted: "Counter[str]") -> list[str]:
    return [name if times == 1 else f"{name} x{times}" for name, times in counted.most_common()]


def _fields(name: str, value: LoggedValue) -> dict[str, object]:
    unknown = {} if value.is_known else {"unknown": 1}
    return {**({"what": name} if name else {}), "value": value.text, **unknown}

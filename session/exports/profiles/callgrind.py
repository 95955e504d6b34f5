"""A profile as Callgrind writes it, for callgrind_annotate, KCachegrind and QCachegrind.

    fn=(2) main
    0x80000010 12 7
    cfn=(3) leaf
    calls=7 0x80000040 3
    0x80000010 12 70
    jcnd=6/7 0x8000000c 12
    0x80000014 12

Each instruction that ran has a line: its address in its file, its source line (0: not known) and how often it ran. With
it are the calls it made, with the instructions that ran in them, and where it jumped: `jcnd=followed/executed` of a
conditional branch. A trap is a call of its handler, from where it hit. All harts are summed up; a function for each
"hart N" calls what has no known caller. What is missing is in the description: a gap has no known length.

Source: valgrind, callgrind/docs/cl-format.xml; callgrind/dump.c (jumps); callgrind_annotate (what it reads).
"""

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

from rvtrace_gdb.reports.profile.call_sites import ArcCounts, CallArc, call_arcs
from rvtrace_gdb.reports.profile.counted import count_code
from rvtrace_gdb.reports.profile.model import NO_LINE, NOWHERE, CodePlace, Profile
from rvtrace_gdb.reports.profile.places import CodePlaces
from rvtrace_gdb.session.exports.export import ExportedTrace, Written
from rvtrace_gdb.session.exports.missing import missing
from rvtrace_gdb.session.exports.profiles.stacks import NO_SYMBOL
from rvtrace_gdb.session.version import tool
from rvtrace_gdb.support.errors import Progress
from rvtrace_gdb.support.text import counted, printable, rows

NO_FILE = "???"
"""The file of code without a line table, as Callgrind has it."""
NO_PLACE = "places of calls that the trace does not show, or does not tell apart,"
NO_CALL = "numbers of calls of functions that were entered in some other way (1 stands there)"
_UNKNOWN = (-1, 0)


class _FunctionKey(NamedTuple):
    """A function in the file. *program*: its number, -1 where it is not known."""

    program: int
    start: CodePlace | None
    name: str


class _CodeCounts:
    """What ran on all harts: *ran* and *steps* as in `Profile`, *arcs*: the calls, *outer*: those without a known
    caller, by harts.
    """

    def __init__(self, trace: ExportedTrace, progress: Progress) -> None:
        self.profile = Profile()
        self.ran: Counter[CodePlace] = Counter()
        self.steps: Counter[tuple[CodePlace, CodePlace]] = Counter()
        self.arcs: dict[CallArc, ArcCounts] = {}
        self.outer: list[tuple[int, CallArc, ArcCounts]] = []
        self.totals: dict[int, int] = {}
        places = CodePlaces(self.profile)
        for hart in trace.harts:
            self._add_hart(hart, places, progress)

    def _add_hart(self, hart: ExportedTrace, places: CodePlaces, progress: Progress) -> None:
        calls, profile = hart.calls(progress), self.profile
        is_whole = len(hart.part) == len(hart.history)
        steps = calls.steps(progress) if is_whole else calls.steps_between(hart.part, progress)
        count_code(profile, places, calls, steps, hart.part, progress)
        for arc, counts in call_arcs(profile, places, calls, steps, progress).items():
            if arc.caller is None:
                self.outer.append((hart.hart, arc, counts))
            else:
                self.arcs[arc] = self.arcs[arc].plus(counts) if arc in self.arcs else counts
        self.totals[hart.hart] = sum(profile.ran.values())
        self.ran.update(profile.ran)
        self.steps.update(profile.steps)


def write(trace: ExportedTrace, file: BinaryIO, progress: Progress) -> Written:
    """Write the profile of all harts. Raises what *progress* raises."""
    found = _CodeCounts(trace, progress)
    writer = _CallgrindText(found)
    lines = 0
    totals = [f"totals: {sum(found.totals.values())}"]
    for piece in (list(_header_lines(trace, found)), *writer.function_lines(), totals):
        file.write(rows(piece).encode())
        lines += len(piece)
    return Written(lines, writer.left_out)


def _header_lines(trace: ExportedTrace, counts: _CodeCounts) -> Iterator[str]:
    yield from ("# callgrind format", "version: 1", f"creator: {tool()}")
    yield f"cmd: {printable(trace.program.path)}"
    for hart in trace.harts:
        yield f"desc: hart {hart.hart}: {counted(counts.totals[hart.hart], 'instruction')}"
        for what, times in sorted(missing(hart.history, hart.part).items()):
            yield f"desc: hart {hart.hart}: {what}, {counted(times, 'time')}"
    yield from ("positions: instr line", "event: Ir : Instructions", "events: Ir")


class _CallgrindText:
    """The lines of functions. Names are numbered where they are first used. *left_out*: see `Written`."""

    def __init__(self, counts: _CodeCounts) -> None:
        self._counts, self._profile = counts, counts.profile
        self._numbers: dict[str, dict[str, int]] = {"ob": {}, "fl": {}, "fn": {}}
        self._file = NO_FILE
        self.left_out: Counter[str] = Counter()
        self._calls: defaultdict[CodePlace | None, list[tuple[CallArc, ArcCounts]]] = defaultdict(list)
        for arc, of_arc in sorted(counts.arcs.items(), key=str):
            if arc.site is not None:
                self._calls[arc.site].append((arc, of_arc))
        self._jumps: defaultdict[CodePlace, list[tuple[CodePlace, int]]] = defaultdict(list)
        for (source, target), times in sorted(counts.steps.items()):
            self._jumps[source].append((target, times))

    def function_lines(self) -> Iterator[list[str]]:
        """Yield the lines of each function, those of harts first."""
        for hart in self._counts.totals:
            yield list(self._hart_lines(hart))
        inside: defaultdict[_FunctionKey, set[CodePlace]] = defaultdict(set)
        placeless: defaultdict[_FunctionKey, list[tuple[CallArc, ArcCounts]]] = defaultdict(list)
        for place in self._counts.ran:
            inside[self._function_key(self._profile.code[place].function, place[0])].add(place)
        for arc, counts in self._counts.arcs.items():
            caller = self._function_key(arc.caller or NOWHERE, (arc.site or _UNKNOWN)[0])
            if arc.site is None:
                placeless[caller].append((arc, counts))
            else:
                inside[caller].add(arc.site)
        for function in sorted({*inside, *placeless}, key=str):
            yield list(self._lines_of(function, sorted(inside[function]), placeless[function]))

    def _function_key(self, start: CodePlace, program: int) -> _FunctionKey:
        """Return a function; *program*: of code without a symbol."""
        if start == NOWHERE:
            return _FunctionKey(program, None, NO_SYMBOL)
        return _FunctionKey(start[0], start, printable(self._profile.names[start]))

    def _hart_lines(self, hart: int) -> Iterator[str]:
        yield from ("", f"ob={self._numbered('ob', NO_FILE)}", f"fl={self._numbered('fl', NO_FILE)}")
        yield f"fn={self._numbered('fn', f'hart {hart}')}"
        for number, arc, counts in self._counts.outer:
            if number == hart:
                yield from self._call_lines(arc, counts, "0x0 0")

    def _lines_of(
        self, function: _FunctionKey, places: list[CodePlace], placeless: list[tuple[CallArc, ArcCounts]]
    ) -> Iterator[str]:
        own = self._file = self._file_of(function.start)
        yield from ("", f"ob={self._numbered('ob', self._object(function))}", f"fl={self._numbered('fl', own)}")
        yield f"fn={self._numbered('fn', function.name)}"
        for arc, counts in placeless:
            self.left_out[NO_PLACE] += 1
            yield from self._call_lines(arc, counts, "0x0 0")
        for place in places:
            file = self._file_of(place)
            if file != self._file:
                self._file = file
                yield f"{'fe' if file == own else 'fi'}={self._numbered('fl', file)}"
            position = self._position(place)
            is_own = self._function_key(self._profile.code[place].function, place[0]) == function
            if is_own and place in self._counts.ran:
                yield f"{position} {self._counts.ran[place]}"
            for arc, counts in self._calls[place]:
                if self._function_key(arc.caller or NOWHERE, place[0]) == function:
                    yield from self._call_lines(arc, counts, position)
            if is_own:
                yield from self._jump_lines(place, position)

    def _call_lines(self, arc: CallArc, counts: ArcCounts, position: str) -> Iterator[str]:
        """Yield the lines of a call. Readers take one without a number for no call, so that is 1."""
        callee = self._function_key(arc.callee, _UNKNOWN[0])
        if not counts.calls and arc.caller is not None:
            self.left_out[NO_CALL] += 1
        yield f"cob={self._numbered('ob', self._object(callee))}"
        yield f"cfi={self._numbered('fl', self._file_of(callee.start))}"
        yield f"cfn={self._numbered('fn', callee.name)}"
        yield f"calls={counts.calls or 1} {self._position(callee.start)}"
        yield f"{position} {counts.instructions}"

    def _jump_lines(self, place: CodePlace, position: str) -> Iterator[str]:
        """Yield where an instruction jumped. Calls and returns are not in it."""
        facts, taken = self._profile.code[place], self._jumps.get(place, [])
        if facts.flow == "branch" and facts.target is not None and taken:
            executed = sum(times for _, times in taken)
            followed = sum(times for target, times in taken if target == facts.target)
            yield from self._lines_of_jump(place, facts.target, f"jcnd={followed}/{executed}", position)
        elif facts.flow == "jump":
            for target, times in taken:
                yield from self._lines_of_jump(place, target, f"jump={times}", position)

    def _lines_of_jump(self, place: CodePlace, target: CodePlace, what: str, position: str) -> Iterator[str]:
        there = self._profile.code.get(target)
        if there is not None:
            if self._file_of(target) != self._file:
                yield f"jfi={self._numbered('fl', self._file_of(target))}"
            if there.function != self._profile.code[place].function:
                yield f"jfn={self._numbered('fn', self._function_key(there.function, target[0]).name)}"
        yield f"{what} {self._position(target)}"
        yield position

    def _object(self, function: _FunctionKey) -> str:
        return NO_FILE if function.program < 0 else printable(self._profile.programs[function.program].name)

    def _file_of(self, place: CodePlace | None) -> str:
        facts = None if place is None else self._profile.code.get(place)
        if facts is None or facts.line == NO_LINE:
            return NO_FILE
        return printable(self._profile.lines[facts.line].path) or NO_FILE

    def _position(self, place: CodePlace | None) -> str:
        if place is None:
            return "0x0 0"
        facts = self._profile.code.get(place)
        line = 0 if facts is None or facts.line == NO_LINE else self._profile.lines[facts.line].line
        return f"0x{place[1]:x} {line}"

    def _numbered(self, kind: str, name: str) -> str:
        """Return a name with its number, or its number alone if it was there before."""
        numbers = self._numbers[kind]
        if name in numbers:
            return f"({numbers[name]})"
        numbers[name] = len(numbers) + 1
        return f"({numbers[name]}) {name}"

"""Code coverage: how often each instruction of a history ran, and each transition between two; and the program's
functions.

A history has many entries but few different ones (`decode/history/history.py`), and these consist of few different
parts. Each part is visited once and counts as often as it occurs. For a whole history the index of its calls
(`decode/calls/call_history.py`) knows how often that is; for a part of a history the entries are counted, which takes
about 0.3 us for each.

The functions are those that the program's symbols name, with the number of their instructions, whether or not any of
them ran.
"""

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from rvtrace_gdb.decode.calls.call_history import CallHistory
from rvtrace_gdb.decode.calls.states import NOTHING, CallStep, traps_of
from rvtrace_gdb.decode.history.history import GAP, AnyPath, History, Path, PathPart, RepeatPath
from rvtrace_gdb.decode.program.elf import Elf, ElfSection, Symbol
from rvtrace_gdb.decode.program.image import CodeMissing, Image
from rvtrace_gdb.decode.program.instructions import IType, UndecodableInstruction, length
from rvtrace_gdb.support.errors import Progress, silent
from rvtrace_gdb.support.inputs import open_input

if TYPE_CHECKING:
    from rvtrace_gdb.decode.counting import NumberedParts

_SHF_EXECINSTR = 4


class FunctionCode(NamedTuple):
    """A function of the program: its code is at *start* to *end* - 1, and has this many *instructions*."""

    start: int
    end: int
    name: str
    instructions: int


def functions(image: Image) -> list[FunctionCode]:
    """Return all functions in the ELF files of a program, by address, with the names that gdb uses.

    A symbol without a size (a label in assembler code) reaches to the next one.
    """
    found: dict[int, FunctionCode] = {}
    for elf, bias in image.elves:
        code, data = _code_addresses(elf)
        for section in elf.sections:
            for function in _in_section(image, section, bias) if section.start in code else ():
                if function.start - bias not in data:
                    found.setdefault(function.start, function)
    return sorted(found.values())


def _code_addresses(elf: Elf) -> tuple[set[int], set[int]]:
    """Return the addresses at which sections with code begin, and the addresses of tables and other data in them.

    The sections come from the file; if it cannot be read any more, every executable part of memory counts as code.
    """
    from elftools.common.exceptions import ELFError  # takes long to load, as for rvtrace_gdb.decode.program.elf
    from elftools.elf.elffile import ELFFile

    try:
        with open_input(elf.path) as file:
            read: Any = ELFFile(file)
            sections = [part for part in read.iter_sections() if part["sh_flags"] & _SHF_EXECINSTR]
            code = {section["sh_addr"] for section in sections if section["sh_size"]}
            symbols = read.get_section_by_name(".symtab")
            data = {symbol["st_value"] for symbol in symbols.iter_symbols() if _is_data(symbol)} if symbols else set()
            return code, data
    except (OSError, ELFError, ValueError):
        loaded = [range(part.vaddr, part.vaddr + len(part.data)) for part in elf.segments if part.executable]
        return {section.start for section in elf.sections if any(section.start in one for one in loaded)}, set()


def _is_data(symbol: Any) -> bool:
    return bool(symbol["st_info"]["type"] == "STT_OBJECT")


def _in_section(image: Image, section: ElfSection, bias: int) -> Iterator[FunctionCode]:
    starts = sorted({symbol.address + bias for symbol in section.symbols})
    starts = [start for start in starts if (image.symbol(start) or ("", 1))[1] == 0]
    for i, start in enumerate(starts):
        following = starts[i + 1] if i + 1 < len(starts) else section.end + bias
        size = _function_size(section.symbols, start - bias)
        end = min(start + size, following) if size else following
        name, _ = image.symbol(start) or ("", 0)
        if end > start:
            yield FunctionCode(start, end, name, _instruction_count(image, start, end))


def _function_size(symbols: list[Symbol], address: int) -> int:
    """Return the size of the largest function that starts at an address, 0 if no symbol gives one."""
    i = bisect_left(symbols, address, key=lambda symbol: symbol.address)
    sizes = [0]
    while i < len(symbols) and symbols[i].address == address:
        sizes.append(symbols[i].size)
        i += 1
    return max(sizes)


def _instruction_count(image: Image, start: int, end: int) -> int:
    """Return the number of consecutive instructions; bytes that are not an instruction end them."""
    try:
        code = image.read(start, end - start)
    except CodeMissing:
        return 0
    count = at = 0
    try:
        while at + 1 < len(code):
            at += length(code[at] | code[at + 1] << 8)
            count += 1
    except UndecodableInstruction:
        pass
    return count


_BLOCK = 1 << 16  # entries counted between two calls of the progress
_PROGRESS_INTERVAL = 1 << 12  # parts or traps processed between two calls of the progress
_BORDER = Path(((GAP,),))
"""A pair of this address separates entries that do not follow each other."""

_Transition = tuple[int, int]
_Key = TypeVar("_Key")


class ExecutionCounts(NamedTuple):
    """How often instructions and transitions ran.

    *ran*: how often the instruction at each address ran. *steps*: how often one ran right after another, by both
    addresses; no step leads over a gap. *resumed*: corrections of *steps* where a trap came between two instructions:
    how often more (or less) the program itself made each step. *trapped*: how often a trap hit the instruction that was
    to run at an address. *gaps*: how many gaps there are.
    """

    ran: Mapping[int, int]
    steps: Mapping[_Transition, int]
    resumed: Mapping[_Transition, int]
    trapped: Mapping[int, int]
    gaps: int = 0

    def step(self, source: int, target: int) -> int:
        """Return how often the program went from *source* to *target*, whether or not a trap was taken in between."""
        return self.steps.get((source, target), 0) + self.resumed.get((source, target), 0)


class BranchOutcomes(NamedTuple):
    """The outcomes of a conditional branch: how often it went to its *target*, and how often to the instruction that
    *follows* it.

    An outcome is unknown, and in neither number, at the end of a history, before a gap, and before a trap if the trace
    does not report where the trap hit.
    """

    taken: int
    not_taken: int
    target: int
    follows: int


def counts(
    history: History,
    stretches: Iterable[range] | None = None,
    progress: Progress = silent,
    calls: CallHistory | None = None,
) -> ExecutionCounts:
    """Return the counts of a whole history, or of some stretches of it in rising order. Raises what *progress* raises.

    *calls* is the index of the calls of the same history, if the caller has one already.
    """
    whole = range(len(history))
    parts = [whole] if stretches is None else list(stretches)
    is_whole = parts == [whole]
    taken = calls if is_whole else None
    numbered = _numbered_parts(calls, progress)
    if numbered is not None:
        ran, steps = _counted_parts(history, parts, numbered, taken, progress)
    elif taken is not None:
        ran, steps = step_counts(taken.steps(progress), progress)
    else:
        ran, steps = _execution_counts(_entries_of(history, parts), progress)
    gaps = ran.pop(GAP, 0) - (0 if is_whole else sum(map(bool, parts)))
    return ExecutionCounts(ran, steps, *_traps(history, parts, progress), gaps)


def _numbered_parts(calls: CallHistory | None, progress: Progress) -> "NumberedParts | None":
    """Return the parts in which the kernel counts, None without it."""
    if calls is not None:
        return calls.numbered_parts(progress)
    from rvtrace_gdb.decode.counting import NumberedParts  # only where something is counted
    from rvtrace_gdb.decode.kernel.loading import kernel

    module = kernel()
    return None if module is None else NumberedParts(module, ())


def _counted_parts(
    history: History,
    stretches: Sequence[range],
    numbered: "NumberedParts",
    taken: CallHistory | None,
    progress: Progress,
) -> tuple[dict[int, int], dict[_Transition, int]]:
    """Return the same as `_execution_counts`, counted by the kernel; *taken*: of all steps of these calls."""
    from rvtrace_gdb.decode.counting import PartTallies

    tallies = PartTallies(numbered)
    if taken is not None:
        tallies.add_steps(taken.tallies, progress)
    else:
        tallies.add_entries(_entries_of(history, stretches), progress)
    return tallies.result(progress)


def add_counts(one: ExecutionCounts, other: ExecutionCounts) -> ExecutionCounts:
    """Return the sum of two counts."""
    return ExecutionCounts(
        _sum(one.ran, other.ran),
        _sum(one.steps, other.steps),
        _sum(one.resumed, other.resumed),
        _sum(one.trapped, other.trapped),
        one.gaps + other.gaps,
    )


def _sum(one: Mapping[_Key, int], other: Mapping[_Key, int]) -> dict[_Key, int]:
    return {key: one.get(key, 0) + other.get(key, 0) for key in {**one, **other}}


def branch_outcomes(counted: ExecutionCounts, image: Image, pc: int) -> BranchOutcomes | None:
    """Return the outcomes of the instruction at *pc*; None if it is not a conditional branch, or both ways lead to the
    same address.
    """
    try:
        instruction = image.instruction(pc)
    except (CodeMissing, UndecodableInstruction):
        return None
    if not instruction.is_branch or instruction.offset is None or instruction.offset == instruction.length:
        return None
    mask = (1 << image.xlen) - 1
    target, follows = pc + instruction.offset & mask, pc + instruction.length & mask
    return BranchOutcomes(counted.step(pc, target), counted.step(pc, follows), target, follows)


def function_entries(counted: ExecutionCounts, image: Image, functions: Mapping[int, int]) -> dict[int, int]:
    """Return how often functions were entered, by their start address. *functions* has their end addresses by start
    address.

    Rounds of a loop that goes back to the start by a branch or a direct jump are not entries, and neither is the return
    from a trap that hit there; the call before that trap is one.
    """
    loops: Counter[int] = Counter()
    returns: Counter[int] = Counter()
    for source, target in {**counted.steps, **counted.resumed}:
        if target in functions:
            if _is_round(image, source, target, functions[target]):
                by_trap = min(counted.resumed.get((source, target), 0), 0)
                loops[target] += counted.steps.get((source, target), 0) + by_trap
            elif _returns_from_trap(image, source):
                returns[target] += counted.steps.get((source, target), 0)
            else:
                loops[target] -= max(counted.resumed.get((source, target), 0), 0)
    return {
        start: counted.ran.get(start, 0) - loops[start] - min(returns[start], counted.trapped.get(start, 0))
        for start in functions
    }


def _is_round(image: Image, source: int, start: int, end: int) -> bool:
    try:
        instruction = image.instruction(source)
    except (CodeMissing, UndecodableInstruction):
        return False
    return start <= source < end and instruction.offset is not None and instruction.itype is not IType.INFERABLE_CALL


def _returns_from_trap(image: Image, pc: int) -> bool:
    try:
        return image.instruction(pc).itype is IType.TRAP_RETURN
    except (CodeMissing, UndecodableInstruction):
        return False


def _execution_counts(entries: Sequence[AnyPath], progress: Progress) -> tuple[dict[int, int], dict[_Transition, int]]:
    """Return how often each instruction of some entries ran, and how often each step was made."""
    followed = _followed(entries, progress)
    different: Counter[AnyPath] = Counter(entries[-1:])
    for (entry, _), count in followed.items():
        different[entry] += count
    parts = _EntryParts(different, progress)
    return _of_parts(parts, different, parts.between(followed), progress)


def step_counts(taken: Mapping[CallStep, int], progress: Progress) -> tuple[dict[int, int], dict[_Transition, int]]:
    """Return how often each instruction ran, and how often each step was made, in the entries that some steps of a call
    history led to, and into them. Raises what *progress* raises.
    """
    different: Counter[AnyPath] = Counter()
    for step, count in taken.items():
        different[step.unit.part] += count
    parts = _EntryParts(different, progress)
    between: defaultdict[_Transition, int] = defaultdict(int)
    for step, count in taken.items():
        if step.origin.last != NOTHING:
            between[step.origin.last, parts.first(step.unit.part)] += count
    return _of_parts(parts, different, between, progress)


def _of_parts(
    parts: "_EntryParts", different: Mapping[AnyPath, int], steps: defaultdict[_Transition, int], progress: Progress
) -> tuple[dict[int, int], dict[_Transition, int]]:
    """Return the same as `_execution_counts`, for entries that occur *different* times, with the *steps* between
    them.
    """
    times = defaultdict(int, {id(entry): count for entry, count in different.items()})
    ran: defaultdict[int, int] = defaultdict(int)
    total = len(parts.order)
    for number, part in enumerate(reversed(parts.order)):  # parts that contain others come first
        if not number % _PROGRESS_INTERVAL:
            progress("counting instructions (parts)", number, total)
        count = times[id(part)]
        if isinstance(part, tuple):
            for pc in part:
                ran[pc] += count
            for step in pairwise(part):
                steps[step] += count
        elif isinstance(part, RepeatPath):
            times[id(part.path)] += count * part.times
            steps[parts.last(part.path), parts.first(part.path)] += count * (part.times - 1)
        else:
            parts.pass_on(part, count, times, steps)
    return dict(ran), {step: count for step, count in steps.items() if count and GAP not in step}


def _followed(entries: Sequence[AnyPath], progress: Progress) -> Counter[tuple[AnyPath, AnyPath]]:
    """Return how often each pair of entries occurs in a row. This is the only loop over all entries."""
    followed: Counter[tuple[AnyPath, AnyPath]] = Counter()
    for start in range(0, len(entries), _BLOCK):
        progress("counting (parts)", start, len(entries))
        block = entries[start : start + _BLOCK + 1]
        followed.update(zip(block, islice(block, 1, None), strict=False))
    return followed


class _EntryParts:
    """The different parts of some entries. In *order*, each comes after everything it contains."""

    def __init__(self, entries: Collection[AnyPath], progress: Progress) -> None:
        self._ends: dict[int, _Transition] = {}  # first and last instruction of each part, by its id
        self.order: list[PathPart] = []
        for number, entry in enumerate(entries):
            if not number % _PROGRESS_INTERVAL:
                progress("preparing to count (parts)", number, len(entries))
            self._add_part(entry)

    def first(self, part: PathPart) -> int:
        return self._ends[id(part)][0]

    def last(self, part: PathPart) -> int:
        return self._ends[id(part)][1]

    def between(self, followed: Mapping[tuple[AnyPath, AnyPath], int]) -> defaultdict[_Transition, int]:
        """Return how often each step was made from one entry to the next."""
        steps: defaultdict[_Transition, int] = defaultdict(int)
        for (before, entry), count in followed.items():
            steps[self.last(before), self.first(entry)] += count
        return steps

    def pass_on(self, path: Path, count: int, times: dict[int, int], steps: dict[_Transition, int]) -> None:
        """Count a path that occurs *count* times: its parts, and the steps between them, occur as often."""
        before: int | None = None
        for part in path.parts:
            if part:
                times[id(part)] += count
                first, last = self._ends[id(part)]
                if before is not None:
                    steps[before, first] += count
                before = last

    def _add_part(self, part: PathPart) -> None:
        if id(part) in self._ends or not part:
            return
        if isinstance(part, tuple):
            self._ends[id(part)] = part[0], part[-1]
        elif isinstance(part, RepeatPath):
            self._add_part(part.path)
            self._ends[id(part)] = self._ends[id(part.path)]
        else:
            inner = [piece for piece in part.parts if piece]
            for piece in inner:
                self._add_part(piece)
            self._ends[id(part)] = self.first(inner[0]), self.last(inner[-1])
        self.order.append(part)


def _traps(
    history: History, stretches: Sequence[range], progress: Progress
) -> tuple[dict[_Transition, int], dict[int, int]]:
    """Return `resumed` and `trapped` of `ExecutionCounts`: the steps the program would have made without each trap."""
    resumed: Counter[_Transition] = Counter()
    trapped: Counter[int] = Counter()
    stops = [stretch.stop for stretch in stretches]
    for step in interrupted_steps(history, progress, stretches):
        stretch = bisect_right(stops, step.position)
        if stretch == len(stops) or step.position - 1 not in stretches[stretch]:
            continue
        resumed[step.source, step.handler] -= 1
        if step.hit is not None:
            trapped[step.hit] += 1
            if step.is_resumed:
                resumed[step.source, step.hit] += 1
    return dict(resumed), dict(trapped)


class InterruptedStep(NamedTuple):
    """A step that a trap came into: from the instruction at *source* to a *handler*, at a *position*. *hit*: where the
    trap hit, None if that is not known.
    """

    position: int
    source: int
    handler: int
    hit: int | None

    @property
    def is_resumed(self) -> bool:
        """Whether the program itself went from *source* to *hit*: an ecall hits where it is, and did run."""
        return self.hit is not None and self.hit != self.source


def interrupted_steps(
    history: History, progress: Progress = silent, stretches: Sequence[range] | None = None
) -> Iterator[InterruptedStep]:
    """Yield the steps that traps came into, in order; *stretches*: at these positions, default: at all. Raises what
    *progress* raises.
    """
    between = (history.events_between(it.start, it.stop) for it in stretches or ())
    chains = traps_of(history, None if stretches is None else chain.from_iterable(between))
    for number, (position, chain_of_traps) in enumerate(chains.items()):
        if not number % _PROGRESS_INTERVAL:
            progress("counting traps (parts)", number, len(chains))
        yield InterruptedStep(position, history.pc(position - 1), history.pc(position), chain_of_traps[0].last_pc)


def _entries_of(history: History, stretches: Sequence[range]) -> list[AnyPath]:
    """Return the entries that some stretches consist of."""
    if stretches == [range(len(history))]:
        return list(history.entries)
    return list(chain.from_iterable([_BORDER, *stretch_entries(history, stretch)] for stretch in stretches if stretch))


def stretch_entries(history: History, stretch: range) -> Sequence[AnyPath]:
    """Return the entries of consecutive positions, in order; the first and the last entry are cut."""
    if not stretch:
        return []
    entries = history.entries
    at: Callable[[int], int] = history.position_of
    first = bisect_right(range(len(entries)), stretch.start, key=at) - 1
    last = bisect_right(range(len(entries)), stretch.stop - 1, key=at) - 1
    if first == last:
        return _cut_entry(entries[first], stretch.start - at(first), stretch.stop - at(first))
    head = _cut_entry(entries[first], stretch.start - at(first), entries[first].count)
    return [*head, *entries[first + 1 : last], *_cut_entry(entries[last], 0, stretch.stop - at(last))]


def _cut_entry(entry: AnyPath, start: int, stop: int) -> list[AnyPath]:
    """Return instructions *start* to *stop* - 1 of an entry, without visiting each repetition."""
    if start >= stop or not entry.count:
        return []
    if (start, stop) == (0, entry.count):
        return [entry]
    if isinstance(entry, Path):
        return _cut_path(entry, start, stop)
    size = entry.path.count
    first, last = -(-start // size), stop // size  # the rounds that are whole
    if first > last:
        return _cut_entry(entry.path, start - last * size, stop - last * size)
    whole: list[AnyPath] = [RepeatPath(entry.path, last - first)] if first < last else []
    head = _cut_entry(entry.path, start - (first - 1) * size, size) if start % size else []
    return [*head, *whole, *_cut_entry(entry.path, 0, stop - last * size)]


def _cut_path(path: Path, start: int, stop: int) -> list[AnyPath]:
    pieces: list[PathPart] = []
    position = 0
    for part in path.parts:
        first, last = max(start - position, 0), min(stop - position, len(part))
        if first < last:
            pieces += [part[first:last]] if isinstance(part, tuple) else _cut_entry(part, first, last)
        position += len(part)
    return [Path(pieces)]

"""What the parts of a history do to sp, by the code alone: how far they move it, and to which lowest value meanwhile.

Each different part is looked at once, whatever the number of times it ran.
"""

from typing import NamedTuple

from rvtrace_gdb.decode.history.history import GAP, AnyPath, PathPart, RepeatPath
from rvtrace_gdb.decode.program.image import CodeMissing
from rvtrace_gdb.decode.program.instructions import IType, UndecodableInstruction
from rvtrace_gdb.session.questions.explain.code import SP, Code, constant_of

BEGIN, SET, RETURN, LOST = "begin", "set", "trap return", "lost"
"""Why a segment begins: with the part; its instruction has set sp; its trap return was before it; a gap was."""
NO_FUNCTION = -1
"""The function of instructions of which no symbol is known."""


class LowestMove(NamedTuple):
    """How far sp was moved at the lowest, by the instruction *at* of a part."""

    low: int
    at: int


class MoveSegment(NamedTuple):
    """Instructions of a part from *at* on during which sp is only moved: *by*, to *lowest* meanwhile.

    to      what sp was set to at its begin, None: something that the code does not say
    lows    the lowest of each function, after one of its instructions, by where the functions start
    """

    kind: str
    at: int
    to: int | None
    by: int
    lowest: LowestMove
    lows: dict[int, LowestMove]


_NOTHING = LowestMove(0, -1)
EMPTY = (MoveSegment(BEGIN, 0, None, 0, _NOTHING, {}),)


class PartMoves:
    """What parts do to sp, each looked at once."""

    def __init__(self, code: Code) -> None:
        self._code = code
        self._known: dict[int, tuple[PathPart, tuple[MoveSegment, ...]]] = {}
        self._functions: dict[int, int] = {}

    def of_part(self, part: PathPart) -> tuple[MoveSegment, ...]:
        """Return the segments of a part."""
        found = self._known.get(id(part))
        if found is None:
            found = self._known[id(part)] = part, self._new_segments(part)
        return found[1]

    def of_piece(self, part: PathPart, start: int, stop: int) -> tuple[MoveSegment, ...]:
        """Return the segments of instructions *start* to *stop* - 1 of a part."""
        if start == 0 and stop == len(part):
            return self.of_part(part)
        if isinstance(part, tuple):
            return self._in_tuple(part[start:stop])
        found = _JoinedParts()
        if isinstance(part, RepeatPath):
            self._add_rounds(found, part.path, start, stop)
            return found.finished()
        begin = 0
        for inner in part.parts:
            first, last = max(start - begin, 0), min(stop - begin, len(inner))
            if first < last:
                found.add(self.of_piece(inner, first, last), begin + first - start)
            begin += len(inner)
        return found.finished()

    def _add_rounds(self, joined: "_JoinedParts", path: AnyPath, start: int, stop: int) -> None:
        """Add instructions of a repeated path: the rest of a round, whole rounds, the beginning of one."""
        size = path.count
        first, last = -(-start // size), stop // size
        if first > last:
            joined.add(self.of_piece(path, start % size, stop - last * size), 0)
            return
        if start % size:
            joined.add(self.of_piece(path, start % size, size), 0)
        if first < last:
            joined.add(self._round_segments(path, last - first), first * size - start)
        if stop % size:
            joined.add(self.of_piece(path, 0, stop % size), last * size - start)

    def _new_segments(self, part: PathPart) -> tuple[MoveSegment, ...]:
        if isinstance(part, tuple):
            return self._in_tuple(part)
        if isinstance(part, RepeatPath):
            return self._round_segments(part.path, part.times)
        found, at = _JoinedParts(), 0
        for inner in part.parts:
            found.add(self.of_part(inner), at)
            at += len(inner)
        return found.finished()

    def _round_segments(self, path: AnyPath, times: int) -> tuple[MoveSegment, ...]:
        one, size = self.of_part(path), path.count
        if len(one) == 1:
            [only] = one
            lows = {it: _last_round(low, only.by, times - 1, size) for it, low in only.lows.items()}
            lowest = _last_round(only.lowest, only.by, times - 1, size)
            return (only._replace(by=only.by * times, lowest=lowest, lows=lows),)
        found = _JoinedParts()
        for number in range(times):
            found.add(one, number * size)
        return found.finished()

    def _in_tuple(self, pcs: tuple[int, ...]) -> tuple[MoveSegment, ...]:
        segments = [_OpenSegment(BEGIN, 0, None)]
        constants = dict[int, int]()
        for index, pc in enumerate(pcs):
            if pc == GAP:
                segments.append(_OpenSegment(LOST, index, None))
                constants.clear()
                continue
            if self._is_first_half(pcs, index):
                constants[SP] = upper = self._stack_constant(pc, constants) or 0
                to = upper + self._code.operation(pcs[index + 1]).imm & (1 << self._code.xlen) - 1
                segments.append(_OpenSegment(SET, index, to))
                continue
            is_second_half = index > 0 and self._is_first_half(pcs, index - 1)
            by = 0 if is_second_half else self._code.stack_move(pc, constants)
            if by is None and SP in self._code.effect(pc).targets:
                segments.append(_OpenSegment(SET, index, self._stack_constant(pc, constants)))
            segments[-1].move(by or 0, index, self._function_at(pc))
            if self._is_trap_return(pc):
                segments.append(_OpenSegment(RETURN, index + 1, None))
            self._note_constants(pc, constants)
        return tuple(it.finished() for it in segments)

    def _is_first_half(self, pcs: tuple[int, ...], index: int) -> bool:
        """Return whether an instruction and the next one together set sp to a constant: it is no stack in between."""
        if index + 1 >= len(pcs) or pcs[index] == GAP or pcs[index + 1] == GAP:
            return False
        first, second = (self._code.operation(it) for it in pcs[index : index + 2])
        is_upper = first.name in ("lui", "auipc") and first.rd == SP
        return is_upper and second.name == "addi" and second.rs1 == second.rd == SP

    def _function_at(self, pc: int) -> int:
        found = self._functions.get(pc)
        if found is None:
            start = self._code.image.function(pc)
            found = self._functions[pc] = NO_FUNCTION if start is None else start
        return found

    def _is_trap_return(self, pc: int) -> bool:
        try:
            return self._code.image.instruction(pc).itype is IType.TRAP_RETURN
        except (CodeMissing, UndecodableInstruction):
            return False

    def _stack_constant(self, pc: int, constants: dict[int, int]) -> int | None:
        return constant_of(self._code.operation(pc), pc, constants, self._code.xlen)

    def _note_constants(self, pc: int, constants: dict[int, int]) -> None:
        """Note which registers are constants after an instruction."""
        targets = self._code.effect(pc).targets
        value = self._stack_constant(pc, constants) if len(targets) == 1 else None
        for target in targets:
            constants.pop(target, None)
        if value is not None:
            constants[targets[0]] = value


class _OpenSegment:
    """A segment while its instructions are looked at."""

    def __init__(self, kind: str, at: int, to: int | None) -> None:
        self._kind, self._at, self._to = kind, at, to
        self._by = 0
        self._lowest = _NOTHING
        self._lows: dict[int, LowestMove] = {}

    def move(self, by: int, at: int, function: int) -> None:
        self._by += by
        if self._by < self._lowest.low:
            self._lowest = LowestMove(self._by, at)
        known = self._lows.get(function)
        if known is None or self._by < known.low:
            self._lows[function] = LowestMove(self._by, at)

    def finished(self) -> MoveSegment:
        return MoveSegment(self._kind, self._at, self._to, self._by, self._lowest, self._lows)


def _last_round(low: LowestMove, by: int, more: int, size: int) -> LowestMove:
    """Return the lowest of several rounds that each move sp *by*."""
    return LowestMove(low.low + more * by, low.at + more * size if low.at >= 0 else low.at) if by < 0 else low


class _JoinedParts:
    """Parts one after the other."""

    def __init__(self) -> None:
        self._segments = [EMPTY[0]._replace(lows={})]

    def add(self, part: tuple[MoveSegment, ...], at: int) -> None:
        """Add a part that begins *at* so many instructions behind the first."""
        last, first = self._segments[-1], part[0]
        for function, low in first.lows.items():
            last.lows[function] = _lower_move(last.lows.get(function), low, last.by, at)
        lowest = _lower_move(last.lowest, first.lowest, last.by, at) if first.lowest.at >= 0 else last.lowest
        self._segments[-1] = last._replace(by=last.by + first.by, lowest=lowest)
        self._segments += [_later_segment(it, at) for it in part[1:]]

    def finished(self) -> tuple[MoveSegment, ...]:
        return tuple(self._segments)


def _lower_move(current: LowestMove | None, other: LowestMove, by: int, at: int) -> LowestMove:
    """Return the lower one; the *other* begins *at* so many instructions later, with sp moved *by*."""
    low = other.low + by
    return LowestMove(low, other.at + at) if current is None or low < current.low else current


def _later_segment(segment: MoveSegment, at: int) -> MoveSegment:
    lows = {it: LowestMove(low, place + at) for it, (low, place) in segment.lows.items()}
    lowest = segment.lowest if segment.lowest.at < 0 else segment.lowest._replace(at=segment.lowest.at + at)
    return segment._replace(at=segment.at + at, lowest=lowest, lows=lows)

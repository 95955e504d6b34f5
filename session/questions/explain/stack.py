"""The stack pointer over a history: how low it got, and whether that is outside of the stack.

Changes of sp are in the code. Each different part of a history is looked at once; what remains is addition, entry by
entry. What sp is set to is a constant in start-up code, or a value that is known; where it is neither, nothing is said
until it is set again.
"""

from typing import NamedTuple

from rvtrace_gdb.decode.history.history import GAP, PathPart, RepeatPath
from rvtrace_gdb.decode.history.positions import history_number
from rvtrace_gdb.decode.program.layout import PlacedObject
from rvtrace_gdb.rows.explain_rows import ExplainedFinding
from rvtrace_gdb.session.questions.explain.code import SP, Code, constant_of
from rvtrace_gdb.session.questions.explain.evidence import Evidence
from rvtrace_gdb.session.questions.explain.places import ProgramPlaces

_PROGRESS_INTERVAL = 1 << 14
_ASKED_MOST = 64
"""How often a value of sp is asked for that the code does not say."""


class _Moves(NamedTuple):
    """What a part of a history does to sp: it moves it *by*, to *lowest* meanwhile, by the instruction *at* of it."""

    by: int = 0
    lowest: int = 0
    at: int = -1


class _SetStack(NamedTuple):
    """The instruction *at* of a part sets sp, *to* a constant, None: to something that the code does not say. What
    follows it does *moves*.
    """

    at: int
    to: int | None
    moves: _Moves


class _PartStack(NamedTuple):
    """What a part does: *first*, up to where it sets sp, if it does."""

    first: _Moves
    settings: tuple[_SetStack, ...] = ()


_UNMOVED = _PartStack(_Moves())


class _StackMoves:
    """What parts do to sp, each looked at once."""

    def __init__(self, code: Code) -> None:
        self._code = code
        self._known: dict[int, _PartStack] = {}

    def moves_of(self, part: PathPart) -> _PartStack:
        found = self._known.get(id(part))
        if found is None:
            moves = self._new_moves(part)
            found = self._known[id(part)] = _UNMOVED if moves == _UNMOVED else moves
        return found

    def _new_moves(self, part: PathPart) -> _PartStack:
        if isinstance(part, tuple):
            return self._in_tuple(part)
        if isinstance(part, RepeatPath):
            return self._repeated_moves(part)
        found, at = _PartStack(_Moves()), 0
        for inner in part.parts:
            found = _joined_moves(found, self.moves_of(inner), at)
            at += len(inner)
        return found

    def _repeated_moves(self, part: RepeatPath) -> _PartStack:
        one, size, more = self.moves_of(part.path), part.path.count, part.times - 1
        if one.settings:
            return _joined_moves(one, one, more * size) if more else one
        lower = more * min(one.first.by, 0)
        at = one.first.at + more * size if lower and one.first.at >= 0 else one.first.at
        return _PartStack(_Moves(one.first.by * part.times, one.first.lowest + lower, at))

    def moves_of_piece(self, part: PathPart, start: int, stop: int) -> _PartStack:
        """Return what instructions *start* to *stop* - 1 of a part do."""
        if start == 0 and stop == len(part):
            return self.moves_of(part)
        if isinstance(part, tuple):
            return self._in_tuple(part[start:stop])
        if isinstance(part, RepeatPath) and (rounds := stop // part.path.count - -(-start // part.path.count)) > 1:
            return self._rounds_of_piece(part, start, stop, rounds)
        found, at = _PartStack(_Moves()), 0
        for chunk in part.chunks(start, stop):
            found = _joined_moves(found, self._in_tuple(chunk), at)
            at += len(chunk)
        return found

    def _rounds_of_piece(self, part: RepeatPath, start: int, stop: int, rounds: int) -> _PartStack:
        """Return the same of a piece in which there are whole rounds."""
        size = part.path.count
        first = -(-start // size) * size
        behind = first + rounds * size
        found = self.moves_of_piece(part, start, first)
        found = _joined_moves(found, self._repeated_moves(RepeatPath(part.path, rounds)), first - start)
        return _joined_moves(found, self.moves_of_piece(part, behind, stop), behind - start)

    def _in_tuple(self, pcs: tuple[int, ...]) -> _PartStack:
        moves, settings = [_Moves()], list[tuple[int, int | None]]()
        constants = dict[int, int]()
        for index, pc in enumerate(pcs):
            by = None if pc == GAP else self._code.stack_move(pc, constants)
            if by is not None:
                moves[-1] = _moved_by(moves[-1], by, index)
            if pc == GAP or (by is None and SP in self._code.effect(pc).targets):
                settings.append((index, None if pc == GAP else self._constant(pc, constants)))
                moves.append(_Moves())
            self._note(pc, constants)
        return _PartStack(moves[0], tuple(_SetStack(*it, moves[n]) for n, it in enumerate(settings, 1)))

    def _constant(self, pc: int, constants: dict[int, int]) -> int | None:
        return constant_of(self._code.operation(pc), pc, constants, self._code.xlen)

    def _note(self, pc: int, constants: dict[int, int]) -> None:
        targets = () if pc == GAP else self._code.effect(pc).targets
        value = self._constant(pc, constants) if len(targets) == 1 else None
        for target in targets:
            constants.pop(target, None)
        if value is not None:
            constants[targets[0]] = value


def _moved_by(moves: _Moves, by: int, at: int) -> _Moves:
    now = moves.by + by
    return _Moves(now, now, at) if now < moves.lowest else moves._replace(by=now)


def _together(one: _Moves, other: _Moves, at: int) -> _Moves:
    low = one.by + other.lowest
    return _Moves(one.by + other.by, *((low, other.at + at) if low < one.lowest else (one.lowest, one.at)))


def _joined_moves(one: _PartStack, other: _PartStack, at: int) -> _PartStack:
    """Return what two parts do; the second begins *at* so many instructions behind the first."""
    later = tuple(it._replace(at=it.at + at, moves=_shifted(it.moves, at)) for it in other.settings)
    if not one.settings:
        return _PartStack(_together(one.first, other.first, at), later)
    last = one.settings[-1]
    return _PartStack(
        one.first, (*one.settings[:-1], last._replace(moves=_together(last.moves, other.first, at)), *later)
    )


def _shifted(moves: _Moves, at: int) -> _Moves:
    return moves if moves.at < 0 else moves._replace(at=moves.at + at)


class _StackValue(NamedTuple):
    """A value of sp at a position, in the *room* of its stack."""

    value: int
    position: int
    room: PlacedObject


class _StackPointer:
    """The stack pointer along a history: what it was set to last, None: not known, and its moves since then."""

    def __init__(self, evidence: Evidence, places: ProgramPlaces) -> None:
        self._evidence, self._places = evidence, places
        self._asked = 0
        self._base: int | None = None
        self._room: PlacedObject | None = None
        self._moves = _Moves()
        self.lowest: _StackValue | None = None
        self.outside: _StackValue | None = None
        self.begin_at(evidence.part.start, None)

    def begin_at(self, position: int, to: int | None) -> None:
        """Note that sp is set before a position."""
        if to is None and self._asked < _ASKED_MOST:
            self._asked += 1
            to = self._evidence.register(position, SP)
        self._base, self._moves = to, _Moves()
        self._room = None if to is None else self._places.stack_room(to)

    def move(self, moves: _Moves, begin: int) -> None:
        """Note moves of a part that begins at a position."""
        self._moves = _together(self._moves, moves, begin)
        if self._base is not None and moves.lowest < 0:
            low = self._base + self._moves.by - moves.by + moves.lowest
            self._note_value(low, begin + moves.at)

    def end_at(self, position: int) -> None:
        """Note that sp may be known before a position although it was not where it was set last."""
        value = None if self._base is not None else self._evidence.register(position, SP)
        if value is not None and self._moves.at >= 0:
            self._room = self._places.stack_room(value)
            self._note_value(value - self._moves.by + self._moves.lowest, self._moves.at)

    def _note_value(self, value: int, position: int) -> None:
        if self._room is None:
            return
        here = _StackValue(value, position, self._room)
        if self.lowest is None or value < self.lowest.value:
            self.lowest = here
        if value < self._room.start and self.outside is None:
            self.outside = here


def _followed_stack(evidence: Evidence, places: ProgramPlaces) -> _StackPointer:
    history, part = evidence.history, evidence.part
    parts, pointer = _StackMoves(evidence.code), _StackPointer(evidence, places)
    (first, begin), (last, end) = history.entry_at(part.start), history.entry_at(part.stop - 1)
    for number in range(first, last + 1):
        if (number - first) % _PROGRESS_INTERVAL == 0:
            evidence.progress("following the stack pointer (parts)", number - first, last + 1 - first)
        entry = history.entries[number]
        start, stop = part.start - begin if number == first else 0, part.stop - end if number == last else entry.count
        moved = parts.moves_of_piece(entry, start, stop)
        if moved is _UNMOVED:
            continue
        at = history.position_of(number) + start
        pointer.move(moved.first, at)
        for setting in moved.settings:
            pointer.begin_at(at + setting.at + 1, setting.to)
            pointer.move(setting.moves, at)
    pointer.end_at(part.stop)
    return pointer


def stack_overflow(evidence: Evidence, places: ProgramPlaces) -> ExplainedFinding | None:
    """Return where sp first got below the stack's section, or into another object."""
    pointer = _followed_stack(evidence, places) if evidence.part else None
    if pointer is None or pointer.outside is None or pointer.lowest is None:
        return None
    value, position, room = pointer.outside
    low = pointer.lowest.value if pointer.lowest.room == room else value
    name = places.function_name(evidence.history.pc(position))
    what = places.below_stack(room.start - 1)
    text = f"the stack runs into {what}: sp is 0x{value:x} in {name}, and its room begins at 0x{room.start:x}"
    details = [f"The lowest sp is 0x{low:x}, {room.start - low} bytes below."] if low < value else []
    number = history_number(position)
    facts = {"sp": f"0x{value:x}", "room": f"0x{room.start:x}", "lowest": f"0x{low:x}", "number": number}
    return ExplainedFinding("stack-overflow", text, places.place_at(position), details, facts)

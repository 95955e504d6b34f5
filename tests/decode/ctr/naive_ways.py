"""All ways there are from one place to another, one by one: what the decoder's search must agree with."""

from dataclasses import dataclass, field

from tests.decode.ctr.random_harts import A0, SP, T1, Op, Program

_LONGEST = 40  # instructions of a way that is looked at
_AT_MOST = 4000  # instructions of all ways together
ANYWHERE, STOPPED, END = -1, -2, -3


@dataclass
class Believed:
    """What is known of a hart's registers and stack. None: nothing."""

    registers: dict[int, int | None] = field(default_factory=dict)
    sp: int = 0
    memory: dict[int, int | None] = field(default_factory=dict)

    def copy(self) -> "Believed":
        return Believed(dict(self.registers), self.sp, dict(self.memory))

    def do(self, op: Op) -> None:
        """An instruction that is not a transfer."""
        at = self.sp + op.offset
        match op.name:
            case "spoil":
                self.registers[op.rd] = None
            case "move":
                self.registers[op.rd] = self.registers.get(op.rs)
            case "stack":
                self.sp = at
                self.memory = {place: value for place, value in self.memory.items() if place >= at}
            case "save":
                self.memory[at] = self.registers.get(op.rs) if op.rs != A0 else None
            case "load":
                self.registers[op.rd] = self.memory.get(at)

    def link(self, op: Op, fall: int) -> None:
        """A jump: its link register."""
        if op.rd in (1, 5):
            self.registers[op.rd] = fall


@dataclass
class Ways:
    """The ways found, each with how it ends. *cut*: there are more, or longer ones."""

    found: list[tuple[list[int], int]] = field(default_factory=list)
    cut: bool = False
    steps: int = 0
    believed: Believed | None = None

    @property
    def unique(self) -> list[int] | None:
        """The only way there is, if it is known to the end."""
        if self.cut or len(self.found) != 1 or self.found[0][1] != END:
            return None
        return self.found[0][0]

    @property
    def common(self) -> list[int]:
        """What all of them begin with."""
        first = [*self.found[0][0], self.found[0][1]]
        for way, end in self.found[1:]:
            other = [*way, end]
            same = (i for i, (one, two) in enumerate(zip(first, other, strict=False)) if one != two)
            first = first[: next(same, min(len(first), len(other)))]
        return [pc for pc in first if pc >= 0]


def ways(
    program: Program, start: int, believed: Believed, goal: int, target: int | None, types: frozenset[int], sure: bool
) -> Ways:
    """From *start* to *goal*, where a jump to *target* is made (None: none is), without a transfer of these *types*."""
    result = Ways()
    _walk(program, start, believed, [], -1, (goal, target, types, sure), result)
    return result


def _walk(
    program: Program, pc: int, now: Believed, way: list[int], stopped: int,
    asked: tuple[int, int | None, frozenset[int], bool], result: Ways,
) -> None:  # fmt: skip
    goal, target, types, sure = asked
    op = program.at[pc]
    fall = pc + op.length
    result.steps += 1
    if len(way) > _LONGEST or result.steps > _AT_MOST:
        result.cut = True
        return
    leads = _leads(program, op, now, way)
    if pc == goal and (target is None or op.type not in (8, 9, 10, 11, 12, 13, 14, 15) or leads in (None, target)):
        shown, end = (way, END) if stopped < 0 else (way[:stopped], STOPPED)
        result.found.append((list(shown), end))
        result.believed = now.copy()
    if op.type == 1:
        if not (sure and op.name == "ecall"):
            _walk(program, fall, now.copy(), way, len(way) if stopped < 0 else stopped, asked, result)
        return
    if op.type == 0:
        after = now.copy()
        after.do(op)
        _walk(program, fall, after, [*way, pc], stopped, asked, result)
    elif op.type == 4:
        for to in {to for to, kind in ((program.to(op), 5), (fall, 4)) if kind not in types}:
            _walk(program, to, now.copy(), [*way, pc], stopped, asked, result)
    elif op.type not in types:
        after = now.copy()
        after.link(op, fall)
        if leads is None:
            shown, end = ([*way, pc], ANYWHERE) if stopped < 0 else (way[:stopped], STOPPED)
            result.found.append((list(shown), end))
        else:
            _walk(program, leads, after, [*way, pc], stopped, asked, result)


def _leads(program: Program, op: Op, now: Believed, way: list[int]) -> int | None:
    """Where a jump goes, as far as is known."""
    if op.name in ("direct", "near"):
        behind_upper = op.name == "direct" or (bool(way) and program.at[way[-1]].name == "upper")
        return program.to(op) if behind_upper else None
    return now.registers.get(op.rs) if op.name == "indirect" and op.rs not in (T1, SP) else None

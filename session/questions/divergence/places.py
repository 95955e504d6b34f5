"""The place where two runs part: what the last instruction tested, and where each run went on."""

import posixpath
from typing import NamedTuple

from rvtrace_gdb.decode.history.events import Trap
from rvtrace_gdb.decode.history.history import GAP
from rvtrace_gdb.decode.history.positions import history_number
from rvtrace_gdb.decode.program.instructions import IType
from rvtrace_gdb.decode.program.source.source_lines import SourceLines
from rvtrace_gdb.decode.semantics.encodings import Operation
from rvtrace_gdb.decode.tandem.wording import X
from rvtrace_gdb.rows.diff_rows import PARTED, WAITED, DivergenceRow, TestedRegister
from rvtrace_gdb.rows.list_rows import DifferenceRow, Place
from rvtrace_gdb.session.past.choice import PastSource, past_of
from rvtrace_gdb.session.questions.divergence.comparison import WAITS, FlowStretch
from rvtrace_gdb.session.questions.divergence.flow import Flow
from rvtrace_gdb.session.questions.divergence.loop_code import branch_registers, operation_at
from rvtrace_gdb.session.selected_history import SelectedHistory
from rvtrace_gdb.support.errors import Progress, silent

_VALUES_AT_MOST = 1 << 22  # instructions that are executed again for the values at a place


class ComparedRun(NamedTuple):
    """A run that is compared: its *session*, its history, what is compared of it (*flow*; *instructions*: all that is
    not set aside), and its source *lines*. *named*: whether its places have the names of their functions: those that
    gdb shows are the other program's.
    """

    session: PastSource
    selected: SelectedHistory
    flow: Flow
    instructions: Flow
    lines: SourceLines
    named: bool = False

    def position_before(self, index: int) -> int | None:
        """Return the position of the last instruction that is compared before an index, None if there is none."""
        before = self.instructions.index_from(self.flow.position(index))
        return self.instructions.position(before - 1) if before else None

    def place(self, position: int) -> Place | None:
        """Return the place of an instruction, None if there is none at the position."""
        history = self.selected.history
        if position >= len(history) or history.pc(position) == GAP:
            return None
        pc = history.pc(position)
        symbol = self.selected.program.all_programs.symbol(pc) if self.named else None
        return (pc,) if symbol is None else (pc, *symbol)

    def source_line(self, position: int) -> str:
        """Return the source line of an instruction, "" if it is not known."""
        history = self.selected.history
        row = self.lines.row(history.pc(position)) if position < len(history) else None
        return "" if row is None or not row.line else f"{posixpath.basename(row.path)}:{row.line}"

    def trap(self, position: int) -> str:
        """Return which trap led to a position, "" if none did."""
        events = self.selected.history.events_between(position, position + 1)
        return next((event.text for event in events if isinstance(event.fact, Trap)), "")

    def registers(self, position: int, progress: Progress) -> dict[int, int]:
        """Return the known integer registers before an instruction, by 0 to 31."""
        past = past_of(self.session, self.selected, progress) if position < _VALUES_AT_MOST else None
        return {} if past is None else past.integers(position)


def divergence_row(
    one: ComparedRun, other: ComparedRun, first: FlowStretch, progress: Progress = silent
) -> DivergenceRow:
    """Return the place where two runs part first. Raises what *progress* raises."""
    last, other_last = one.position_before(first.begin), other.position_before(first.other_begin)
    to, other_to = one.flow.position(first.begin), other.flow.position(first.other_begin)
    tested: list[TestedRegister] = []
    code = ""
    if last is not None and other_last is not None:
        code, registers = _tested(one, last)
        if registers:
            values, others = one.registers(last, progress), other.registers(other_last, progress)
            tested = [TestedRegister(X[it], values.get(it), others.get(it)) for it in registers]
    return DivergenceRow(
        kind=WAITED if first.kind == WAITS else PARTED,
        number=0 if last is None else history_number(last),
        other_number=0 if other_last is None else history_number(other_last),
        here=None if last is None else one.place(last),
        line="" if last is None else one.source_line(last),
        code=code,
        to=one.place(to),
        to_number=history_number(to),
        to_line=one.source_line(to),
        trap=one.trap(to),
        other_to=other.place(other_to),
        other_to_number=history_number(other_to),
        other_to_line=other.source_line(other_to),
        other_trap=other.trap(other_to),
        tested=tested,
    )


def difference_row(number: int, one: ComparedRun, other: ComparedRun, stretch: FlowStretch) -> DifferenceRow:
    """Return the row of a stretch."""
    begin, end = one.flow.position(stretch.begin), one.flow.position(stretch.end)
    other_begin, other_end = other.flow.position(stretch.other_begin), other.flow.position(stretch.other_end)
    last = one.position_before(stretch.begin)
    return DifferenceRow(
        number=number,
        kind=stretch.kind,
        position=history_number(begin),
        instructions=end - begin,
        other_position=history_number(other_begin),
        other_instructions=other_end - other_begin,
        here=None if last is None else one.place(last),
        line="" if last is None else one.source_line(last),
    )


def _tested(one: ComparedRun, position: int) -> tuple[str, list[int]]:
    """Return what the instruction at a position is, and which registers it uses to decide where it leads."""
    history = one.selected.history
    image, pc = one.selected.program.image_of(history.context_at(position)), history.pc(position)
    op = operation_at(image, pc)
    compared = branch_registers(image, pc)
    if op is None:
        return "", []
    if compared is not None:
        return _branch_text(op, pc), [it for it in dict.fromkeys(compared) if it]
    if op.name == "jalr":
        is_return = image.instruction(pc).itype is IType.RETURN
        return ("ret" if is_return else f"jalr {X[op.rs1]}"), [op.rs1] if op.rs1 else []
    return "", []


def _branch_text(op: Operation, pc: int) -> str:
    return f"{op.name} {X[op.rs1]}, {X[op.rs2]}, {pc + op.imm:#x}"

"""A past as a tandem trace: for each instruction of a history a group with what is known of its effects.

The trace has the dialect `RECONSTRUCTED`: what a group does not report of what its instruction writes is unknown. So
what reads tandem traces reads pasts of every kind: listings, conversions, and the verifier.

The state at the beginning is a state initialization, and so is that behind a gap, or a halt at which a debugger may
have written: everything that it does not report is unknown there.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from rvtrace_gdb.decode.history.events import Trap, TrapKind
from rvtrace_gdb.decode.history.history import GAP
from rvtrace_gdb.decode.program import csrs
from rvtrace_gdb.decode.program.context_images import ContextImages
from rvtrace_gdb.decode.program.image import CodeMissing, Image
from rvtrace_gdb.decode.program.instructions import UndecodableInstruction, reach
from rvtrace_gdb.decode.reconstruction.happenings import Cuts, is_lost
from rvtrace_gdb.decode.semantics.addressed import addressed
from rvtrace_gdb.decode.tandem.effects import destinations, stored_size
from rvtrace_gdb.decode.tandem.encoder import encode_group
from rvtrace_gdb.decode.tandem.protocol import (
    FPR,
    GPR,
    RECONSTRUCTED,
    SIZES,
    STORE_DATA,
    SUCCESS,
    AdditionalState,
    Element,
    FullRegister,
    Group,
    Instr,
    MemoryOp,
    MemoryRequest,
    MemoryResponse,
    StateId,
    StateInitialization,
    TandemParameters,
)
from rvtrace_gdb.session.past.past import Past
from rvtrace_gdb.support.errors import Progress, silent

_NOWHERE = (1 << 64) - 1
"""In place of the address of an interrupted instruction that is not known."""
_BY_SIZE = {size: state for state, size in STORE_DATA.items()}
_WORD = 8
_OFTEN = 1 << 10  # instructions between two reports of progress
_X = ("zero", "ra", "sp", "gp", "tp", "t0", "t1", "t2", "s0", "s1", *(f"a{n}" for n in range(8)),
      *(f"s{n}" for n in range(2, 12)), *(f"t{n}" for n in range(3, 7)))  # fmt: skip
_TRAP_CSRS = {csrs.TRAPS[0].cause: "mcause", csrs.TRAPS[0].epc: "mepc", csrs.TRAPS[0].tval: "mtval"}
_NAMES = {number: name for name, number in csrs.CSRS.items()}


class _RanInstruction(NamedTuple):
    """An instruction that ran; *address*: what it accesses, None if that is unknown, or it accesses nothing."""

    pc: int
    instr: Instr
    address: int | None


class TandemOfPast:
    """The groups of a past. *program*: what ran; *supervisor*: the hart may have S-mode.

    *gaps*: of each gap of the history the number of the group behind it and its position: groups cannot say that
    something is missing.
    """

    def __init__(self, past: Past, program: ContextImages, *, supervisor: bool = True) -> None:
        traced = past.traced_registers()
        flen = 0 if traced is None else traced.flen
        self.parameters = TandemParameters(program.xlen, flen, dialect=RECONSTRUCTED, supervisor=supervisor)
        self._past, self._program, self._history = past, program, past.history
        self._names = {GPR + n: name for n, name in enumerate(_X)} | _NAMES
        self._names |= {FPR + n: f"f{n}" for n in range(32)} if flen else {}
        self._destinations, self._mask = destinations(program.xlen), (1 << program.xlen) - 1
        self._cuts = Cuts(self._history, 0)
        self._codes: dict[tuple[int, int], Instr | None] = {}
        self.gaps: list[tuple[int, int]] = []
        self._made = 0

    def pieces(self, progress: Progress = silent) -> Iterator[bytes]:
        """Yield the bytes of groups, in order. Raises what *progress* raises."""
        end = len(self._history)
        self._made = 0
        self.gaps.clear()
        ran: _RanInstruction | None = None
        for position in range(end + 1):  # a past that executes goes forward only: each state is asked once
            if not position % _OFTEN:
                progress("writing what is known (instructions)", position, end)
            if ran is not None:
                yield self._encoded(self._retired(ran, position))
            ran = None
            if position < end and (pc := self._history.pc(position)) == GAP:
                self.gaps.append((self._made, position))
            elif position < end:
                instr = self._executed_instruction(position, pc)
                for elements in self._from_elsewhere(position, pc, instr):
                    yield self._encoded(elements)
                ran = None if instr is None else _RanInstruction(pc, instr, self._accessed_address(position, instr))

    def _encoded(self, elements: Iterable[Element]) -> bytes:
        self._made += 1
        return encode_group(Group(tuple(elements)), self.parameters.widths)

    def _from_elsewhere(self, position: int, pc: int, instr: Instr | None) -> Iterator[list[Element]]:
        """Yield the groups of what happened before the instruction at a position."""
        for event in self._cuts.happening_at(position).events:
            if isinstance(event.fact, Trap):
                yield self._trap_group(position, event.fact, pc)
        if position == 0 or instr is None or self._is_cut(position) or self._history.pc(position - 1) == GAP:
            yield [StateInitialization(), *self._initial(position, pc)]
        if position == 0:
            yield from self._memory_at_start()

    def _is_cut(self, position: int) -> bool:
        """Return whether something may have changed the hart's state besides instructions and traps."""
        return any(is_lost(event, ()) for event in self._cuts.happening_at(position).events)

    # -- what an instruction did

    def _retired(self, ran: _RanInstruction, after: int) -> Iterator[Element]:
        """Yield what is known of an instruction: of its effects from the state behind it, at position *after*."""
        following = self._following(after)
        if following is not None:
            yield AdditionalState(StateId.PC, following, ran.pc)
        yield ran.instr
        word = ran.instr.word
        is_changed, has_trapped = self._is_cut(after), after in self._cuts
        values = {} if is_changed else self._past.registers(after)
        if word in csrs.XRETS and not has_trapped and (mode := values.get("priv")) is not None:
            yield AdditionalState(StateId.PRIVILEGE_MODE, mode)
        written = sorted(self._destinations[word], key=lambda number: (number < GPR, number))
        yield from self._register_elements(
            values, [it for it in written if it >= GPR or it == csrs.FCSR or not has_trapped]
        )
        if ran.address is None:
            return
        size = stored_size(word, self._program.xlen)
        if size in _BY_SIZE and not is_changed:
            stored = self._past.memory(after, ran.address, size)
            if None not in stored:
                yield AdditionalState(_BY_SIZE[size], int.from_bytes(bytes(it or 0 for it in stored), "little"))
        yield AdditionalState(StateId.EFFECTIVE_ADDRESS, ran.address)

    def _register_elements(self, values: Mapping[str, int], numbers: Iterable[int]) -> Iterator[FullRegister]:
        for number in numbers:
            value = values.get(self._names.get(number, ""))
            if value is not None:
                yield FullRegister(number, value)

    def _accessed_address(self, position: int, instr: Instr) -> int | None:
        """Return the address that an instruction accesses; None: unknown, or it accesses none."""
        place = addressed(instr.word, self._program.xlen)
        if place is None or reach(instr.word, self._program.xlen) is None:
            return None
        base = 0 if place.base == GPR else self._past.registers(position).get(self._names[place.base])
        return None if base is None else base + place.offset & self._mask

    def _following(self, position: int) -> int | None:
        """Return the address at a position, at which the instruction before it continued; None: unknown."""
        if position in self._cuts or position >= len(self._history):
            return None
        pc = self._history.pc(position)
        return None if pc == GAP else pc

    def _executed_instruction(self, position: int, pc: int) -> Instr | None:
        """Return the instruction at a position; None: its code is not known."""
        image = self._program.image_of(self._history.context_at(position))
        key = id(image), pc
        if key not in self._codes:
            self._codes[key] = _code_at(image, pc)
        return self._codes[key]

    # -- what came from elsewhere

    def _trap_group(self, position: int, trap: Trap, handler: int) -> list[Element]:
        """Return the group of a trap before a position. The state behind it is that at the position."""
        values = self._past.registers(position)
        epc = values.get("mepc")
        elements: list[Element] = [AdditionalState(StateId.PC, handler, _NOWHERE & self._mask if epc is None else epc)]
        mode = values.get("priv")
        if mode is not None:
            if trap.kind is TrapKind.EXCEPTION and epc is not None:
                instr = self._executed_instruction(max(position - 1, 0), epc)
                elements += [] if instr is None else [instr]
            elements.append(AdditionalState(StateId.PRIVILEGE_MODE, mode))
        for number, name in _TRAP_CSRS.items():
            if name in values:
                elements.append(FullRegister(number, values[name]))
        return elements

    def _initial(self, position: int, pc: int) -> Iterator[Element]:
        values = self._past.registers(position)
        yield AdditionalState(StateId.PC, pc, pc)
        if "priv" in values:
            yield AdditionalState(StateId.PRIVILEGE_MODE, values["priv"])
        traced = self._past.traced_registers()
        numbers = [*range(GPR + 1, GPR + 32), *(range(FPR, FPR + 32) if self.parameters.flen else ())]
        numbers += sorted(traced.csrs.values()) if traced is not None else []
        yield from self._register_elements(values, numbers)

    def _memory_at_start(self) -> Iterator[list[Element]]:
        """Yield what the program's memory held at the beginning and its file does not have, as far as it is known."""
        for address, content in self._program.base.segments:
            for offset in range(0, len(content) - _WORD + 1, _WORD):
                known = self._past.memory(0, address + offset, _WORD)
                if None in known:
                    continue
                held = bytes(it or 0 for it in known)
                if held != content[offset : offset + _WORD]:
                    size = SIZES.index(_WORD)
                    value = int.from_bytes(held, "little")
                    yield [MemoryRequest(address + offset, MemoryOp.STORE, size, value), MemoryResponse(size, SUCCESS)]


def _code_at(image: Image, pc: int) -> Instr | None:
    try:
        size = image.instruction(pc).length
        return Instr(int.from_bytes(image.read(pc, size), "little"), size)
    except (CodeMissing, UndecodableInstruction):
        return None

"""The instructions of a window as nodes, constraints and accesses."""

from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, MutableSequence, Sequence
from typing import NamedTuple

from rvtrace_gdb.decode.history.history import GAP, History
from rvtrace_gdb.decode.program.csrs import FCSR, FRM, SATP, F, X
from rvtrace_gdb.decode.program.image import Image, Program
from rvtrace_gdb.decode.reconstruction.code import word_at
from rvtrace_gdb.decode.reconstruction.cuts import Cut, cuts_between, trap_cause
from rvtrace_gdb.decode.reconstruction.facts import HaltWrites, HartMachine, KnownValue
from rvtrace_gdb.decode.reconstruction.happenings import sequential_pc
from rvtrace_gdb.decode.reconstruction.hart import HOST_READS_ONLY
from rvtrace_gdb.decode.reconstruction.undefined import effects
from rvtrace_gdb.decode.reconstruction.window.classes import Classes
from rvtrace_gdb.decode.reconstruction.window.comparisons import compare, holding
from rvtrace_gdb.decode.reconstruction.window.edges import WindowEdge
from rvtrace_gdb.decode.reconstruction.window.floating import FloatingRule
from rvtrace_gdb.decode.reconstruction.window.rules import InstructionRule, extended, extension_rule, value_rule
from rvtrace_gdb.decode.reconstruction.window.shapes import result_shape
from rvtrace_gdb.decode.reconstruction.window.steps import (
    CSRS,
    F0,
    MCAUSE,
    MEPC,
    MSCRATCH,
    REGISTERS,
    SCAUSE,
    SEPC,
    SSCRATCH,
    StepTable,
    WindowStep,
)
from rvtrace_gdb.decode.reconstruction.window.table import LOAD, STORE, AccessTable
from rvtrace_gdb.decode.semantics.templates import BOX
from rvtrace_gdb.support.errors import Progress

_TRANSLATION = (SATP, 0x280, 0x680)
"""satp, vsatp, hgatp."""
_SWAPPED = {0x348: MSCRATCH, 0x349: MSCRATCH, 0x148: SSCRATCH, 0x149: SSCRATCH}
"""mscratchcsw, mscratchcswl and those of S-mode, which write other CSRs (Smclic)."""
_A0 = 10
_EVERY = 4096


class StepSpan(NamedTuple):
    """The part of a history that a window is: positions *first* to *last* - 1.

    halts   known halts within it, by position
    shared  others write the memory too, but what they wrote is seen only behind a fence
    """

    history: History
    program: Program
    machine: HartMachine
    first: int
    last: int
    halts: Mapping[int, Sequence[HaltWrites]]
    shared: bool


class Impossible(Exception):
    """The instruction at *position* cannot have done what the history says, whatever the registers hold."""

    def __init__(self, position: int) -> None:
        super().__init__(position)
        self.position = position


WindowStepHandler = Callable[[WindowStep, KnownValue], None]


class Construction:
    """Nodes, constraints and accesses of a window.

    positions, nodes  by register: from which positions on it has which nodes
    images            the programs that ran
    translated        addresses may be virtual
    """

    def __init__(self, span: StepSpan, begin: WindowEdge, end: WindowEdge) -> None:
        self._span, self._begin, self._end = span, begin, end
        self.xlen = span.machine.xlen
        self.classes, self.accesses = Classes(self.xlen), AccessTable()
        self.images: list[Image] = []
        self.translated = any((edge.csrs.get(SATP) or 0) >> (60 if self.xlen == 64 else 31) for edge in (begin, end))
        self.position = span.first
        """Of the instruction that is looked at."""
        self._table = StepTable(self.xlen, tuple(span.machine.extensions))
        self._handlers: dict[str, WindowStepHandler] = {
            name[4:]: getattr(self, name) for name in dir(self) if name.startswith("_do_")
        }
        self._zero = self.classes.known_count(0)
        self._current = [self._zero] * REGISTERS
        self.positions = [array("Q") for _ in range(REGISTERS)]
        self.nodes = [array("I") for _ in range(REGISTERS)]
        self.code: set[int] = set()
        """The halfwords of the instructions that ran, by their addresses divided by two."""
        self.is_complete = False
        """Whether `build` has come to the end."""

    def build(self, progress: Progress) -> None:
        """Go through the window once. Raises Contradiction, Impossible, and Cancelled."""
        self._renew(self._span.first)
        self._know(self._begin)
        self._go_through(progress)
        self.is_complete = True
        self._know(self._end)

    # -- registers

    def _new(self, register: int) -> int:
        """Return a new node for a register of which nothing is known."""
        return self.classes.new(64 if F0 <= register < 64 else self.xlen)

    def _renew(self, position: int) -> None:
        """Nothing is known of the registers before the instruction at a position."""
        for register in range(1, REGISTERS):
            self._put(register, self._new(register), position)
        if not self.positions[0]:
            self._put(0, self._zero, position)

    def _put(self, register: int, node: int, position: int) -> None:
        self._current[register] = node
        self.positions[register].append(position)
        self.nodes[register].append(node)

    def _write_register(self, register: int, node: int) -> None:
        if register:
            self._current[register] = node
            self.positions[register].append(self.position + 1)
            self.nodes[register].append(node)

    def _know(self, edge: WindowEdge) -> None:
        """The registers are now those of an edge."""
        for number in range(1, 32):
            self._know_register(number, edge.x[number])
        for number in range(32):
            self._know_register(F0 + number, edge.f[number])
        for csr, register in CSRS.items():
            self._know_register(register, edge.csrs.get(csr))
        if FCSR in edge.csrs:
            self._know_register(CSRS[FRM], edge.csrs[FCSR] >> 5 & 7)

    def _know_register(self, register: int, value: KnownValue) -> None:
        if value is not None:
            self.classes.set(self._current[register], self._held(register, value))

    def _held(self, register: int, value: int) -> int:
        """Return a value as nodes have it."""
        if not F0 <= register < 64:
            return value & self.classes.mask
        return value | BOX if "D" not in self._span.machine.extensions else value & (1 << 64) - 1

    # -- the instructions in order

    def _go_through(self, progress: Progress) -> None:
        span, end = self._span, self._end.pc
        first, last = span.first, span.last
        cuts = cuts_between(span.history, first, last, span.halts)
        pcs = _executed_addresses(span.history, first, last)
        if len(pcs) == last - first:
            pcs.append(GAP if end is None else end)
        codes = span.history.code(first, last)
        images = self._image_at()
        image, until = next(images)
        table: dict[int, list[tuple[WindowStepHandler, WindowStep]]] = {}
        for number in range(last - first):
            position = self.position = first + number
            if position >= until:
                image, until = next(images)
                table = {}
            if position in cuts or position in span.halts:
                self._happened(position, cuts.get(position))
            pc = pcs[number]
            if pc == GAP:
                continue
            steps = table.get(pc)
            if steps is None or position in codes:
                steps = self._steps(pc, codes.get(position), image)
                if position not in codes:
                    table[pc] = steps
            following: KnownValue = pcs[number + 1]
            if following == GAP or position + 1 in cuts:
                following = None
            for handler, step in steps:
                handler(step, following)
            if not number % _EVERY:
                progress("reconstructing values (instructions)", number, last - first)
        self.position = last
        if last in cuts or last in span.halts:
            self._happened(last, cuts.get(last))

    def _steps(self, pc: int, code: bytes | None, image: Image) -> list[tuple[WindowStepHandler, WindowStep]]:
        word = word_at(image, pc) if code is None else int.from_bytes(code, "little")
        self.code.update((pc >> 1, pc + 2 >> 1) if word & 3 == 3 else (pc >> 1,))
        return [(self._handlers[step.kind], step) for step in self._table.steps(pc, word)]

    def _image_at(self) -> Iterator[tuple[Image, int]]:
        """Yield the programs in order, each with the position until which it ran."""
        history, first, last = self._span.history, self._span.first, self._span.last
        at = bisect_right(history.contexts, first, key=lambda it: it[0])
        edges = [first, *(position for position, _ in history.contexts[at:] if position < last)]
        for begin, until in zip(edges, [*edges[1:], last + 1], strict=True):
            image = self._span.program.image_of(history.context_at(begin))
            if all(known is not image for known in self.images):
                self.images.append(image)
            yield image, until

    # -- what happened in between

    def _happened(self, position: int, cut: Cut | None) -> None:
        if cut is not None and cut.forgets:
            self._renew(position)
            self.accesses.kill(position, accesses=False)
        elif cut is not None and cut.trap is not None:
            before = -1 if cut.several else position - 1
            epc = sequential_pc(self._span.history, self._span.program, before)
            self._write_trap_csrs(position, epc, trap_cause(cut.trap, self.xlen))
        for halt in self._span.halts.get(position, ()):
            self._debugger_wrote(position, halt)

    def _write_trap_csrs(self, position: int, epc: KnownValue, cause: KnownValue) -> None:
        """A trap writes the CSRs of M-mode, or of S-mode: which of them, is known without S-mode."""
        machine_only = self._span.machine.machine_only
        for csr, value in ((MEPC, epc), (MCAUSE, cause), (SEPC, None), (SCAUSE, None)):
            is_known = machine_only and value is not None
            node = self.classes.known_count(value & self.classes.mask) if is_known else self._new(CSRS[csr])  # type: ignore[operator]
            self._put(CSRS[csr], node, position)

    def _debugger_wrote(self, position: int, halt: HaltWrites) -> None:
        for number, value in halt.registers.items():
            register = CSRS.get(number, 0)
            if X <= number < F + 32:
                register = number - X
            elif number == FCSR:
                register, value = CSRS[FRM], value >> 5 & 7
            if register:
                held = self._held(register, value)
                node = self.classes.known_count(held, 64 if F0 <= register < 64 else 0)
                self._put(register, node, position)
            elif number in _TRANSLATION:
                self.translated = True
        for address, content in halt.memory:
            for at in range(0, len(content), 4):
                piece = content[at : at + 4]
                node = self.classes.known_count(int.from_bytes(piece, "little"))
                self.accesses.add_debuggers(position, self._zero, address + at, len(piece), node)
        for address, size in halt.forgotten:
            for at in range(address, address + size):
                self.accesses.add_debuggers(position, self._zero, at, 1, self._new(0), is_breakpoint=True)

    # -- integer instructions

    def _do_constant(self, step: WindowStep, following: KnownValue) -> None:
        self._write_register(step.rd, self.classes.known_count(step.imm))

    def _do_copy(self, step: WindowStep, following: KnownValue) -> None:
        self._write_register(step.rd, self._current[step.a])

    def _do_addi(self, step: WindowStep, following: KnownValue) -> None:
        self._write_register(step.rd, self.classes.plus(self._current[step.a], step.imm))

    def _do_unary(self, step: WindowStep, following: KnownValue) -> None:
        if step.rd:
            self._write_register(step.rd, self._unary(step.rule, self._current[step.a]))  # type: ignore[arg-type]

    def _unary(self, rule: InstructionRule, a: int) -> int:
        """Return the node of what an instruction with one register computes."""
        classes = self.classes
        value = classes.value(a)
        if value is not None:
            return classes.known_count(rule.forward(value, 0))
        node = classes.new(result_shape(rule.family, classes.shapes[a], 0, rule.constant, self.xlen))
        classes.constrain((rule.evaluate, node, a, -1), (node, a))
        if rule.constant and rule.family in ("sll", "sllw"):
            classes.set_low(node, rule.constant, 0)
        return node

    def _do_binary(self, step: WindowStep, following: KnownValue) -> None:
        if step.rd:
            self._write_register(step.rd, self._binary(step.rule, self._current[step.a], self._current[step.b]))  # type: ignore[arg-type]

    def _binary(self, rule: InstructionRule, a: int, b: int) -> int:
        classes = self.classes
        va, vb = classes.value(a), classes.value(b)
        if va is not None and vb is not None:
            return classes.known_count(rule.forward(va, vb))
        node = classes.new(result_shape(rule.family, classes.shapes[a], classes.shapes[b], vb, self.xlen))
        classes.constrain((rule.evaluate, node, a, b), (node, a, b) if a != b else (node, a))
        return node

    def _do_extend(self, step: WindowStep, following: KnownValue) -> None:
        """Move 32 bits from one register file to the other."""
        classes, a = self.classes, self._current[step.a]
        value = classes.value(a)
        if value is not None:
            node = classes.known_count(extended(value, 32, step.form, classes.mask), 64 if step.form == "f" else 0)
        else:
            node = classes.new(step.shape if self.xlen == 64 or step.form == "f" else 32)
            classes.constrain((extension_rule(32, step.form), node, a), (node, a))
        self._write_register(step.rd, node)

    def _do_sext(self, step: WindowStep, following: KnownValue) -> None:
        """The low 32 bits, sign-extended: mostly they were that already."""
        a = self._current[step.a]
        fits = self.classes.fits(a, 32, is_signed=True)
        self._write_register(step.rd, a if fits else self._unary(step.rule, a))  # type: ignore[arg-type]

    # -- where execution went on

    def _do_branch(self, step: WindowStep, following: KnownValue) -> None:
        if following is None:
            return
        taken = following == step.imm
        if not taken and following != step.size:
            raise Impossible(self.position)
        a, b = self._current[step.a], self._current[step.b]
        if (step.form, taken) in (("beq", True), ("bne", False)):
            self.classes.union(a, b)
        else:
            constraint = (compare, holding(step.form, taken=taken), a, b, self.position)
            if self.classes.value(a) is None or self.classes.value(b) is None:
                self.classes.constrain(constraint, (a, b))
            else:
                compare(self.classes, constraint)

    def _do_jal(self, step: WindowStep, following: KnownValue) -> None:
        if step.rd:
            self._write_register(step.rd, self.classes.known_count(step.size))

    def _do_jalr(self, step: WindowStep, following: KnownValue) -> None:
        """What was jumped to tells the register, but for bit 0, which is ignored: it is taken for 0."""
        classes, a = self.classes, self._current[step.a]
        if following is not None:
            value = classes.value(a)
            if value is None:
                classes.set(a, following - step.imm & classes.mask)
            elif value + step.imm & classes.mask - 1 != following:
                raise Impossible(self.position)
        if step.rd:
            self._write_register(step.rd, classes.known_count(step.size))

    def _do_call(self, step: WindowStep, following: KnownValue) -> None:
        """An ecall or ebreak behind which execution went on without a trap: something else has served it. A semihosting
        call returns a0.
        """
        if following is None:
            return
        pc = self._span.history.pc(self.position)
        is_served = step.op is not None and step.op.name == "ebreak" and self.images[-1].instruction(pc).served
        if not is_served or self.classes.value(self._current[_A0]) not in HOST_READS_ONLY:
            self.accesses.kill(self.position, accesses=True)
        if is_served:
            self._write_register(_A0, self._new(_A0))
        else:
            self._renew(self.position + 1)

    # -- CSRs

    def _do_csr(self, step: WindowStep, following: KnownValue) -> None:
        op = step.op
        assert op is not None
        operation, number = op.name[4], op.imm
        register = CSRS.get(number)
        old = self._new(0) if register is None else self._current[register]
        if operation == "w" or op.rs1:
            source = self.classes.known_count(op.rs1) if op.name[-1] == "i" else self._current[op.rs1]
            self._write_csr(number, source if operation == "w" else None)
        self._write_register(step.rd, old)

    def _write_csr(self, number: int, source: int | None) -> None:
        """Write a CSR. *source*: the node of what is written; None: unknown. Not every CSR holds all values."""
        number = _SWAPPED.get(number, number)
        register = CSRS.get(number)
        if number in (FRM, FCSR):
            node = self._new(0)
            if source is not None:
                shifted = source if number == FRM else self._unary(value_rule("srli", 5, self.xlen), source)
                node = self._unary(value_rule("andi", 7, self.xlen), shifted)
            self._write_register(CSRS[FRM], node)
        elif register is not None:
            keeps = number in (MSCRATCH, SSCRATCH) and source is not None
            self._write_register(register, source if keeps else self._new(register))  # type: ignore[arg-type]
        elif number in _TRANSLATION and source != self._zero:
            self.translated = True

    # -- memory

    def _do_load(self, step: WindowStep, following: KnownValue) -> None:
        node = self.classes.new(step.shape)
        self.accesses.add(LOAD, self.position, self._current[step.a], step.imm, step.size, node, step.form)
        self._write_register(step.rd, node)

    def _do_store(self, step: WindowStep, following: KnownValue) -> None:
        current = self._current
        self.accesses.add(STORE, self.position, current[step.a], step.imm, step.size, current[step.b])

    def _do_sc(self, step: WindowStep, following: KnownValue) -> None:
        node = self._new(0)
        base, source = self._current[step.a], self._current[step.b]
        self.accesses.add_conditional(self.position, base, step.size, source, node)
        self._write_register(step.rd, node)

    def _do_atomic(self, step: WindowStep, following: KnownValue) -> None:
        base, stored = self._current[step.a], self._current[step.b]
        old = self.classes.new(step.shape)
        if step.rule is not None:
            stored = self._binary(step.rule, old, stored)  # type: ignore[arg-type]
        self.accesses.add(LOAD, self.position, base, 0, step.size, old, step.form)
        self.accesses.add(STORE, self.position, base, 0, step.size, stored)
        self._write_register(step.rd, old)

    def _do_fence(self, step: WindowStep, following: KnownValue) -> None:
        if self._span.shared:
            self.accesses.kill(self.position + 1, accesses=False)

    # -- others

    def _do_floating(self, step: WindowStep, following: KnownValue) -> None:
        rule, classes = step.rule, self.classes
        assert isinstance(rule, FloatingRule)
        node = classes.new(step.shape)
        sources = tuple(self._current[register] for register in step.sources)
        nodes = [node, *sources]
        mode = -1
        if rule.is_dynamic:
            mode = self._current[CSRS[FRM]]
            nodes.append(mode)
        classes.constrain((rule.evaluate, node, sources, mode), dict.fromkeys(nodes))
        self._write_register(step.rd, node)

    def _do_undefined(self, step: WindowStep, following: KnownValue) -> None:
        assert step.op is not None
        found = effects(step.op, self.xlen)
        if found.registers is None:
            self._renew(self.position + 1)
        else:
            for register in (*found.registers, *(F0 + it for it in found.floating)):
                self._write_register(register, self._new(register))
        if found.stores:
            self.accesses.kill(self.position, accesses=True)
        elif found.loads:
            self.accesses.add(LOAD, self.position, self._new(0), 0, 1, self._new(0))


def _executed_addresses(history: History, first: int, last: int) -> MutableSequence[int]:
    """Return the addresses at positions, in little memory if none is in the upper half, as those of a kernel are."""
    try:
        return array("q", history.pcs(first, last + 1))
    except OverflowError:
        return list(history.pcs(first, last + 1))

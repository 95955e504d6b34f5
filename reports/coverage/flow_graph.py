"""Where code of a program can lead: a graph of its instructions, for what may have run where a trace has gaps.

The graph has more ways than the program, never fewer, as far as the program says where it can go:

- a branch goes both ways, a call goes to the function and on behind it;
- a return goes behind each call of its function, and of those that jump to it (tail calls);
- an indirect call or jump goes to each function whose address the program has, in its data or in the constants of its
  instructions; an indirect jump also to each instruction of its own function (tables of `switch`), and those that its
  table has, if that is known (`jump_tables`), are named;
- a trap comes anywhere, if the program sets a trap vector or the trace has a trap, and leads to each handler in the
  trace and each function whose address the program has; the return from it leads back, to each place where a trap of
  the trace hit, and to each such function (a task that begins);
- `longjmp` and the unwinder of exceptions lead anywhere, and so does what is no known instruction.
"""

from collections.abc import Iterable, Iterator
from enum import Enum
from itertools import chain

from rvtrace_gdb.decode.coverage import FunctionCode, functions
from rvtrace_gdb.decode.program.image import CodeMissing, Image
from rvtrace_gdb.decode.program.instructions import (
    Instruction,
    IType,
    UndecodableInstruction,
    sequential_target,
)
from rvtrace_gdb.reports.coverage.jump_tables import jump_tables


class Hub(Enum):
    """Nodes that are no instructions: where many ways meet."""

    INDIRECT = "an indirect call or jump"
    AFTER_INDIRECT = "behind an indirect call"
    TRAP = "a trap"
    TRAP_RETURN = "the return from a trap"
    ANYWHERE = "any instruction"


FlowNode = int | Hub | tuple[str, int]
"""An instruction, a hub, or one of a function: ("return", its first address), ("inside", the same)."""
_CALLS = frozenset({IType.INFERABLE_CALL, IType.UNINFERABLE_CALL})
_ESCAPES = ("longjmp", "_longjmp", "siglongjmp", "__longjmp", "_Unwind_")
_SYSTEM, _VECTORS = 0x73, (0x305, 0x105)  # mtvec, stvec


class FlowGraph:
    """The graph of an image's code. *handlers*: addresses that traps led to; *interrupted*: those where traps hit."""

    def __init__(self, image: Image, handlers: Iterable[int] = (), interrupted: Iterable[int] = ()) -> None:
        self._image = image
        self.instructions: dict[int, Instruction] = {}
        """The instructions, by their addresses."""
        self._ways: dict[FlowNode, list[FlowNode]] = {}
        self._back: dict[FlowNode, list[FlowNode]] | None = None
        self._taken: set[int] = set()  # addresses of code that the program has
        self._sets_vector = False
        self._functions = functions(image)
        self._starts = {function.start for function in self._functions}
        self._tables = jump_tables(image, self._functions)
        for function in self._functions:
            self._add_function(function)
        self._add_data()
        self._add_hubs(set(handlers), set(interrupted))

    def reached_from(self, nodes: Iterable[FlowNode]) -> set[FlowNode]:
        """Return the nodes to which some others lead, these included."""
        return self._closure(chain(nodes, (Hub.TRAP,) if self.has_traps else ()), self._ways)

    def leading_to(self, pc: int) -> set[FlowNode] | None:
        """Return the nodes that lead to an instruction, itself included; None: all do."""
        if pc == self._image.entry or pc not in self.instructions:
            return None  # a reset leads there from anywhere
        found = self._closure((pc,), self._backward())
        if not self.has_traps:
            return found
        if Hub.TRAP in found:
            return None  # by a trap anywhere, and the return from it to another task
        return found | self._closure((Hub.TRAP_RETURN,), self._backward())  # to where the trap hit

    def ways(self, pc: int) -> list[FlowNode]:
        """Return where an instruction leads; anywhere, if there is none."""
        return self._ways.get(pc, [Hub.ANYWHERE])

    @staticmethod
    def _closure(nodes: Iterable[FlowNode], ways: dict[FlowNode, list[FlowNode]]) -> set[FlowNode]:
        found: set[FlowNode] = set()
        open_nodes = list(nodes)
        while open_nodes:
            node = open_nodes.pop()
            if node not in found:
                found.add(node)
                open_nodes += ways.get(node, ())
        return found

    def _backward(self) -> dict[FlowNode, list[FlowNode]]:
        if self._back is None:
            self._back = {}
            for node, ways in self._ways.items():
                for way in ways:
                    self._back.setdefault(way, []).append(node)
        return self._back

    def _add_function(self, function: FunctionCode) -> None:
        pc, own = function.start, list[int]()
        uppers: dict[int, int] = {}
        before: tuple[int, Instruction] | None = None
        while pc < function.end:
            try:
                instruction = self._image.instruction(pc)
                code = int.from_bytes(self._image.read(pc, instruction.length), "little")
            except (CodeMissing, UndecodableInstruction):
                break
            own.append(pc)
            self.instructions[pc] = instruction
            self._note_constant(pc, instruction, code, uppers)
            self._ways[pc] = list(self._next(function, pc, instruction, before))
            before = pc, instruction
            pc += instruction.length
        self._ways["inside", function.start] = list(own)
        if function.name.startswith(_ESCAPES):
            self._way(("return", function.start), Hub.ANYWHERE)

    def _next(
        self, function: FunctionCode, pc: int, instruction: Instruction, before: tuple[int, Instruction] | None
    ) -> Iterator[FlowNode]:
        """Yield where an instruction leads, *before*: the one before it."""
        mask, itype = (1 << self._image.xlen) - 1, instruction.itype
        follows = pc + instruction.length
        target = None if instruction.offset is None else pc + instruction.offset & mask
        if target is None and before is not None:
            target = sequential_target(before[1], before[0], instruction, self._image.xlen)
        if itype in _CALLS:
            yield from self._call(target, follows)
        elif itype is IType.RETURN:
            yield "return", function.start
        elif itype is IType.TRAP_RETURN:
            yield Hub.TRAP_RETURN
        elif itype is IType.COROUTINE_SWAP:
            yield from (Hub.INDIRECT, Hub.AFTER_INDIRECT, ("return", function.start))
        elif instruction.is_branch or target is not None:
            yield from self._jump(function, () if target is None else (target,))
            yield from self._jump(function, (follows,) if instruction.is_branch else ())
        elif instruction.is_uninferable:
            yield from (("inside", function.start), Hub.INDIRECT)
            yield from self._tables.get(pc, ())
        else:
            yield from self._jump(function, (follows,))

    def _call(self, target: int | None, follows: int) -> Iterator[FlowNode]:
        yield follows
        if target is None:
            yield Hub.INDIRECT
            self._way(Hub.AFTER_INDIRECT, follows)
        else:
            yield target
            start = self._image.function(target)
            self._way(("return", target if start is None else start), follows)

    def _jump(self, function: FunctionCode, targets: Iterable[int]) -> Iterator[FlowNode]:
        for target in targets:
            yield target
            if not function.start <= target < function.end:  # a tail call: it returns to the same callers
                start = self._image.function(target)
                self._way(("return", target if start is None else start), ("return", function.start))

    def _way(self, source: FlowNode, target: FlowNode) -> None:
        self._ways.setdefault(source, []).append(target)

    def _note_constant(self, pc: int, instruction: Instruction, code: int, uppers: dict[int, int]) -> None:
        """Note an address that lui or auipc and an addition make, and whether a trap vector is set."""
        opcode, rd, rs1, funct3 = code & 0x7F, code >> 7 & 31, code >> 15 & 31, code >> 12 & 7
        if instruction.upper is not None:
            upper = instruction.upper
            uppers[upper.register] = (pc if upper.relative else 0) + upper.value
            return
        value: int | None = None
        if instruction.length == 2 and code & 3 == 1 and code >> 13 == 0:  # c.addi
            value = uppers.get(rd)
            low = (code >> 2 & 31) - (code >> 7 & 32)
        else:
            low = (code >> 20) - (code >> 19 & 0x1000)
            if opcode in (0x13, 0x1B) and funct3 == 0:  # addi, addiw
                value = uppers.get(rs1, 0 if not rs1 else None) if opcode == 0x13 or rs1 else None
            elif opcode == _SYSTEM and funct3 & 3 and code >> 20 in _VECTORS:
                self._sets_vector = True
        if value is not None:
            self._taken.add(value + low & (1 << self._image.xlen) - 1)

    def _add_data(self) -> None:
        """Note the addresses of functions that the words of the program's memory are."""
        width = self._image.xlen // 8
        for start, data in self._image.segments:
            first = -start % width
            end = first + (len(data) - first) // width * width
            words = memoryview(data[first:end]).cast("Q" if width == 8 else "I")
            self._taken |= self._starts.intersection(words)

    def _add_hubs(self, handlers: set[int], interrupted: set[int]) -> None:
        known = sorted(self._taken & self.instructions.keys())
        self.has_traps = self._sets_vector or bool(handlers)
        """Whether traps may come."""
        for start in known:
            self._way(Hub.INDIRECT, start)
            function = self._image.function(start)
            self._way(("return", start if function is None else function), Hub.AFTER_INDIRECT)
        for hub, places in ((Hub.TRAP, handlers), (Hub.TRAP_RETURN, interrupted)):
            self._ways[hub] = [*sorted(places), Hub.INDIRECT]
        self._ways[Hub.ANYWHERE] = list(self.instructions)

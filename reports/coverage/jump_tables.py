"""Jumps through tables, which compilers make of `switch`: where each of them can go, read from the program.

    li     a5,8             # the last index
    bltu   a5,a4,default
    slli   a4,a4,2          # or sh2add, sh3add
    auipc  a5,...           # or lui: the table
    addi   a5,a5,...
    add    a5,a5,a4
    lw     a5,0(a5)         # or lwu, ld
    add    a5,a5,...        # where the entries are distances: from the table
    jr     a5

The code in front of the jump is evaluated (`table_values`). The target has to be what a load from constant memory
gives, with or without a constant that is added; the address of that load has to be the index that was compared before,
times the size of an entry, and a constant. A table is only believed if each of its entries is an instruction of the
function.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator

from rvtrace_gdb.decode.coverage import FunctionCode
from rvtrace_gdb.decode.program.image import CodeMissing, Image
from rvtrace_gdb.decode.program.instructions import Instruction, IType, UndecodableInstruction
from rvtrace_gdb.reports.coverage.table_values import LinearSum, Loaded, TableCode, TableValues

_JUMPS = frozenset({IType.UNINFERABLE_JUMP, IType.UNINFERABLE_TAIL_CALL, IType.OTHER_UNINFERABLE})
_CALLS = frozenset({IType.INFERABLE_CALL, IType.UNINFERABLE_CALL, IType.COROUTINE_SWAP})
_WINDOW = 64  # so many instructions in front of a jump are looked at
_SIZES = {"lw": 4, "lwu": 4, "ld": 8}


def is_table_jump(instruction: Instruction) -> bool:
    """Return whether an instruction may be a jump through a table: an indirect jump that is no call and no return."""
    return instruction.itype in _JUMPS


def jump_tables(image: Image, functions: Iterable[FunctionCode]) -> dict[int, tuple[int, ...]]:
    """Return the different targets of each jump through a table, in rising order, by the address of the jump."""
    code = TableCode(image)
    return {pc: targets for function in functions for pc, targets in _of_function(image, function, code)}


def _of_function(image: Image, function: FunctionCode, code: TableCode) -> Iterator[tuple[int, tuple[int, ...]]]:
    instructions = _instructions(image, function)
    jumps = [pc for pc, instruction in instructions.items() if is_table_jump(instruction)]
    if not jumps:
        return
    sources: defaultdict[int, list[int]] = defaultdict(list)
    for pc, instruction in instructions.items():
        if instruction.offset is not None:
            sources[pc + instruction.offset].append(pc)
    places = list(instructions)
    numbers = {pc: number for number, pc in enumerate(places)}
    for jump in jumps:
        window = places[max(numbers[jump] - _WINDOW, 0) : numbers[jump] + 1]
        targets = _targets(image, _values(window, instructions, sources, code), code, jump)
        if targets and targets <= instructions.keys():
            yield jump, tuple(sorted(targets))


def _instructions(image: Image, function: FunctionCode) -> dict[int, Instruction]:
    found: dict[int, Instruction] = {}
    pc = function.start
    while pc < function.end:
        try:
            found[pc] = image.instruction(pc)
        except (CodeMissing, UndecodableInstruction):
            break
        pc += found[pc].length
    return found


def _values(
    window: list[int], instructions: dict[int, Instruction], sources: dict[int, list[int]], code: TableCode
) -> TableValues:
    """Return the values in front of the last instruction of a window."""
    values = TableValues(code.xlen)
    for number, pc in enumerate(window):
        before, branch = (window[number - back] if number >= back else None for back in (1, 2))
        leading = sources.get(pc, [])
        if before is not None and not _goes_on(instructions[before]):
            if branch is not None and leading == [branch] and instructions[branch].is_branch:
                values.branch(code.at(branch), taken=True)  # a branch over a jump to what is too far for it
            else:
                values.forget()
        elif leading or (before is not None and instructions[before].itype in _CALLS):
            values.forget()
        elif before is not None and instructions[before].is_branch:
            values.branch(code.at(before), taken=False)
        if pc != window[-1]:
            values.execute(pc, code.at(pc), code.written_at(pc))
    return values


def _goes_on(instruction: Instruction) -> bool:
    return instruction.itype is IType.NONE or instruction.is_branch or instruction.itype in _CALLS


def _targets(image: Image, values: TableValues, code: TableCode, jump: int) -> set[int] | None:
    """Return the targets of a jump by the values in front of it, None if they do not tell."""
    operation = code.at(jump)
    target = values.register(operation.rs1).sum_with(LinearSum(operation.imm))
    if len(target.factors) != 1:
        return None
    [(loaded, factor)] = target.factors
    size = _SIZES.get(loaded.name, 0) if isinstance(loaded, Loaded) else 0
    if not isinstance(loaded, Loaded) or factor != 1 or not size:
        return None
    index = loaded.address.divided(size)
    limit = None if index is None else values.limit(index)
    if limit is None:
        return None
    mask = (1 << image.xlen) - 1
    table = loaded.address.constant - size * limit.number.constant & mask
    data = image.constant(table, size * limit.bound)
    if len(data) < size * limit.bound:
        return None
    entries = (data[at : at + size] for at in range(0, len(data), size))
    return {
        target.constant + int.from_bytes(entry, "little", signed=loaded.name != "lwu") & mask & ~1 for entry in entries
    }

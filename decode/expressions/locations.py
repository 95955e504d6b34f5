"""Where a variable is at an instruction, and what is in it, by the debug information.

Source: DWARF 5, 2.5 "DWARF Expressions", 2.6 "Location Descriptions"; RISC-V ELF psABI, "DWARF Register Numbers".
"""

from collections.abc import Callable, Sequence
from operator import inv, neg
from typing import Any, NamedTuple, Protocol

from elftools.dwarf.dwarf_expr import DWARFExprParser
from elftools.dwarf.locationlists import BaseAddressEntry, LocationEntry, LocationExpr, LocationParser

from rvtrace_gdb.decode.expressions.debug_types import completed
from rvtrace_gdb.decode.expressions.variables import DebugVariable
from rvtrace_gdb.decode.program.debug_info import CallFrameInformation

UNAVAILABLE, OPTIMIZED_OUT = "<unavailable>", "<optimized out>"
_STEPS = 1000


class UnknownValue(Exception):
    """A value that is not known. *text*: what is shown instead of it."""

    def __init__(self, text: str = UNAVAILABLE) -> None:
        super().__init__(text)
        self.text = text


class ExpressionMoment(Protocol):
    """What is known before an instruction."""

    pc: int

    def register(self, number: int) -> int | None:
        """Return a register by its number of the debug information; None: unknown."""

    def named_register(self, name: str) -> int | None:
        """Return a register by gdb's name; None: unknown. Raises KeyError: there is none."""

    def memory(self, address: int, size: int) -> Sequence[int | None]:
        """Return each byte of memory; None: unknown."""

    def entry_register(self, number: int) -> int | None:
        """Return a register as it was where the function was entered; None: unknown."""


class VariableContent(NamedTuple):
    """Where a variable is: at an *address* of memory, or it is its *bytes* themselves. *register*: the only one that it
    is in.
    """

    address: int | None
    bytes: Sequence[int | None] = ()
    register: int | None = None


class FixedPlace(NamedTuple):
    """Where a variable is whenever an instruction runs: in a *register*, with an *offset* in memory at so many bytes
    above what the register has; without a register at the address *offset*.
    """

    register: int | None
    offset: int | None


class VariableLocations:
    """The places of variables. Methods raise UnknownValue, and `dwarf_file.ERRORS` for a damaged file."""

    def __init__(self, frames: CallFrameInformation, xlen: int) -> None:
        self._frames, self.xlen, self.mask = frames, xlen, (1 << xlen) - 1
        self._parsed: dict[tuple[int, int, str], Sequence[Any] | None] = {}
        self._rules: dict[int, tuple[int, int] | None] = {}

    def content(self, variable: DebugVariable, size: int, moment: ExpressionMoment) -> VariableContent:
        """Return where a variable of *size* bytes is."""
        constant = next(
            (it.attributes["DW_AT_const_value"] for it in completed(variable.entry)
             if "DW_AT_const_value" in it.attributes), None,
        )  # fmt: skip
        if constant is not None:
            return VariableContent(None, _constant(constant.value, size))
        operations = self._operations(variable, "DW_AT_location", moment.pc)
        if not operations:
            raise UnknownValue(OPTIMIZED_OUT)
        return _StackMachine(self, variable, moment).content(operations, size)

    def fixed_place(self, variable: DebugVariable, pc: int) -> FixedPlace | None:
        """Return where a variable is at an address, None where that takes more than a sum."""
        if any("DW_AT_const_value" in it.attributes for it in completed(variable.entry)):
            return None
        operations = self._operations(variable, "DW_AT_location", pc)
        if not operations or len(operations) != 1:
            return None
        (only,) = operations
        if only.op_name == "DW_OP_addr":
            return FixedPlace(None, (only.args[0] + variable.bias) & self.mask)
        if only.op_name == "DW_OP_fbreg" and variable.function is not None:
            return self._fixed_in_frame(variable._replace(entry=variable.function), only.args[0], pc)
        return _fixed_operation(only)

    def _fixed_in_frame(self, function: DebugVariable, offset: int, pc: int) -> FixedPlace | None:
        """Return the place that DW_OP_fbreg says. *function*: whose frame it is."""
        operations = self._operations(function, "DW_AT_frame_base", pc)
        if not operations or len(operations) != 1:
            return None
        (only,) = operations
        if only.op_name == "DW_OP_call_frame_cfa":
            rule = self._frame_rule(pc)
            return None if rule is None else FixedPlace(rule[0], rule[1] + offset)
        base = _fixed_operation(only)
        return None if base is None else FixedPlace(base.register, (base.offset or 0) + offset)

    def frame_base(self, variable: DebugVariable, moment: ExpressionMoment) -> int | None:
        """Return what DW_OP_fbreg adds to."""
        if variable.function is None:
            raise UnknownValue(OPTIMIZED_OUT)
        function = variable._replace(entry=variable.function)
        operations = self._operations(function, "DW_AT_frame_base", moment.pc)
        if not operations:
            raise UnknownValue(OPTIMIZED_OUT)
        if len(operations) == 1 and operations[0].op_name == "DW_OP_call_frame_cfa":
            return self.frame_address(moment)
        return _StackMachine(self, function, moment).number(operations)

    def frame_address(self, moment: ExpressionMoment) -> int | None:
        """Return the canonical frame address."""
        rule = self._frame_rule(moment.pc)
        base = None if rule is None else moment.register(rule[0])
        return None if rule is None or base is None else base + rule[1] & self.mask

    def _frame_rule(self, pc: int) -> tuple[int, int] | None:
        """Return the register and the offset whose sum is the canonical frame address."""
        if pc not in self._rules:
            found = self._frames.rules_at(pc)
            self._rules[pc] = None if found is None else found.cfa
        return self._rules[pc]

    def _operations(self, variable: DebugVariable, attribute: str, pc: int) -> Sequence[Any] | None:
        entry = next((it for it in completed(variable.entry) if attribute in it.attributes), None)
        if entry is None:
            return None
        key = (entry.offset, pc, attribute)
        if key not in self._parsed:
            self._parsed[key] = self._parsed_location(entry, attribute, pc - variable.bias)
        return self._parsed[key]

    def _parsed_location(self, entry: Any, attribute: str, address: int) -> Sequence[Any] | None:
        unit, dwarf = entry.cu, entry.dwarfinfo
        parser = LocationParser(dwarf.location_lists())
        found = parser.parse_from_attribute(entry.attributes[attribute], unit["version"], entry)
        code: Any = None
        if isinstance(found, LocationExpr):
            code = found.loc_expr
        else:
            code = _code_at(found, unit.get_top_DIE(), address)
        return None if code is None else parsed_operations(unit, code)


def _fixed_operation(operation: Any) -> FixedPlace | None:
    """Return the place that an operation alone says, if it is a register or near what one has."""
    if 0x50 <= operation.op <= 0x6F:
        return FixedPlace(operation.op - 0x50, None)
    if 0x70 <= operation.op <= 0x8F:
        return FixedPlace(operation.op - 0x70, operation.args[0])
    return None


def _code_at(entries: Sequence[Any], top: Any, address: int) -> Any:
    low = top.attributes.get("DW_AT_low_pc")
    base = 0 if low is None else int(low.value)
    for one in entries:
        if isinstance(one, BaseAddressEntry):
            base = one.base_address
        elif isinstance(one, LocationEntry):
            offset = 0 if one.is_absolute else base
            if one.begin_offset + offset <= address < one.end_offset + offset:
                return one.loc_expr
    return None


def parsed_operations(unit: Any, code: Any) -> Sequence[Any]:
    """Return the operations of an expression. Raises UnknownValue for one that is not understood here."""
    try:
        return list(DWARFExprParser(unit.structs).parse_expr(code))
    except KeyError:
        raise UnknownValue("<its location is not understood>") from None


def _constant(value: Any, size: int) -> Sequence[int]:
    if isinstance(value, (bytes, list)):
        return bytes(value)[:size].ljust(size, b"\0")
    return (int(value) & (1 << 8 * size) - 1).to_bytes(size, "little")


def _divided(a: int, b: int) -> int:
    return 0 if not b else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


_BINARY: dict[str, Callable[[int, int], int]] = {
    "plus": lambda a, b: a + b, "minus": lambda a, b: a - b, "mul": lambda a, b: a * b, "and": lambda a, b: a & b,
    "or": lambda a, b: a | b, "xor": lambda a, b: a ^ b, "shl": lambda a, b: a << b if b < 64 else 0,
    "shr": lambda a, b: a >> b, "mod": lambda a, b: a % b if b else 0, "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
}  # fmt: skip
_SIGNED: dict[str, Callable[[int, int], int]] = {
    "shra": lambda a, b: a >> b, "div": _divided, "lt": lambda a, b: a < b, "gt": lambda a, b: a > b,
    "le": lambda a, b: a <= b, "ge": lambda a, b: a >= b,
}  # fmt: skip
_UNARY: dict[str, Callable[[int], int]] = {"abs": abs, "neg": neg, "not": inv}


class _StackMachine:
    """The stack machine of DWARF. A number that is not known is None, and so is what it makes."""

    def __init__(self, locations: VariableLocations, variable: DebugVariable, moment: ExpressionMoment) -> None:
        self._locations, self._variable, self._moment = locations, variable, moment
        self._stack: list[int | None] = []
        self._mask = locations.mask

    def number(self, operations: Sequence[Any]) -> int | None:
        """Return the number that an expression computes."""
        found = self.content(operations, 8)
        if found.register is not None:
            return self._moment.register(found.register)
        return found.address if found.address is not None else _unsigned(found.bytes)

    def content(self, operations: Sequence[Any], size: int) -> VariableContent:
        """Return what an expression describes. Raises UnknownValue."""
        pieces: list[int | None] = []
        is_composed = False
        place: VariableContent | None = None
        at = steps = 0
        while at < len(operations):
            steps += 1
            if steps > _STEPS:
                raise UnknownValue("<its location is not understood>")
            operation = operations[at]
            name, given = operation.op_name.removeprefix("DW_OP_"), operation.args
            at += 1
            if name == "piece":
                is_composed = True
                pieces += self._piece(place, given[0])
                self._stack, place = [], None
            elif 0x50 <= operation.op <= 0x6F or name == "regx":
                place = self._of_register(given[0] if name == "regx" else operation.op - 0x50)
            elif name == "stack_value":
                place = VariableContent(None, _bytes_of(self._pop(), max(size, 8)))
            elif name == "implicit_value":
                place = VariableContent(None, tuple(given[0]))
            elif name in ("skip", "bra"):
                if name == "skip" or self._condition():
                    at = _target(operations, operation, given[0])
            else:
                self._operate(name, operation, given)
        if is_composed:
            return VariableContent(None, _sized(pieces, size))
        if place is not None:
            return place._replace(bytes=_sized(place.bytes, size))
        address = self._pop()
        if address is None:
            raise UnknownValue
        return VariableContent(address & self._mask)

    def _piece(self, place: VariableContent | None, size: int) -> Sequence[int | None]:
        if place is not None:
            return _sized(place.bytes, size)
        if not self._stack:
            raise UnknownValue(OPTIMIZED_OUT)
        address = self._pop()
        return [None] * size if address is None else self._moment.memory(address & self._mask, size)

    def _of_register(self, number: int) -> VariableContent:
        return VariableContent(None, _bytes_of(self._moment.register(number), 8), number)

    def _pop(self) -> int | None:
        if not self._stack:
            raise UnknownValue("<its location is not understood>")
        return self._stack.pop()

    def _condition(self) -> bool:
        value = self._pop()
        if value is None:
            raise UnknownValue
        return bool(value)

    def _push(self, value: int | None) -> None:
        self._stack.append(None if value is None else int(value) & self._mask)

    def _as_signed(self, value: int | None) -> int | None:
        return value - self._mask - 1 if value is not None and value > self._mask >> 1 else value

    def _operate(self, name: str, operation: Any, given: Sequence[Any]) -> None:
        moment, op = self._moment, operation.op
        if 0x70 <= op <= 0x8F:
            self._push(_sum(moment.register(op - 0x70), given[0], self._mask))
        elif name == "bregx":
            self._push(_sum(moment.register(given[0]), given[1], self._mask))
        elif name == "fbreg":
            self._push(_sum(self._locations.frame_base(self._variable, moment), given[0], self._mask))
        elif name == "call_frame_cfa":
            self._push(self._locations.frame_address(moment))
        elif 0x30 <= op <= 0x4F:
            self._push(op - 0x30)
        elif name == "addr":
            self._push(given[0] + self._variable.bias)
        elif (name.startswith("const") and name[5:6].isdecimal()) or name in ("constu", "consts"):
            self._push(given[0])
        elif name == "plus_uconst":
            self._push(_sum(self._pop(), given[0], self._mask))
        elif name in _BINARY:
            b, a = self._pop(), self._pop()
            self._push(None if a is None or b is None else _BINARY[name](a, b))
        elif name in _SIGNED:
            b, a = self._as_signed(self._pop()), self._as_signed(self._pop())
            self._push(None if a is None or b is None else _SIGNED[name](a, b))
        elif name in ("entry_value", "GNU_entry_value"):
            self._push(self._entry_value(given[0]))
        else:
            self._rearrange(name, given)

    def _entry_value(self, operations: Sequence[Any]) -> int | None:
        if len(operations) == 1 and 0x50 <= operations[0].op <= 0x6F:
            value = self._moment.entry_register(operations[0].op - 0x50)
            if value is not None:
                return value
        raise UnknownValue(OPTIMIZED_OUT)

    def _rearrange(self, name: str, given: Sequence[Any]) -> None:
        stack = self._stack
        if name == "dup":
            stack.append(stack[-1])
        elif name == "drop":
            self._pop()
        elif name == "over":
            stack.append(stack[-2])
        elif name == "pick":
            stack.append(stack[-1 - given[0]])
        elif name == "swap":
            stack[-1], stack[-2] = stack[-2], stack[-1]
        elif name == "rot":
            stack[-3:] = [stack[-1], stack[-3], stack[-2]]
        elif name in ("deref", "deref_size"):
            address, size = self._pop(), given[0] if given else self._locations.xlen // 8
            self._push(None if address is None else _unsigned(self._moment.memory(address & self._mask, size)))
        elif name in ("abs", "neg", "not"):
            value = self._pop()
            self._push(None if value is None else _UNARY[name](self._as_signed(value) or 0))
        elif name != "nop":
            raise UnknownValue("<its location is not understood>")


def _sum(value: int | None, offset: int, mask: int) -> int | None:
    return None if value is None else value + offset & mask


def _bytes_of(value: int | None, size: int) -> Sequence[int | None]:
    return [None] * size if value is None else (value & (1 << 8 * size) - 1).to_bytes(size, "little")


def _unsigned(content: Sequence[int | None]) -> int | None:
    known = [it for it in content if it is not None]
    return int.from_bytes(known, "little") if len(known) == len(content) else None


def _sized(content: Sequence[int | None], size: int) -> Sequence[int | None]:
    return [*content[:size], *([None] * (size - len(content)))]


def _target(operations: Sequence[Any], operation: Any, distance: int) -> int:
    """Return the number of the operation that a branch leads to."""
    offset = operation.offset + 3 + distance
    found = next((at for at, it in enumerate(operations) if it.offset == offset), None)
    if found is None and operations and offset <= operations[-1].offset:
        raise UnknownValue("<its location is not understood>")
    return len(operations) if found is None else found

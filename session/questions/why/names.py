"""What a program calls things: source lines, functions, and the variables that are in registers and in memory."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rvtrace_gdb.decode.expressions.debug_types import text_of
from rvtrace_gdb.decode.expressions.evaluator import Evaluator, NoSymbol
from rvtrace_gdb.decode.expressions.formatting import Formatter
from rvtrace_gdb.decode.expressions.locations import FixedPlace, UnknownValue, VariableContent
from rvtrace_gdb.decode.expressions.parts import ValuePart, innermost_part, parts_of
from rvtrace_gdb.decode.expressions.syntax import BadExpression, VariableName
from rvtrace_gdb.decode.expressions.types import Array, FunctionType, Struct, ValueType, is_scalar, size_of, stripped
from rvtrace_gdb.decode.expressions.values import TypedValue
from rvtrace_gdb.decode.expressions.variables import DebugVariable
from rvtrace_gdb.decode.history.history import GAP
from rvtrace_gdb.decode.program.csrs import F, X
from rvtrace_gdb.decode.program.dwarf_file import ERRORS
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.program.names.function_symbols import did_you_mean, names_of
from rvtrace_gdb.decode.tandem.wording import X as X_NAMES
from rvtrace_gdb.decode.tandem.wording import register_name
from rvtrace_gdb.reports.program_sources import ProgramSources
from rvtrace_gdb.session.questions.moment import PastMoment, UnknownPast
from rvtrace_gdb.session.questions.why.trace import TracedPast
from rvtrace_gdb.support.text import printable

_VARIABLES = ("DW_TAG_variable", "DW_TAG_formal_parameter")
_SP = X + 2
_PLAIN_NAME = re.compile(r"[\w.\[\]>-]+")
_UNREADABLE: tuple[type[Exception], ...] = (BadExpression, UnknownValue, *ERRORS)


class PartName(NamedTuple):
    """A variable, or the part of one that is meant: `cal.gain[3]`; *type*: of the part, None: not known."""

    text: str
    type: ValueType | None = None


class WrittenPart(NamedTuple):
    """A part of what an expression means, with its type. *offset*: of its first byte."""

    text: str
    type: ValueType
    offset: int


def _part_name(text: str, suffix: str) -> str:
    return f"{text if not suffix or _PLAIN_NAME.fullmatch(text) else f'({text})'}{suffix}"


class LocalVariable(NamedTuple):
    """A variable of a function. *fixed*: where it is at an instruction; None: that depends on more."""

    name: str
    variable: DebugVariable
    fixed: FixedPlace | None


class ProgramNames:
    """The names in a history. *sources*: whether the text of source lines is shown."""

    def __init__(self, trace: TracedPast, *, sources: bool = True) -> None:
        self._trace, self._history, self._with_text = trace, trace.history, sources
        self._sources: dict[int, tuple[Image, ProgramSources]] = {}
        self._evaluators: dict[int, tuple[Image, Evaluator]] = {}
        self._lines: dict[tuple[int, int], str] = {}
        self._readable: dict[int, bool] = {}  # of images, that `_sources` has
        self._known_locals: dict[tuple[int, int], Sequence[LocalVariable]] = {}

    @property
    def xlen(self) -> int:
        """Bits of a register."""
        return self._trace.program.base.xlen

    def instruction_address(self, position: int) -> int:
        """Return the address of an instruction; at the end of the history, where the hart is then; GAP: not known."""
        if position < len(self._history):
            return self._history.pc(position)
        past = self._trace.past
        return GAP if past is None else past.registers(position).get("pc", GAP)

    # -- lines

    def source_line(self, position: int) -> str:
        """Return file:line of an instruction, "" if that is not known."""
        pc, image = self.instruction_address(position), self._trace.image_at(position)
        if pc == GAP:
            return ""
        key = id(image), pc
        if key not in self._lines:
            self._lines[key] = self._source(image).place(pc)
        return self._lines[key]

    def text(self, position: int) -> str:
        """Return the text of the source line of an instruction, "" if that is not known."""
        return self._source(self._trace.image_at(position)).line_text(self.instruction_address(position))

    def is_own(self, position: int) -> bool:
        """Return whether an instruction is of code that the user sees: its source line is known, and, where the sources
        of `main` can be read, its own can be, too.
        """
        if not self.source_line(position):
            return False
        return bool(self.text(position)) or not self._has_sources(self._trace.image_at(position))

    def _has_sources(self, image: Image) -> bool:
        if id(image) not in self._readable:
            mains = image.symbols_named("main")
            self._readable[id(image)] = any(self._source(image).line_text(address) for address, _ in mains)
        return self._readable[id(image)]

    def function_name(self, position: int) -> str:
        """Return the function of an instruction, "" without a symbol."""
        found = self._trace.image_at(position).symbol(self.instruction_address(position))
        return "" if found is None else found[0]

    def _source(self, image: Image) -> ProgramSources:
        found = self._sources.get(id(image))
        if found is None:
            found = self._sources[id(image)] = image, ProgramSources(image, shown=self._with_text)
        return found[1]

    # -- variables

    def register(self, position: int, number: int) -> PartName | None:
        """Return the variable that is in a register before the instruction at a position."""
        wanted = number - X if X <= number < F + 32 else -1
        for local in self._locals(position):
            if local.fixed is not None:
                is_there = local.fixed.offset is None and local.fixed.register == wanted
            else:
                content = self._local_content(position, local)
                is_there = content is not None and content.register == wanted
            if is_there:
                return PartName(local.name, local.variable.type)
        return None

    def register_text(self, number: int) -> str:
        """Return the name of a register."""
        return X_NAMES[number - X] if X <= number < F else register_name(number).split(" ")[0]

    def variable(self, position: int, address: int, size: int, sp: int | None = None) -> PartName | None:
        """Return the variable, or the part of one, that some bytes are, as the instruction at a position sees it. *sp*:
        the stack pointer there, if it is known already.
        """
        for local in self._locals(position):
            begin = self._local_address(position, local, sp)
            offset = None if begin is None else address - begin
            if offset is not None and 0 <= offset < size_of(local.variable.type):
                return _part(PartName(local.name, local.variable.type), offset, size)
        return self._static(position, address, size)

    def _local_address(self, position: int, local: "LocalVariable", sp: int | None) -> int | None:
        """Return where a local variable is in memory; None: it is not there."""
        place = local.fixed
        if place is None:
            content = self._local_content(position, local)
            return None if content is None else content.address
        if place.offset is None:
            return None
        if place.register is None:
            return place.offset
        base = sp if place.register == _SP - X and sp is not None else self._moment(position).register(place.register)
        mask = self._evaluator(self._trace.image_at(position)).locations.mask
        return None if base is None else base + place.offset & mask

    def _local_content(self, position: int, local: "LocalVariable") -> VariableContent | None:
        evaluator = self._evaluator(self._trace.image_at(position))
        try:
            return _variable_content(evaluator, local.variable, self._moment(position))
        except ERRORS:
            return None

    def place(self, position: int, address: int, size: int) -> PartName:
        """Return what some bytes are called: a variable, an object without debug information, or an address."""
        found = self.variable(position, address, size)
        if found is not None:
            return found
        image = self._trace.image_at(position)
        symbol = image.symbol(address)
        if symbol is None:
            return PartName(f"memory at {address:#x}")
        return PartName(f"{symbol[0]}+{symbol[1]}" if symbol[1] else symbol[0])

    def _locals(self, position: int) -> Sequence["LocalVariable"]:
        """Return the local variables that an instruction sees, from the inside out."""
        image, pc = self._trace.image_at(position), self.instruction_address(position)
        key = id(image), pc
        if key not in self._known_locals:
            self._known_locals[key] = list(self._read_locals(self._evaluator(image), pc))
        return self._known_locals[key]

    def _read_locals(self, evaluator: Evaluator, pc: int) -> Iterator["LocalVariable"]:
        try:
            scope = evaluator.program.scope_at(pc)
            for block in scope.blocks if scope is not None else ():
                for entry in block.iter_children():
                    if scope is not None and entry.tag in _VARIABLES and "DW_AT_declaration" not in entry.attributes:
                        variable = DebugVariable(entry, scope.unit.types.of(entry), scope.concrete, scope.unit.bias)
                        fixed = _fixed_place(evaluator, variable, pc)
                        yield LocalVariable(text_of(entry, "DW_AT_name"), variable, fixed)
        except ERRORS:
            return

    def _static(self, position: int, address: int, size: int) -> PartName | None:
        """Return the variable at an address that has one place all the time."""
        image = self._trace.image_at(position)
        symbol = image.symbol(address)
        if symbol is None:
            return None
        name = symbol[0].partition(".")[0]
        evaluator = self._evaluator(image)
        try:
            found = evaluator.program.lookup(name, evaluator.program.scope_at(self.instruction_address(position)))
            if not isinstance(found, DebugVariable):
                return None
            moment = self._moment(position)
            content = _variable_content(evaluator, found, moment)
        except ERRORS:
            return None
        offset = -1 if content is None or content.address is None else address - content.address
        return _part(PartName(name, found.type), offset, size) if 0 <= offset < size_of(found.type) else None

    def expression(self, position: int, text: str) -> "int | tuple[int, int]":
        """Return where an expression of the program has its value before the instruction at a position: the number of a
        register, or (address, size). Raises BadExpression.
        """
        image, moment = self._trace.image_at(position), self._moment(position)
        evaluator = self._evaluator(image)
        try:
            node = evaluator.parsed(text, evaluator.program.scope_at(moment.pc))
            for local in self._locals(position) if isinstance(node, VariableName) else ():
                content = self._local_content(position, local)
                named = isinstance(node, VariableName) and local.name == node.name
                if named and content is not None and content.register is not None:
                    return X + content.register
            found = evaluator.value(node, moment)
        except NoSymbol as error:
            near = did_you_mean(error.name, (*names_of(image), *(it.name for it in self._locals(position))))
            raise NoSymbol(error.name, near) from None
        except UnknownValue as unknown:
            raise BadExpression(f"its place is not known here ({unknown.text.strip('<>')})") from None
        if isinstance(stripped(found.type), FunctionType):
            raise BadExpression("it is a function, and has no value")
        if found.address is None or found.bits is not None:
            raise BadExpression("it is a value, not something that has been written")
        return found.address, max(size_of(found.type), 1)

    def written_part(self, position: int, text: str, offset: int, size: int) -> WrittenPart | None:
        """Return the innermost part that has some bytes of what an expression means: a structure or an array; None: it
        means neither, or that is not known.
        """
        kind = self._type_in_memory(position, text)
        if not isinstance(kind, (Array, Struct)):
            return None
        part = innermost_part(kind, offset, size, into_unions=False)
        return WrittenPart(_part_name(text, part.suffix), part.type, part.offset)

    def parts(self, position: int, text: str, most: int) -> tuple[list[ValuePart], int]:
        """Return the elements or members of what an expression means, *most* of them, and how many more there are; the
        suffix of each is its whole name.
        """
        kind = self._type_in_memory(position, text)
        found, more = ([], 0) if kind is None else parts_of(kind, most)
        return [it._replace(suffix=printable(_part_name(text, it.suffix))) for it in found], more

    def _type_in_memory(self, position: int, text: str) -> ValueType | None:
        """Return the type of what an expression means; None: it is not in memory, or that is not known."""
        evaluator, moment = self._evaluator(self._trace.image_at(position)), self._moment(position)
        try:
            found = evaluator.value(evaluator.parsed(text, evaluator.program.scope_at(moment.pc)), moment)
            return None if found.address is None else evaluator.complete(stripped(found.type))
        except _UNREADABLE:
            return None

    def content_text(self, position: int, kind: ValueType, content: Sequence[int | None]) -> str | None:
        """Return bytes as gdb prints a member of a type; None: its type is not understood."""
        evaluator = self._evaluator(self._trace.image_at(position))
        try:
            value, moment = TypedValue(kind, content=content), self._moment(position)
            return Formatter(evaluator).text(value, moment, is_member=True)[0]
        except _UNREADABLE:
            return None

    def is_on_stack(self, position: int, address: int) -> bool | None:
        """Return whether an address is in the frame of the function that runs at a position; None: not known."""
        evaluator = self._evaluator(self._trace.image_at(position))
        moment = self._moment(position)
        low = self._trace.register_value(position, _SP)
        try:
            high = evaluator.locations.frame_address(moment)
        except _UNREADABLE:
            return None
        return None if low is None or high is None else low <= address < high

    def _moment(self, position: int) -> PastMoment:
        """Return what is known before the instruction at a position."""
        past = self._trace.past
        return PastMoment(UnknownPast() if past is None else past, position, self.instruction_address(position))

    def _evaluator(self, image: Image) -> Evaluator:
        found = self._evaluators.get(id(image))
        if found is None:
            found = self._evaluators[id(image)] = image, Evaluator(image)
        return found[1]

    # -- values

    def value_text(self, position: int, value: int, size: int, kind: ValueType | None) -> str:
        """Return a value of *size* bytes as text: as gdb prints it, if its type is known."""
        content = (value & (1 << 8 * size) - 1).to_bytes(size, "little")
        if kind is not None and is_scalar(kind) and size_of(kind) <= size:
            evaluator = self._evaluator(self._trace.image_at(position))
            try:
                moment = self._moment(position)
                return Formatter(evaluator).text(TypedValue(kind, content=content[: size_of(kind)]), moment)[0]
            except _UNREADABLE:
                pass
        number = int.from_bytes(content, "little", signed=True)
        return str(number) if abs(number) < _MOST_DECIMAL else f"{value & (1 << 8 * size) - 1:#x}"


_MOST_DECIMAL = 100_000


def _fixed_place(evaluator: Evaluator, variable: DebugVariable, pc: int) -> FixedPlace | None:
    try:
        return evaluator.locations.fixed_place(variable, pc)
    except UnknownValue:
        return None


def _variable_content(evaluator: Evaluator, variable: DebugVariable, moment: PastMoment) -> VariableContent | None:
    try:
        return evaluator.locations.content(variable, size_of(variable.type), moment)
    except UnknownValue:
        return None


def _part(variable: PartName, offset: int, size: int) -> PartName:
    """Return the innermost member or element that has some bytes."""
    if variable.type is None:
        return variable if not offset else PartName(f"{variable.text}{_bytes_text(offset, size)}")
    part = innermost_part(variable.type, offset, size)
    inside, text = offset - part.offset, f"{variable.text}{part.suffix}"
    if inside or size < size_of(part.type):
        return PartName(f"{text}{_bytes_text(inside, size)}")
    return PartName(text, part.type)


def _bytes_text(offset: int, size: int) -> str:
    end = f"..{offset + size - 1}" if size > 1 else ""
    return f" (byte {offset}{end})"

"""The registers of a component as text: each value, its fields, and their meaning.

trTeControl 0x0131006f: trTeActive=1 trTeEnable=1 trTeInstTracing=1 trTeEmpty=1 trTeInstMode=6 (htm) ...

The values are read from a component (`read`) or come from a capture.
"""

from collections.abc import Iterator, Mapping

from rvtrace_gdb.controlregs.component import Component
from rvtrace_gdb.controlregs.errors import ComponentAccess
from rvtrace_gdb.controlregs.fields import Compliance, Field, FieldSet, Register, RegisterBlock
from rvtrace_gdb.support.errors import Progress, silent

Values = Mapping[int, int | str]
"""Register values by offset. A text says why the register could not be read."""
_WIDE = 12  # fields of more bits are written in hexadecimal


def read(component: Component, progress: Progress = silent) -> dict[int, int | str]:
    """Return the present values of all registers of the component except ports, since reading a port has side effects.

    Of a component held in reset only the control register is read: the others are unspecified (1.0, "Trace Component
    Register Map"). A register that is refused becomes text. Raises the transport's errors when the target cannot be
    reached.
    """
    block = component.block
    control = _register_value(component, block.control)
    values = {block.control.offset: control}
    if isinstance(control, str) or _in_reset(block, control):
        return values
    registers = [register for register in block.registers if not register.port]
    for done, register in enumerate(registers):
        progress(f"reading registers of {component.name} (registers)", done, len(registers))
        if register is not block.control:
            values[register.offset] = _register_value(component, register)
    return values


def _in_reset(block: RegisterBlock, control: int) -> bool:
    """Return whether Active is 0; components of CoreSight have no such bit."""
    active = block.prefix + "Active"
    return active in block.control.by_name and not block.control.get(control, active)


def dump(block: RegisterBlock, values: Values, everything: bool = False) -> list[str]:
    """Return a line for each register in *values*, in the order of their offsets.

    Filters, comparators and other optional registers that are 0 are left out unless *everything* is set.
    """
    return [
        describe(block, offset, value)
        for offset, value in sorted(values.items())
        if everything or value != 0 or _is_required(block, offset)
    ]


def describe(block: RegisterBlock, offset: int, value: int | str) -> str:
    """Return one line for a register."""
    register = block.by_offset.get(offset)
    name = register.name if register else f"{offset:#05x}"
    if isinstance(value, str):
        return f"{name}: {value}"
    said = " ".join(field_texts(register, value)) if register else f"not a register of a {block.name}"
    return f"{name} {value:#010x}" + (f": {said}" if said else "")


def field_texts(register: FieldSet, value: int) -> Iterator[str]:
    """Return the fields of the register as text, LSB first; nothing where the value itself is enough."""
    for name, n in register.unpack(value).items():
        field = register.by_name[name]
        meaning = field.meaning(n)
        if meaning or len(register.by_name) > 1:
            yield f"{name}={_number_text(field, n)}" + (f" ({meaning})" if meaning else "")
    unnamed = value & ~register.mask(*register.by_name)
    if unnamed:
        yield f"reserved={unnamed:#x}"


def _number_text(field: Field, value: int) -> str:
    return f"{value * field.unit:#x}" if field.width > _WIDE else str(value)


def _is_required(block: RegisterBlock, offset: int) -> bool:
    register = block.by_offset.get(offset)
    return register is not None and register.compliance is Compliance.REQUIRED


def _register_value(component: Component, register: Register) -> int | str:
    try:
        return component.read(register)
    except ComponentAccess as error:
        return f"cannot be read: {error.cause}"

"""Registers as data: bit fields are declared LSB first, and their widths are checked when the table is imported.

A table module declares `Register`s and one `RegisterBlock` for each kind of component, or the `Csr`s of a hart, under
the names of its document. Everything else (access, dumps, the storage of the simulated devices, documentation) is
derived from these objects. Registers that a component has several times are declared once and repeated for each unit
(`repeat_registers`). The meaning of a field without named codes is given by a function from value to text (`bit_list`,
`period`, `clock_divider`), which goes into `Field.describe`. Classes that keep registers as read back name the fields
that are settings (`RegisterField`).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, IntEnum
from typing import Generic, TypeVar

from rvtrace_gdb.support.errors import RvtraceError

REGISTER_BITS = 32
BLOCK_BYTES = 0x1000
CSRS = 0x1000
XLEN_MAX = 64
FieldValue = TypeVar("FieldValue")


class FieldAccess(Enum):
    """What software can do with a field, according to the document's access column."""

    RO = "RO"
    RW = "RW"
    RW1C = "RW1C"  # sticky flag: writing 1 clears it
    RW0C = "RW0C"  # sticky flag: writing 0 clears it
    W1 = "W1"  # writing 1 starts an action; reads 0
    WARL = "WARL"  # may be hard-wired or limited: believe only what is read back
    R_OR_RW = "R or RW"  # reading is required, writing an option of the implementation


class Reset(Enum):
    """Reset values that are not a number."""

    UNDEFINED = "undef"  # whatever: the tool must initialise it
    CONSTANT = "sd"  # fixed by the implementation
    NONE = "none"  # nothing is stored


class Compliance(Enum):
    REQUIRED = "required"
    OPTIONAL = "optional"


class FieldRange(RvtraceError):
    """A value that does not fit the field it is meant for."""

    def __init__(self, field_name: str, value: int, width: int) -> None:
        self.field_name, self.value, self.width = field_name, value, width
        super().__init__(
            f"{value} does not fit {field_name}, which has {width} bit{'s' * (width > 1)}: give 0 to {(1 << width) - 1}"
        )


@dataclass(frozen=True, eq=False)
class Field:
    """One bit field. *name* None: reserved bits, written 0. *values* names the codes; codes it lacks are reserved.

    *describe* returns the meaning of a value where names of codes do not. A value counts *unit*s: 4 for an address
    without its lowest two bits.
    """

    name: str | None
    width: int
    access: FieldAccess = FieldAccess.WARL
    reset: int | Reset = Reset.UNDEFINED
    doc: str = ""
    values: type[IntEnum] | None = None
    describe: Callable[[int], str] | None = None
    unit: int = 1

    def value_name(self, value: int) -> str:
        """Return the name of a code in lower case; the number itself where the document gives no name."""
        names = {int(code): code.name.lower() for code in self.values or ()}
        return names.get(value, str(value))

    def meaning(self, value: int) -> str:
        """Return the meaning of a value in a few words; empty where the number is enough."""
        if self.describe is not None:
            return self.describe(value)
        name = self.value_name(value)
        if name != str(value):
            return name
        return "reserved" if self.values else ""


def reserved(width: int) -> Field:
    """Return a field of *width* bits that may read as anything and are written 0."""
    return Field(None, width, FieldAccess.RO, Reset.NONE, "reserved, write 0")


class FieldSet:
    """A value made of bit fields, independent of where it is stored. Subclasses are dataclasses and declare the
    attributes.
    """

    name: str
    doc: str
    fields: tuple[Field, ...]
    by_name: Mapping[str, Field]
    _lsb: Mapping[str, int]

    def _compute_positions(self, *widths: int) -> None:
        """Compute the position of each field. Raises ValueError if the table is inconsistent or has none of these
        widths in bits.
        """
        if self.bits not in widths:
            wanted = " or ".join(map(str, widths))
            raise ValueError(f"the fields of {self.name} have {self.bits} bits, not {wanted}")
        lsb: dict[str, int] = {}
        position = 0
        for f in self.fields:
            if f.name is not None:
                if f.name in lsb:
                    raise ValueError(f"{self.name} declares {f.name} twice")
                lsb[f.name] = position
            position += f.width
        object.__setattr__(self, "_lsb", lsb)
        object.__setattr__(self, "by_name", {f.name: f for f in self.fields if f.name is not None})

    @property
    def bits(self) -> int:
        """The width of the value in bits."""
        return sum(f.width for f in self.fields)

    def lsb(self, name: str) -> int:
        """Return the position of the field's lowest bit."""
        return self._lsb[name]

    def mask(self, *names: str) -> int:
        """Return a mask with ones in the bits of the named fields."""
        return sum(((1 << self.by_name[name].width) - 1) << self._lsb[name] for name in names)

    def get(self, value: int, name: str) -> int:
        """Return the field *name* of a register value, right-aligned."""
        return (value >> self._lsb[name]) & ((1 << self.by_name[name].width) - 1)

    def put(self, value: int, name: str, field_value: int) -> int:
        """Return *value* with one field replaced. Raises FieldRange."""
        width = self.by_name[name].width
        if not 0 <= field_value < 1 << width:
            raise FieldRange(name, field_value, width)
        return (value & ~self.mask(name)) | field_value << self._lsb[name]

    def pack(self, **fields: int) -> int:
        """Return a register value with these fields set and all others 0. Raises FieldRange."""
        value = 0
        for name, field_value in fields.items():
            value = self.put(value, name, field_value)
        return value

    def unpack(self, value: int) -> dict[str, int]:
        """Return all named fields of a register value, LSB first."""
        return {name: self.get(value, name) for name in self._lsb}

    def mask_of(self, *access: FieldAccess) -> int:
        """Return a mask with ones in the bits of all fields with these kinds of access."""
        return self.mask(*(name for name, f in self.by_name.items() if f.access in access))

    @property
    def reset_value(self) -> int:
        """The defined part of the value after reset; bits the document leaves open are 0."""
        return self.pack(**{name: f.reset for name, f in self.by_name.items() if isinstance(f.reset, int)})


@dataclass(frozen=True, eq=False)
class Register(FieldSet):
    """A 32-bit register: its offset in the component's 4 KiB block and its fields, LSB first, reserved bits included.

    A *port* holds no setting: data goes through it. It is never read just to show its value.
    """

    name: str
    offset: int
    compliance: Compliance
    doc: str
    fields: tuple[Field, ...]
    port: bool = False
    by_name: Mapping[str, Field] = field(init=False, repr=False)
    _lsb: Mapping[str, int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._compute_positions(REGISTER_BITS)
        if self.offset % 4 or not 0 <= self.offset < BLOCK_BYTES:
            raise ValueError(f"{self.name} cannot be at offset {self.offset:#x}")


@dataclass(frozen=True, eq=False)
class Csr(FieldSet):
    """A control and status register of a hart: its number and its fields, LSB first, reserved bits included.

    A CSR that is as wide as the hart (*wide*) is declared with 64 bits; on RV32 it has the low half of them.
    """

    name: str
    number: int
    doc: str
    fields: tuple[Field, ...]
    wide: bool = False
    by_name: Mapping[str, Field] = field(init=False, repr=False)
    _lsb: Mapping[str, int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._compute_positions(*((XLEN_MAX,) if self.wide else (REGISTER_BITS, XLEN_MAX)))
        if not 0 <= self.number < CSRS:
            raise ValueError(f"{self.name} cannot be CSR {self.number:#x}")


@dataclass(frozen=True, eq=False)
class IndirectRegister(FieldSet):
    """A register of 64 bits that is accessed through other registers, such as a word of a CTR entry."""

    name: str
    doc: str
    fields: tuple[Field, ...]
    by_name: Mapping[str, Field] = field(init=False, repr=False)
    _lsb: Mapping[str, int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._compute_positions(XLEN_MAX)


@dataclass(frozen=True, eq=False)
class RegisterBlock:
    """The registers of one kind of component. *prefix* begins the names of registers and fields.

    *comp_type* is its tr??CompType, 0 where tr??Impl has no such field (pre-ratification interfaces).
    """

    name: str
    prefix: str
    comp_type: int
    registers: tuple[Register, ...]
    by_name: Mapping[str, Register] = field(init=False, repr=False)
    by_offset: Mapping[int, Register] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        by_name = {r.name: r for r in self.registers}
        by_offset = {r.offset: r for r in self.registers}
        if not len(by_name) == len(by_offset) == len(self.registers):
            raise ValueError(f"{self.name}: two registers share a name or an offset")
        object.__setattr__(self, "by_name", by_name)
        object.__setattr__(self, "by_offset", by_offset)

    @property
    def control(self) -> Register:
        """tr??Control, at offset 0 in every component."""
        return self.by_name[self.prefix + "Control"]

    @property
    def impl(self) -> Register:
        """tr??Impl, at offset 4 in every component."""
        return self.by_name[self.prefix + "Impl"]


ValueText = Callable[[int], str]
"""A function that returns the meaning of a field's value."""


def one_more(value: int) -> int:
    """Return the number that a field stands for which holds one less."""
    return value + 1


class RegisterField(Generic[FieldValue]):
    """An attribute of a class that keeps registers as read back: the value of one field of one of them.

    *within*: the attribute that has the register. *to*: what the attribute is, made of the field's value.
    """

    def __init__(self, register: FieldSet, name: str, within: str, to: Callable[[int], FieldValue]) -> None:
        self._register, self._name, self._within, self._to = register, name, within, to

    def __get__(self, instance: object, owner: type) -> FieldValue:
        return self._to(self._register.get(getattr(instance, self._within), self._name))


def bit_list(noun: str = "", names: Mapping[int, str] | None = None, none: str = "") -> ValueText:
    """Describe a mask as the list of its ones, by *names* or by number: "filters 0, 3". *none* is the text for 0."""

    def read(value: int) -> str:
        ones = [n for n in range(value.bit_length()) if value >> n & 1]
        if not ones:
            return none
        plural = noun + "s" if noun and len(ones) > 1 else noun
        return f"{plural} {', '.join((names or {}).get(n, str(n)) for n in ones)}".strip()

    return read


def period(exponent: int) -> ValueText:
    """Describe a period of 2**(value + *exponent*) units."""
    return lambda value: f"every {1 << value + exponent}"


def clock_divider(value: int) -> str:
    """Describe a clock divider: the input clock over value + 1."""
    return f"clock / {value + 1}"


def repeat_registers(count: int, stride: int, registers: Sequence[Register]) -> tuple[tuple[Register, ...], ...]:
    """Return the registers of *count* units that lie *stride* bytes apart.

    *registers* are those of unit 0, with {} in names and docs in place of the unit's number.
    """
    return tuple(tuple(_again(register, n, n * stride) for register in registers) for n in range(count))


def _again(register: Register, n: int, distance: int) -> Register:
    return replace(
        register, name=register.name.format(n), doc=register.doc.format(n), offset=register.offset + distance
    )

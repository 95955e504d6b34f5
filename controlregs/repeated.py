"""Registers that a component has several times: declared once, made for each unit."""

from collections.abc import Sequence
from dataclasses import replace

from rvtrace_gdb.controlregs.fields import Register


def units(count: int, stride: int, registers: Sequence[Register]) -> tuple[tuple[Register, ...], ...]:
    """The registers of *count* units that lie *stride* bytes apart.

    *registers* are those of unit 0, with {} in names and docs where the number of the unit goes.
    """
    return tuple(tuple(_again(register, n, n * stride) for register in registers) for n in range(count))


def _again(register: Register, n: int, distance: int) -> Register:
    return replace(
        register, name=register.name.format(n), doc=register.doc.format(n), offset=register.offset + distance
    )

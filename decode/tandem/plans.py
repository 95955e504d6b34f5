"""What to do with a group, by its shape: most groups have a shape whose fields can be taken as they are unpacked."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from rvtrace_gdb.decode.tandem.layout import STORE_DATA, Form, Opcode, State
from rvtrace_gdb.decode.tandem.shapes import Shape

FULL, INCREMENT, NONE = range(3)
"""How a group tells the pc."""


class Plan(NamedTuple):
    """Where the fields of a plain group are among those unpacked, -1 for what it does not have.

    unpack     all fields, from the trace and an offset
    pc_kind    FULL, INCREMENT or NONE
    pc, word, address, data
    registers  (number, value) of each
    length     of the instruction, in bytes
    size       of the store data, in bytes
    physical   the address is a physical one; *both*: it is an effective one, and the physical one is told, too
    """

    unpack: Any
    pc_kind: int
    pc: int
    word: int
    length: int
    registers: tuple[tuple[int, int], ...]
    address: int
    data: int
    size: int
    physical: bool
    both: bool


_INSTRUCTIONS = {int(Opcode.INSTRUCTION_16): 2, int(Opcode.INSTRUCTION_32): 4}


def plan_of(shape: Shape) -> Plan | None:
    """How to take a group of this shape; None: element by element.

    Plain is a group with an instruction, a pc in one of both forms, whole registers, addresses, and at most one store.
    """
    if shape.loose or not shape.known or shape.problems:
        return None
    places = _places(shape.forms)
    if places is None:
        return None
    words = [head for head in _INSTRUCTIONS if ("", head) in places]
    effective = places.get(("address", State.EFFECTIVE_ADDRESS), -1)
    physical = places.get(("address", State.PHYSICAL_ADDRESS), -1)
    address = effective if effective >= 0 else physical
    sizes = [state for state in STORE_DATA if ("data", state) in places]
    has_pc, increments = ("", State.PC) in places, ("", -1) in places
    if not words or has_pc + increments != 1 or bool(sizes) > (address >= 0):
        return None
    if sizes and any("s" in form.format for form in shape.forms):  # an address of 5 bytes
        return None
    return Plan(
        shape.reader.unpack_from,
        FULL if has_pc else INCREMENT,
        places.get(("", State.PC), -1),
        places["", words[0]],
        _INSTRUCTIONS[words[0]],
        tuple((at, at + 1) for (kind, _), at in places.items() if kind == "register"),
        address,
        places["data", sizes[0]] if sizes else -1,
        STORE_DATA[sizes[0]] if sizes else 0,
        physical >= 0 > effective,
        physical >= 0 <= effective,
    )


def _places(forms: Sequence[Form]) -> dict[tuple[str, int], int] | None:
    """Where each field is, None for a group that is not plain."""
    places: dict[tuple[str, int], int] = {}
    at = 0
    for form in forms:
        key = ("register", at) if form.head == Opcode.FULL_REGISTER else _key(form)
        if key is None or key in places or (key[0] == "data" and key[0] in {kind for kind, _ in places}):
            return None
        places[key] = at
        at += form.values
    return places


def _key(form: Form) -> tuple[str, int] | None:
    if form.head in _INSTRUCTIONS:
        return "", form.head
    if form.head == Opcode.INCREMENT_PC:
        return "", -1
    if form.head != Opcode.ADDITIONAL_STATE:
        return None
    if form.identifier == State.PC:
        return ("", form.identifier) if form.values == 1 else None
    if form.identifier in (State.EFFECTIVE_ADDRESS, State.PHYSICAL_ADDRESS):
        return "address", form.identifier
    return ("data", form.identifier) if form.identifier in STORE_DATA else None

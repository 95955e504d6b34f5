"""The forms of groups, learnt while reading; the fast path that forms allow; and the rules that groups break.

The forms are an automaton whose states are the elements of a group so far. A trace has few different shapes of groups
(28 in 18,000 groups of real cores): which elements in which order. A group is read with one look-up for each element;
its shape then has the place of each field, so that all are unpacked at once. A `UnpackPlan` describes how to process a
group of a shape: for most groups it allows the fields to be taken as they are unpacked.

A `GroupProblem` is a rule that a readable group breaks. Source: Trace Protocol Specification, version 2018-11-20,
chapter 3; and the additional rules of a published checker of such traces. That checker does not accept an implied end
group, which chapter 3 allows: here it is not a problem.
"""

import re
import struct
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from itertools import accumulate
from typing import Any

from rvtrace_gdb.decode.tandem.protocol import (
    FPR,
    FPR_END,
    NO_DATA_IN_RESPONSE,
    STORE_DATA,
    ElementForm,
    Ending,
    Maker,
    Opcode,
    StateId,
    Widths,
    maker_of,
    plain_forms,
    register_form,
    request_form,
    response_form,
    state_forms,
)


class GroupProblem(Enum):
    """A problem; the value is its text."""

    ORPHAN_END = "end group without a begin group"
    LOOSE_EXECUTION = "an instruction, pc increment, or state initialization outside of a group"
    RESET_AND_INSTRUCTION = "a reset and an instruction in one group"
    INITIALIZATION_AND_INSTRUCTION = "a state initialization and an instruction in one group"
    INITIALIZATION_AND_RESET = "a state initialization and a reset in one group"
    INCREMENT_WITHOUT_INSTRUCTION = "increment pc without an instruction to take the length from"
    DUPLICATE_INCREMENT = "increment pc twice in one group"
    DUPLICATE_INSTRUCTION = "two instructions in one group"
    INCREMENT_AND_PC = "increment pc and a new pc in one group"
    NEITHER = "a group that is neither a reset, a state initialization, an instruction, nor an interrupt"
    DUPLICATE_RESET = "hart reset twice in one group"
    DUPLICATE_INITIALIZATION = "state initialization twice in one group"

    @property
    def is_warning(self) -> bool:
        """Whether it does not affect the meaning of the group."""
        return self in (GroupProblem.DUPLICATE_RESET, GroupProblem.DUPLICATE_INITIALIZATION)


_RESET, _INITIALIZATION, _INCREMENT = Opcode.HART_RESET, Opcode.STATE_INITIALIZATION, Opcode.INCREMENT_PC
_TOGETHER = (
    (_RESET, "instr", GroupProblem.RESET_AND_INSTRUCTION),
    (_INITIALIZATION, "instr", GroupProblem.INITIALIZATION_AND_INSTRUCTION),
    (_INITIALIZATION, _RESET, GroupProblem.INITIALIZATION_AND_RESET),
    (_INCREMENT, "pc", GroupProblem.INCREMENT_AND_PC),
)
_TWICE = (
    (_INCREMENT, GroupProblem.DUPLICATE_INCREMENT),
    ("instr", GroupProblem.DUPLICATE_INSTRUCTION),
    (_RESET, GroupProblem.DUPLICATE_RESET),
    (_INITIALIZATION, GroupProblem.DUPLICATE_INITIALIZATION),
)
_EXECUTION = frozenset({"instr", _INCREMENT, _INITIALIZATION})
_INTERRUPT_REGISTERS = 2  # an interrupt has at least xepc and xcause, or a pc


def problems_of(forms: Sequence[ElementForm], ending: Ending, *, orphan: bool = False) -> tuple[GroupProblem, ...]:
    """Return the problems of a group of these elements. *orphan*: it is an end group alone."""
    kinds = Counter(map(_kind, forms))
    if orphan:
        return (GroupProblem.ORPHAN_END,)
    if ending is Ending.LOOSE:
        return (GroupProblem.LOOSE_EXECUTION,) if _EXECUTION & kinds.keys() else ()
    found = [problem for one, other, problem in _TOGETHER if kinds[one] and kinds[other]]
    found += [problem for kind, problem in _TWICE if kinds[kind] > 1]
    if kinds[_INCREMENT] and not kinds["instr"]:
        found.append(GroupProblem.INCREMENT_WITHOUT_INSTRUCTION)
    is_interrupt = kinds["pc"] or kinds[Opcode.FULL_REGISTER] >= _INTERRUPT_REGISTERS
    if not (kinds["instr"] or kinds[_RESET] or kinds[_INITIALIZATION] or kinds[_INCREMENT] or is_interrupt):
        found.append(GroupProblem.NEITHER)
    return tuple(found)


def _kind(form: ElementForm) -> int | str:
    if form.head in (Opcode.INSTRUCTION_16, Opcode.INSTRUCTION_32):
        return "instr"
    is_pc = form.head == Opcode.ADDITIONAL_STATE and form.identifier == StateId.PC
    return "pc" if is_pc else form.head


_BEGIN, _END = int(Opcode.BEGIN_GROUP), int(Opcode.END_GROUP)
_REGISTER, _STATE = int(Opcode.FULL_REGISTER), int(Opcode.ADDITIONAL_STATE)
_REQUEST, _RESPONSE = int(Opcode.MEMORY_REQUEST), int(Opcode.MEMORY_RESPONSE)
_INITIALIZATION_OPCODE = int(Opcode.STATE_INITIALIZATION)

MOST_NODES = 1 << 13
MOST_SHAPES = 1 << 12
MOST_ELEMENTS = 40
"""The limits of what is remembered; groups beyond them are read element by element each time."""


class InvalidBytes(Exception):
    """The bytes here are not an element. It is for the framer alone: a user sees a loss."""

    def __init__(self, why: str) -> None:
        self.why = why
        super().__init__(why)


_FIELD = re.compile("[0-9]*[A-Za-z]")


class GroupShape:
    """Which elements a group has, in which order, and how it ends.

    number   in `Automaton.shapes`
    forms    of its elements, without begin and end
    known    False: the forms are not remembered, the group has to be read again
    end      bytes of the end group: 1, 0 if it is implied or missing
    loose    an element outside of groups, or an end group there
    root     the state of the reader after it
    """

    def __init__(
        self,
        number: int,
        forms: tuple[ElementForm, ...],
        end: int,
        root: "GrammarNode",
        *,
        loose: bool = False,
        known: bool = True,
    ) -> None:
        self.number, self.forms, self.end, self.root = number, forms, end, root
        self.loose, self.known = loose, known

    @property
    def ending(self) -> Ending:
        """How the group ends."""
        return Ending.LOOSE if self.loose else Ending.EXPLICIT if self.end else Ending.IMPLIED

    @cached_property
    def reader(self) -> struct.Struct:
        """The struct that unpacks the fields of all elements, from the first byte of the group on."""
        return struct.Struct("<" + ("" if self.loose else "x") + "".join(form.format for form in self.forms))

    @property
    def fields(self) -> list[tuple[int, int]]:
        """The place of each field, from the first byte of the group on, and its bytes."""
        at, found = int(not self.loose), list[tuple[int, int]]()
        for code in _FIELD.findall("".join(form.format for form in self.forms)):
            size = struct.calcsize(f"<{code}")
            found += [] if code == "x" else [(at, size)]
            at += size
        return found

    @cached_property
    def makers(self) -> list[tuple[Maker, int, int]]:
        """For each element, the function that creates it, and the range of fields (first, last + 1)
        it is created from.
        """
        ends = list(accumulate(form.values for form in self.forms))
        return [(maker_of(form), end - form.values, end) for form, end in zip(self.forms, ends, strict=True)]

    @cached_property
    def has_bytes(self) -> bool:
        """Whether some of its fields are unpacked as bytes."""
        return any("s" in form.format for form in self.forms)

    @cached_property
    def problems(self) -> tuple[GroupProblem, ...]:
        """The problems of such a group."""
        return problems_of(self.forms, self.ending, orphan=self.loose and bool(self.end))


GrammarEntry = tuple[int, "GrammarNode", int, GroupShape | None]
"""(size, next node, 0, None): an element of so many bytes. (0, node, at, None): the byte *at* bytes later decides what
it is, in that node. (size, node, 0, shape): the end of a group.
"""


class GrammarNode(dict[int, GrammarEntry]):
    """A state of the reader: what can come next, by its first byte. Filled as bytes occur."""

    def __init__(self, automaton: "Automaton", at: "ReaderState", split: int = 0) -> None:
        super().__init__()
        self._automaton, self.where, self.split = automaton, at, split
        self.number = -1
        """Of the nodes that the kernel knows."""

    def __missing__(self, byte: int) -> GrammarEntry:
        """Raises Bad."""
        entry = self._automaton.entry(self.where, self.split, byte)
        self[byte] = entry
        return entry


class ReaderState:
    """What the reader knows of the current group.

    *after*: what follows one more element, by that element and `_class`.

    forms     of the elements so far; None: not remembered
    inside    a group, or outside of any
    init      a state initialization came
    pending   the operation of the request directly before, -1 without one
    once      nothing is to be remembered of it: *forms* are of the last element alone
    """

    __slots__ = ("after", "forms", "init", "inside", "once", "pending")

    def __init__(
        self,
        forms: tuple[ElementForm, ...] | None,
        inside: bool,
        init: bool = False,
        pending: int = -1,
        *,
        once: bool = False,
    ) -> None:
        self.forms, self.inside, self.init, self.pending, self.once = forms, inside, init, pending, once
        self.after: dict[tuple[ElementForm, int], GrammarEntry] = {}


class Automaton:
    """Reads elements with these field lengths. Remembers a bounded number of shapes."""

    def __init__(self, widths: Widths) -> None:
        self.widths = widths
        self._plain, self._states = plain_forms(), state_forms(widths)
        self._nodes = 0
        self._general: dict[tuple[bool, int], GrammarNode] = {}
        self._begin = GrammarNode(self, ReaderState((), inside=True))
        self._roots: dict[int, GrammarNode] = {}
        self.root = self._root(-1)
        self.shapes = [GroupShape(end, (), end, self.root, known=False) for end in (0, 1)]
        """The shapes by number. The first two stand for all groups that are not remembered."""

    def entry(self, where: ReaderState, split: int, byte: int) -> GrammarEntry:
        """Return what to do at *byte*. Raises Bad."""
        if split:
            return self._split(where, split, byte)
        if byte in (_BEGIN, _END):
            return self._boundary(where, byte)
        if byte in self._plain:
            return self._after(where, self._plain[byte], -1)
        at = self._splits_at(where, byte)
        return 0, GrammarNode(self, where, byte), at, None

    def _splits_at(self, where: ReaderState, byte: int) -> int:
        """Return how far after the first byte of an element its form is determined. Raises Bad."""
        if byte == _REGISTER:
            return 2
        if byte == _STATE:
            return 1
        if byte == _REQUEST:
            return 1 + self.widths.mlen
        if byte == _RESPONSE:
            if where.pending < 0:
                raise InvalidBytes("a memory response without a request right before it")
            return 1
        raise InvalidBytes(f"0x{byte:02x} is not an opcode")

    def _split(self, where: ReaderState, split: int, byte: int) -> GrammarEntry:
        if split == _REGISTER:
            if byte == FPR >> 8:  # the low byte tells x from f, and both from what is reserved
                return 0, GrammarNode(self, where, _LOW), 1, None
            if byte > FPR >> 8:
                raise InvalidBytes(f"there is no register 0x{byte:02x}..")
            return self._after(where, self._integer, -1)
        if split == _LOW:
            if byte >= FPR_END & 0xFF:
                raise InvalidBytes(f"there is no register 0x10{byte:02x}")
            floating = register_form(self.widths, floating=True, in_initialization=where.init)
            return self._after(where, floating if byte >= FPR & 0xFF else self._integer, -1)
        if split == _STATE:
            if byte not in self._states:
                raise InvalidBytes(f"0x{byte:02x} is not the identifier of an additional state")
            return self._after(where, self._states[byte], -1)
        found = request_form(self.widths, byte) if split == _REQUEST else response_form(where.pending, byte)
        if found is None:
            raise InvalidBytes(f"0x{byte:02x} is reserved in a memory {'request' if split == _REQUEST else 'response'}")
        return self._after(where, found, byte & 15 if split == _REQUEST else -1)

    @property
    def _integer(self) -> ElementForm:
        return register_form(self.widths, floating=False)

    def _boundary(self, where: ReaderState, byte: int) -> GrammarEntry:
        if where.inside:
            size = int(byte == _END)
            return size, self.root, 0, self._group(where.forms, size)
        if byte == _END:
            return 1, self.root, 0, self._group_shape((), 1, self.root, loose=True)
        return 1, self._begin, 0, None

    def _after(self, where: ReaderState, element: ElementForm, pending: int) -> GrammarEntry:
        """Return the state after one more element. Many bytes lead to the same state."""
        key = element, _class(pending)
        if key not in where.after:
            where.after[key] = self._following(where, element, pending)
        return where.after[key]

    def _following(self, where: ReaderState, element: ElementForm, pending: int) -> GrammarEntry:
        if not where.inside:
            root = self._root(pending)
            return element.size, root, 0, self._group_shape((element,), 0, root, loose=True)
        init = where.init or element.head == _INITIALIZATION_OPCODE
        if where.once:
            return element.size, GrammarNode(self, ReaderState((element,), True, init, pending, once=True)), 0, None
        if where.forms is None or len(where.forms) >= MOST_ELEMENTS or self._nodes >= MOST_NODES:
            return element.size, self._forgetful(init, pending), 0, None
        self._nodes += 1
        return element.size, GrammarNode(self, ReaderState((*where.forms, element), True, init, pending)), 0, None

    def _forgetful(self, init: bool, pending: int) -> GrammarNode:
        """Return the state in groups that are too many or too long to remember."""
        key = init, _class(pending)
        if key not in self._general:
            self._general[key] = GrammarNode(self, ReaderState(None, True, init, pending))
        return self._general[key]

    def _root(self, pending: int) -> GrammarNode:
        """Return the state outside of groups."""
        key = _class(pending)
        if key not in self._roots:
            self._roots[key] = GrammarNode(self, ReaderState((), False, False, pending))
        return self._roots[key]

    def _group(self, forms: tuple[ElementForm, ...] | None, end: int) -> GroupShape:
        if forms is None or len(self.shapes) >= MOST_SHAPES:
            return self.shapes[end]
        return self._group_shape(forms, end, self.root)

    def _group_shape(
        self, forms: tuple[ElementForm, ...], end: int, root: GrammarNode, *, loose: bool = False
    ) -> GroupShape:
        shape = GroupShape(len(self.shapes), forms, end, root, loose=loose)
        self.shapes.append(shape)
        return shape

    def forms_at(self, data: bytes | bytearray, offset: int) -> Iterator[tuple[ElementForm, int]]:
        """Yield the elements of a whole group at *offset*, and the place of each, without remembering anything."""
        offset, init, pending = offset + 1, False, -1
        while data[offset] not in (_BEGIN, _END):
            size, node, at, _ = self.entry(ReaderState((), True, init, pending, once=True), 0, data[offset])
            while at:
                size, node, at, _ = self.entry(node.where, node.split, data[offset + at])
            assert node.where.forms
            init, pending = node.where.init, node.where.pending
            yield node.where.forms[0], offset
            offset += size


def _class(pending: int) -> int:
    """Return the relevant property of the pending request: -1 none; 0, 1: whether its response has data."""
    return pending if pending < 0 else int(pending in NO_DATA_IN_RESPONSE)


_LOW = -1  # splits by the low byte of a register's number


FULL, INCREMENT, NONE = range(3)
"""How a group reports the pc."""


@dataclass(slots=True)
class UnpackPlan:
    """The indices of the fields of a plain group among those unpacked, -1 for what it does not have.

    unpack     all fields, from the trace and an offset
    pc_kind    FULL, INCREMENT or NONE
    pc, word, address, data
    registers  (number, value) of each
    length     of the instruction, in bytes
    size       of the store data, in bytes
    physical   the address is a physical one; *both*: it is an effective one, and the physical one is also reported
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


def plan_of(shape: GroupShape) -> UnpackPlan | None:
    """Return how to process a group of this shape; None: element by element.

    A plain group has an instruction, a pc in one of both forms, whole registers, addresses, and at most one store.
    """
    if shape.loose or not shape.known or shape.problems:
        return None
    places = _field_indices(shape.forms)
    if places is None:
        return None
    words = [head for head in _INSTRUCTIONS if ("", head) in places]
    effective = places.get(("address", StateId.EFFECTIVE_ADDRESS), -1)
    physical = places.get(("address", StateId.PHYSICAL_ADDRESS), -1)
    address = effective if effective >= 0 else physical
    sizes = [state for state in STORE_DATA if ("data", state) in places]
    has_pc, increments = ("", StateId.PC) in places, ("", -1) in places
    if not words or has_pc + increments != 1 or bool(sizes) > (address >= 0):
        return None
    if sizes and any("s" in form.format for form in shape.forms):  # an address of 5 bytes
        return None
    return UnpackPlan(
        shape.reader.unpack_from,
        FULL if has_pc else INCREMENT,
        places.get(("", StateId.PC), -1),
        places["", words[0]],
        _INSTRUCTIONS[words[0]],
        tuple((at, at + 1) for (kind, _), at in places.items() if kind == "register"),
        address,
        places["data", sizes[0]] if sizes else -1,
        STORE_DATA[sizes[0]] if sizes else 0,
        physical >= 0 > effective,
        physical >= 0 <= effective,
    )


def _field_indices(forms: Sequence[ElementForm]) -> dict[tuple[str, int], int] | None:
    """Return the index of each field, None for a group that is not plain."""
    places: dict[tuple[str, int], int] = {}
    at = 0
    for form in forms:
        key = ("register", at) if form.head == Opcode.FULL_REGISTER else _key(form)
        if key is None or key in places or (key[0] == "data" and key[0] in {kind for kind, _ in places}):
            return None
        places[key] = at
        at += form.values
    return places


def _key(form: ElementForm) -> tuple[str, int] | None:
    if form.head in _INSTRUCTIONS:
        return "", form.head
    if form.head == Opcode.INCREMENT_PC:
        return "", -1
    if form.head != Opcode.ADDITIONAL_STATE:
        return None
    if form.identifier == StateId.PC:
        return ("", form.identifier) if form.values == 1 else None
    if form.identifier in (StateId.EFFECTIVE_ADDRESS, StateId.PHYSICAL_ADDRESS):
        return "address", form.identifier
    return ("data", form.identifier) if form.identifier in STORE_DATA else None

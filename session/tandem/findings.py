"""What a tandem verifier finds: divergences, and how much was compared."""

from collections import Counter
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from rvtrace_gdb.decode.tandem.group import Instr
from rvtrace_gdb.session.tandem.model import Trap


class Kind(Enum):
    """What is not the same; the value says it in words."""

    ORDER = "groups missing, repeated or out of order"
    INSTRUCTION = "instruction"
    TRAP = "trap"
    PC = "next pc"
    REGISTER = "register"
    CSR = "CSR"
    PRIVILEGE = "privilege mode"
    STORE = "store"
    ADDRESS = "address"
    LATER = "found when everything was compared"


class Difference(NamedTuple):
    """One thing that is not the same.

    place  a register's number, or an address
    was    before the group, None: not known
    trace  None: the trace does not tell it (a register keeps what it was), or has no such thing
    model  None: the model has or did no such thing
    bits   of a register: which are not the same
    size   bytes, of a store
    note   what else there is to say
    """

    kind: Kind
    place: int = 0
    was: int | None = None
    trace: int | None = None
    model: int | None = None
    bits: int = 0
    size: int = 0
    note: str = ""


class Divergence(NamedTuple):
    """A group after which the trace and the model are not in the same state.

    number    of all divergences, counted from 1
    group, offset, position   counted from 0: group, byte of the trace, place in the history (None: nothing retired)
    pc        of the instruction; None: not known
    instr     the trace's; *other*: what the model fetched there, if that is not the same
    trap, model_trap   that each of them took
    differences        what is not the same, in the order of importance
    registers          (number, trace, model) of all registers, where that was asked for
    """

    number: int
    group: int
    offset: int
    position: int | None
    pc: int | None
    instr: Instr | None
    other: int | None
    trap: Trap | None
    model_trap: Trap | None
    differences: tuple[Difference, ...]
    registers: tuple[tuple[int, int | None, int | None], ...] = ()


@dataclass
class Counts:
    """How much was compared, copied, and found.

    groups        read; *instructions*, *traps*, *interrupts*, *resets*, *initializations*, *loose* are kinds of them
    executed      groups the model was stepped for
    registers, csrs, stores   compared
    masked        differences in bits the user does not compare
    untold        changes that this trace never tells, taken from the model
    copied        non-deterministic state copied to the model, by what it was
    uncomparable  groups whose result depends on what is not known since a loss, or since reset
    losses, lost_bytes   stretches of the trace that cannot be read; *holes*: those with groups on both sides
    by_kind       differences
    full          how often everything was compared
    """

    groups: int = 0
    instructions: int = 0
    traps: int = 0
    interrupts: int = 0
    resets: int = 0
    initializations: int = 0
    loose: int = 0
    executed: int = 0
    registers: int = 0
    csrs: int = 0
    stores: int = 0
    masked: int = 0
    untold: int = 0
    uncomparable: int = 0
    losses: int = 0
    holes: int = 0
    lost_bytes: int = 0
    divergences: int = 0
    full: int = 0
    copied: Counter[str] = field(default_factory=Counter)
    by_kind: Counter[Kind] = field(default_factory=Counter)

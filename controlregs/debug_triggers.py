"""A hart's debug triggers: their CSRs, and the types that can act at an address.

Ref: RISC-V Debug Specification
Version: 1.0, chapter "Sdtrig"; type 2 as in 0.13.2, chapter "Trigger Module"
Section: tselect, tdata1, tdata2, tdata3, mcontrol, mcontrol6, icount, itrigger, etrigger

Fields are declared as on RV64; those of RV32 are at the same places, but for `type` and `dmode`, which are at the top.
"""

from collections.abc import Mapping
from enum import IntEnum

from rvtrace_gdb.controlregs.fields import Field, Part, reserved

TSELECT, TDATA1, TDATA2, TDATA3 = 0x7A0, 0x7A1, 0x7A2, 0x7A3
NAMES: Mapping[int, str] = {TSELECT: "tselect", TDATA1: "tdata1", TDATA2: "tdata2", TDATA3: "tdata3"}


class TriggerType(IntEnum):
    NONE = 0
    LEGACY = 1
    MCONTROL = 2
    ICOUNT = 3
    ITRIGGER = 4
    ETRIGGER = 5
    MCONTROL6 = 6
    TMEXTTRIGGER = 7
    DISABLED = 15


def type_of(tdata1: int, xlen: int) -> int:
    """Its highest four bits."""
    return tdata1 >> xlen - 4 & 0xF


def dmode(tdata1: int, xlen: int) -> bool:
    """Only Debug Mode can write the trigger."""
    return bool(tdata1 >> xlen - 5 & 1)


def of_type(kind: int, low: int, xlen: int) -> int:
    """tdata1 with `type` and, without dmode, the bits *low*."""
    return kind << xlen - 4 | low


def _flag(name: str, doc: str) -> Field:
    return Field(name, 1, doc=doc)


_ACCESS = (_flag("load", "on loads"), _flag("store", "on stores"), _flag("execute", "on execution at the address"))
_ACTION = Field("action", 4, doc="2 trace on, 3 trace off, 4 trace notify")

MCONTROL = Part(
    "mcontrol",
    "type 2: at an address or a value",
    (
        *_ACCESS,
        _flag("u", "in U mode"),
        _flag("s", "in S mode"),
        reserved(1),
        _flag("m", "in M mode"),
        Field("match", 4, doc="0: equal to tdata2"),
        _flag("chain", "only together with the next trigger"),
        _ACTION,
        Field("sizelo", 2, doc="size of the access; 0: any"),
        _flag("timing", "1: after the instruction"),
        _flag("select", "1: compares a value, not an address"),
        _flag("hit", "it has fired"),
        Field("sizehi", 2, doc="size of the access"),
        reserved(41),
    ),
)
MCONTROL6 = Part(
    "mcontrol6",
    "type 6: at an address or a value",
    (
        *_ACCESS,
        _flag("u", "in U mode"),
        _flag("s", "in S mode"),
        _flag("uncertainen", "may fire though it is not certain that it matches"),
        _flag("m", "in M mode"),
        Field("match", 4, doc="0: equal to tdata2"),
        _flag("chain", "only together with the next trigger"),
        _ACTION,
        Field("size", 3, doc="size of the access; 0: any"),
        reserved(2),
        _flag("select", "1: compares a value, not an address"),
        _flag("hit0", "it has fired"),
        _flag("vu", "in VU mode"),
        _flag("vs", "in VS mode"),
        _flag("hit1", "it has fired"),
        _flag("uncertain", "it may have fired without a match"),
        reserved(37),
    ),
)
ADDRESS_TYPES: Mapping[int, Part] = {TriggerType.MCONTROL: MCONTROL, TriggerType.MCONTROL6: MCONTROL6}
"""Types that can act where an instruction is; those of one hart may be either."""
STATE: Mapping[int, int] = {
    TriggerType.MCONTROL: MCONTROL.mask("hit"),
    TriggerType.MCONTROL6: MCONTROL6.mask("hit0", "hit1", "uncertain"),
}
"""Bits that tell what has happened, by type."""

_WHEN_COUNTED = 1 << 6 | 1 << 7 | 1 << 9 | 1 << 25 | 1 << 26  # icount: u, s, m, vu, vs
_WHEN_TRAPPED = 1 << 6 | 1 << 7 | 1 << 9 | 1 << 11 | 1 << 12  # itrigger, etrigger: u, s, m, vu, vs
_AT_WORK: Mapping[int, int] = {
    TriggerType.MCONTROL: MCONTROL.mask("load", "store", "execute"),
    TriggerType.MCONTROL6: MCONTROL6.mask("load", "store", "execute"),
    TriggerType.ICOUNT: _WHEN_COUNTED,
    TriggerType.ITRIGGER: _WHEN_TRAPPED,
    TriggerType.ETRIGGER: _WHEN_TRAPPED,
    TriggerType.DISABLED: 0,
}
"""Without these bits a trigger of the type never fires. Types that are not here may be at work whatever they hold."""


def is_free(tdata1: int, xlen: int) -> bool:
    """Whether nobody uses the trigger."""
    kind = type_of(tdata1, xlen)
    return kind in _AT_WORK and not tdata1 & _AT_WORK[kind]


def chains(tdata1: int, xlen: int) -> bool:
    """Whether the next trigger belongs to it."""
    part = ADDRESS_TYPES.get(type_of(tdata1, xlen))
    return part is not None and not is_free(tdata1, xlen) and bool(part.get(tdata1, "chain"))

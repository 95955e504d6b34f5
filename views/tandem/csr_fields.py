"""The fields of control and status registers, for people: which ones changed, and their values.

Source: RISC-V Instruction Set Manual II (20240411), chapters 3 and 12 (mstatus, mip, mtvec, mcause, satp); volume I, "F
Extension" (fcsr). `CsrField`s are (name, lowest bit, width, names of values).
"""

from collections.abc import Mapping
from typing import NamedTuple

from rvtrace_gdb.decode.program.csrs import CSRS, trap_text

_OFF = {0: "Off", 1: "Initial", 2: "Clean", 3: "Dirty"}
MODES = {0: "U", 1: "S", 3: "M"}
"""The names of the privilege modes."""
_XLEN = {1: "32", 2: "64", 3: "128"}


class CsrField(NamedTuple):
    """Some bits of a register. *names*: of its values, if they have any."""

    name: str
    low: int
    width: int = 1
    names: Mapping[int, str] = {}

    def value(self, register: int) -> str:
        """Return the text of the field in a register's value."""
        bits = register >> self.low & (1 << self.width) - 1
        return self.names.get(bits, str(bits) if bits < 10 else hex(bits))


_SSTATUS = (
    CsrField("SIE", 1), CsrField("SPIE", 5), CsrField("UBE", 6), CsrField("SPP", 8, 1, MODES),
    CsrField("VS", 9, 2, _OFF),
    CsrField("FS", 13, 2, _OFF), CsrField("XS", 15, 2, _OFF), CsrField("SUM", 18), CsrField("MXR", 19),
    CsrField("SPELP", 23),
    CsrField("SDT", 24),
)  # fmt: skip
_MSTATUS = (
    *_SSTATUS, CsrField("MIE", 3), CsrField("MPIE", 7), CsrField("MPP", 11, 2, MODES), CsrField("MPRV", 17),
    CsrField("TVM", 20),
    CsrField("TW", 21), CsrField("TSR", 22),
)  # fmt: skip
_UXL, _SXL = CsrField("UXL", 32, 2, _XLEN), CsrField("SXL", 34, 2, _XLEN)
_HIGH = (
    CsrField("SBE", 4), CsrField("MBE", 5), CsrField("GVA", 6), CsrField("MPV", 7), CsrField("MPELP", 9),
    CsrField("MDT", 10),
)  # fmt: skip
_INTERRUPTS = {
    "SSI": 1, "VSSI": 2, "MSI": 3, "STI": 5, "VSTI": 6, "MTI": 7, "SEI": 9, "VSEI": 10, "MEI": 11, "SGEI": 12,
    "LCOFI": 13,
}  # fmt: skip
_FLAGS = (CsrField("NX", 0), CsrField("UF", 1), CsrField("OF", 2), CsrField("DZ", 3), CsrField("NV", 4))
_ROUNDING = {0: "RNE", 1: "RTZ", 2: "RDN", 3: "RUP", 4: "RMM", 7: "DYN"}
_VECTORED = {0: "direct", 1: "vectored"}
_SATP = {
    32: (CsrField("MODE", 31, 1, {0: "Bare", 1: "Sv32"}), CsrField("ASID", 22, 9), CsrField("PPN", 0, 22)),
    64: (
        CsrField("MODE", 60, 4, {0: "Bare", 8: "Sv39", 9: "Sv48", 10: "Sv57"}), CsrField("ASID", 44, 16),
        CsrField("PPN", 0, 44),
    ),
}  # fmt: skip
_CAUSES = ("mcause", "scause", "vscause", "mncause")


def fields_of(csr: int, xlen: int) -> tuple[CsrField, ...]:
    """Return the fields of a CSR, lowest first; none if they are not known here."""
    return tuple(sorted(_TABLES[xlen].get(csr, ()), key=lambda field: field.low))


def change_text(csr: int, old: int | None, new: int, xlen: int) -> str:
    """Return the meaning of a new value of a CSR: the fields that changed, or, if the old value is unknown, those that
    are set.

    "" if there is nothing to say.
    """
    if csr in _CAUSE_NUMBERS:
        if old is None and not new:  # cleared by a reset, most often
            return ""
        return trap_text(new & (1 << xlen - 1) - 1, bool(new >> xlen - 1))
    found = []
    for field in fields_of(csr, xlen):
        now = field.value(new)
        if old is None:
            if new >> field.low & (1 << field.width) - 1:
                found.append(f"{field.name} {now}")
        elif field.value(old) != now:
            found.append(f"{field.name} {field.value(old)} -> {now}")
    return ", ".join(found)


def value_text(csr: int, value: int, xlen: int) -> str:
    """Return the meaning of a value: all fields that are not 0."""
    return change_text(csr, None, value, xlen)


def _table(xlen: int) -> dict[int, tuple[CsrField, ...]]:
    sd, wide = CsrField("SD", xlen - 1), xlen == 64
    high = tuple(field._replace(low=field.low + 32) for field in _HIGH) if wide else ()
    named = {
        "mstatus": (*_MSTATUS, *((_UXL, _SXL) if wide else ()), *high, sd),
        "sstatus": (*_SSTATUS, *((_UXL,) if wide else ()), sd),
        "mstatush": () if wide else _HIGH,
        "mie": tuple(CsrField(f"{name}E", low) for name, low in _INTERRUPTS.items()),
        "mip": tuple(CsrField(f"{name}P", low) for name, low in _INTERRUPTS.items()),
        "mideleg": tuple(CsrField(name, low) for name, low in _INTERRUPTS.items()),
        "mtvec": (CsrField("MODE", 0, 2, _VECTORED),),
        "stvec": (CsrField("MODE", 0, 2, _VECTORED),),
        "satp": _SATP[xlen],
        "fflags": _FLAGS,
        "frm": (CsrField("RM", 0, 3, _ROUNDING),),
        "fcsr": (*_FLAGS, CsrField("RM", 5, 3, _ROUNDING)),
    }
    named |= {"sie": named["mie"], "sip": named["mip"]}
    return {CSRS[name]: fields for name, fields in named.items()}


_TABLES = {xlen: _table(xlen) for xlen in (32, 64)}
_CAUSE_NUMBERS = frozenset(CSRS[name] for name in _CAUSES)

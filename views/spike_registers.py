"""Which registers Spike logs as written by an instruction, of those that its group in a trace tells.

Source: riscv-isa-sim, riscv/csrs.cc and csr_init.cc: what each CSR's write logs, itself or the registers it stands for.
Measured: tests/console/test_tandem_convert_csrs.py.
"""

from collections.abc import Iterator

from rvtrace_gdb.decode.tandem import csrs
from rvtrace_gdb.decode.tandem.layout import FPR_END, GPR
from rvtrace_gdb.views.tandem_groups import Groups, Row

MVIP = 0x309
"""Virtual interrupt bits of AIA. Spike has them beneath mip, and logs them with it, also where the hart has no AIA."""

_SYSTEM = 0x73
_SET, _CLEAR = 2, 3
_PENDING = (MVIP, csrs.MIP)
_LOGGED = {
    csrs.SSTATUS: (csrs.MSTATUS,), csrs.SIE: (csrs.SIE, csrs.MIE), csrs.SIP: _PENDING, csrs.MIP: _PENDING,
    csrs.FCSR: (csrs.FFLAGS, csrs.FRM),
}  # fmt: skip
"""What a write to a CSR is logged as, where that is not itself alone."""
_WHOLES = {csrs.SSTATUS: csrs.MSTATUS, csrs.SIE: csrs.MIE, csrs.SIP: csrs.MIP}
_SEIP, _SOFTWARE_AND_TIMER = 1 << 9, 1 << 5 | 1 << 1


def written_registers(groups: Groups, row: Row) -> Iterator[tuple[int, int | None]]:
    """The registers an instruction wrote as Spike sees them; None: the trace does not determine what they became.

    A CSR that an instruction does not name is written only where that changes it: cores tell it at any rate.
    """
    found: dict[int, int | None] = {}
    named = _named(row)
    logged = () if named is None else _LOGGED.get(named, () if _is_event_counter(named) else (named,))
    family = {named, *logged}
    if any(change.regno in family for change in row.changes):
        found |= {regno: _value(groups, row, regno, named) for regno in logged}
    for change in row.changes:
        if change.regno in (GPR, csrs.PRIVILEGE, named) or change.regno in found or change.regno >= FPR_END:
            continue
        if change.regno >= GPR or change.old != change.new or _writes_status(row):
            wholes = _LOGGED[csrs.FCSR] if change.regno == csrs.FCSR else (_WHOLES.get(change.regno, change.regno),)
            found |= {regno: _value(groups, row, regno, None) for regno in wholes if regno not in found}
    yield from ((regno, value) for regno, value in found.items() if value is not None or regno != MVIP)


def _named(row: Row) -> int | None:
    """The CSR an instruction writes: csrrs and csrrc with x0, or 0, write none."""
    word = 0 if row.instr is None else row.instr.word
    operation = word >> 12 & 3
    if row.trap is not None or word & 0x7F != _SYSTEM or not operation:
        return None
    return None if operation in (_SET, _CLEAR) and not word >> 15 & 31 else word >> 20


def _is_event_counter(csr: int) -> bool:
    """Whether it is mhpmcounter3 to 31 or a high half: Spike has zeros there, and logs no write."""
    return csr & ~0x9F == 0xB00 and csr & 0x1F >= 3


def _writes_status(row: Row) -> bool:
    """Whether it is a trap or a return from one, which write CSRs without naming them."""
    return row.trap is not None or (row.instr is not None and row.instr.word in csrs.XRETS)


def _value(groups: Groups, row: Row, regno: int, named: int | None) -> int | None:
    """What a register became. *named*: the CSR that the instruction names."""
    if regno != MVIP:
        return groups.index.registers.value(regno, row.number - 1)
    before = groups.before(csrs.MIP, row.number - 1)
    after = groups.index.registers.value(csrs.MIP, row.number - 1)
    if before is None or after is None or not groups.parameters.supervisor:
        return None
    # mvip is logged before mip is written, but for SEIP, which is in mvip and which sip cannot write.
    return before & _SOFTWARE_AND_TIMER | (after if named == csrs.MIP else before) & _SEIP

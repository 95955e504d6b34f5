"""Names of registers, and their numbers: those of the Debug Specification, "Abstract Register Numbers".

Source: RISC-V ELF psABI, "Register Convention"; gdb's names for the same CSRs.
"""

import re

from rvtrace_gdb.decode.csr_names import CSRS
from rvtrace_gdb.decode.tandem.csrs import MTIME, PRIVILEGE
from rvtrace_gdb.decode.tandem.layout import FPR, FPR_END, GPR
from rvtrace_gdb.support.text import number_in

X = (
    "zero", "ra", "sp", "gp", "tp", "t0", "t1", "t2", "s0", "s1", *(f"a{i}" for i in range(8)),
    *(f"s{i}" for i in range(2, 12)), "t3", "t4", "t5", "t6",
)  # fmt: skip
F = (
    *(f"ft{i}" for i in range(8)), "fs0", "fs1", *(f"fa{i}" for i in range(8)), *(f"fs{i}" for i in range(2, 12)),
    *(f"ft{i}" for i in range(8, 12)),
)  # fmt: skip
_OTHERS = {"sptbr": "satp", "mbadaddr": "mtval", "sbadaddr": "stval", "dscratch": "dscratch0"}
NUMBERS = {
    **{name: GPR + n for n, name in enumerate(X)},
    **{name: FPR + n for n, name in enumerate(F)},
    **{f"x{n}": GPR + n for n in range(32)},
    **{f"f{n}": FPR + n for n in range(32)},
    **CSRS,
    **{other: CSRS[name] for other, name in _OTHERS.items()},
    "fp": GPR + 8,
    "priv": PRIVILEGE,
}
"""Of the names gdb and its stubs use."""
_STATES = {"privilege": PRIVILEGE, "mtime": MTIME}
_UNNAMED = re.compile("csr([0-9]{1,4})")
_NUMBER = re.compile("0x[0-9a-f]{1,16}|[0-9]{1,20}")


def regno_of(name: str) -> int | None:
    """The number of a register as gdb and stubs name it: csr2048 is the CSR 0x800. None: no register of a trace."""
    found = _UNNAMED.fullmatch(name)
    if found and int(found[1]) < GPR:
        return int(found[1])
    return NUMBERS.get(name)


def number_of(text: str) -> int | None:
    """As `regno_of`, of what a user writes: $MSTATUS, 0x300, privilege, mtime, too."""
    name = text.removeprefix("$").lower()
    if _NUMBER.fullmatch(name):
        number = number_in(name)
        return number if number < FPR_END else None
    return _STATES.get(name, regno_of(name))

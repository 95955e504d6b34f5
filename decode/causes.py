"""Traps in words: what the codes in mcause, scause and vscause mean.

Source: The RISC-V Instruction Set Manual, volume II, "Machine Cause (mcause) Register", table of interrupt and
exception codes.
"""

_EXCEPTIONS = {
    0: "instruction address misaligned",
    1: "instruction access fault",
    2: "illegal instruction",
    3: "breakpoint",
    4: "load address misaligned",
    5: "load access fault",
    6: "store/AMO address misaligned",
    7: "store/AMO access fault",
    8: "environment call from U-mode or VU-mode",
    9: "environment call from HS-mode",
    10: "environment call from VS-mode",
    11: "environment call from M-mode",
    12: "instruction page fault",
    13: "load page fault",
    15: "store/AMO page fault",
    16: "double trap",
    18: "software check",
    19: "hardware error",
    20: "instruction guest-page fault",
    21: "load guest-page fault",
    22: "virtual instruction",
    23: "store/AMO guest-page fault",
}
_INTERRUPTS = {
    1: "supervisor software interrupt",
    2: "virtual supervisor software interrupt",
    3: "machine software interrupt",
    5: "supervisor timer interrupt",
    6: "virtual supervisor timer interrupt",
    7: "machine timer interrupt",
    9: "supervisor external interrupt",
    10: "virtual supervisor external interrupt",
    11: "machine external interrupt",
    12: "supervisor guest external interrupt",
    13: "counter-overflow interrupt",
}


def trap_text(cause: int, interrupt: bool) -> str:
    """A trap in words, with its code."""
    name = (_INTERRUPTS if interrupt else _EXCEPTIONS).get(cause)
    kind = "interrupt" if interrupt else "exception"
    return f"{kind} {cause}" if name is None else f"{kind} {cause} ({name})"

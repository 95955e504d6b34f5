"""Repeated reads of one address, a data port that has another word each time, as loops inside OpenOCD.

One by one they are exact. `read_memory` sets the system bus up anew for each, some eight scans on JTAG. In a burst a
read of sbdata0 starts the next access (sbreadondata), so that a word is two scans. Where an access of a burst fails, or
comes too late, it is not known how many there were: whoever reads a port that advances must then set it back.

Ref: RISC-V Debug Specification 1.0, section 3.10 "System Bus Access"; OpenOCD User's Guide 0.12.0, "RISC-V Debug
Module Access Commands" (dmi_read, dmi_write).
"""

from rvtrace_gdb.transport.system_bus import (
    CLEAR,
    SBACCESS32,
    SBADDRESS0,
    SBADDRESS1,
    SBBUSY,
    SBCS,
    SBDATA0,
    SBREADONADDR,
    SBREADONDATA,
    address_bits,
)

_PATIENCE = 16  # reads of sbcs, until the bus is no longer busy


def single_reads(read: str, count: int) -> str:
    """Return Tcl whose result is a line with what *count* commands *read* gave, up to one that fails, and its error."""
    return (
        "set _rvtrace_words {}; set _rvtrace_error {}; "
        f"for {{set _rvtrace_i 0}} {{$_rvtrace_i < {count}}} {{incr _rvtrace_i}} {{"
        f"if {{[catch {{{read}}} _rvtrace_word]}} {{set _rvtrace_error $_rvtrace_word; break}}; "
        "lappend _rvtrace_words $_rvtrace_word}; "
        'set _rvtrace_words "$_rvtrace_words\n$_rvtrace_error"'
    )


def bus_width(prefix: str) -> str:
    """Return Tcl whose result `bus_address_bits` reads."""
    return f"{prefix}riscv dmi_read {SBCS:#x}"


def burst(prefix: str, address: int, count: int, bits: int) -> str:
    """Return Tcl whose result is what *count* reads of *address* gave, and then sbcs. *prefix*: that of a target's
    commands; *bits*: the width of addresses on the bus.
    """
    read, write = f"{prefix}riscv dmi_read", f"{prefix}riscv dmi_write"
    high = f"{write} {SBADDRESS1:#x} {address >> 32:#x}; " if bits > 32 else ""
    return (
        f"{write} {SBCS:#x} {SBREADONADDR | SBREADONDATA | SBACCESS32 | CLEAR:#x}; "
        f"{high}{write} {SBADDRESS0:#x} {address & 0xFFFF_FFFF:#x}; set _rvtrace_words {{}}; "
        f"for {{set _rvtrace_i 1}} {{$_rvtrace_i < {count}}} {{incr _rvtrace_i}} "
        f"{{lappend _rvtrace_words [{read} {SBDATA0:#x}]}}; "
        f"for {{set _rvtrace_i 0}} {{$_rvtrace_i < {_PATIENCE}}} {{incr _rvtrace_i}} "
        f"{{set _rvtrace_sbcs [{read} {SBCS:#x}]; if {{!($_rvtrace_sbcs & {SBBUSY:#x})}} break}}; "
        f"{write} {SBCS:#x} {SBACCESS32 | CLEAR:#x}; lappend _rvtrace_words [{read} {SBDATA0:#x}]; "
        "join [concat $_rvtrace_words $_rvtrace_sbcs]"
    )


def burst_words(answer: str, count: int) -> list[int] | None:
    """Return the words that `burst` read; None if an access failed, or was too slow."""
    try:
        *words, sbcs = [int(word, 16) for word in answer.split()]
    except ValueError:
        return None
    return words if len(words) == count and not sbcs & (CLEAR | SBBUSY) else None


def bus_address_bits(answer: str) -> int:
    """Return the width of addresses on the system bus, 0 if it cannot be used, given what a read of sbcs answered."""
    try:
        return address_bits(int(answer, 16))
    except ValueError:
        return 0

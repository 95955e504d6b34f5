"""The registers of a debug module through which a debugger accesses the system bus: their addresses, and bits of sbcs.

Ref: RISC-V Debug Specification 1.0, sbcs, sbaddress and sbdata in 3.14; 0.13.2.
"""

SBCS, SBADDRESS0, SBADDRESS1, SBDATA0 = 0x38, 0x39, 0x3A, 0x3C
SBBUSYERROR, SBBUSY = 1 << 22, 1 << 21
SBREADONADDR, SBACCESS32, SBAUTOINCREMENT, SBREADONDATA = 1 << 20, 2 << 17, 1 << 16, 1 << 15
SBERROR = 7 << 12
CLEAR = SBBUSYERROR | SBERROR
VERSION_SHIFT, VERSION_1 = 29, 1
HAS_32 = 1 << 2


def address_bits(sbcs: int) -> int:
    """Return the width of addresses on the bus (sbasize), 0 if a debugger cannot access it with 32 bits at once."""
    return sbcs >> 5 & 0x7F if sbcs >> VERSION_SHIFT == VERSION_1 and sbcs & HAS_32 else 0

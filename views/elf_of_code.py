"""An ELF file made of nothing but code at addresses: how code that is in no ELF is shown to a disassembler.

Layout and values: System V ABI, ELF chapters 4 and 5; RISC-V ELF psABI (e_machine 243, e_flags EF_RISCV_RVC).
"""

import struct
from collections.abc import Sequence

_EM_RISCV, _EF_RISCV_RVC, _ET_EXEC = 243, 1, 2
_SHT_PROGBITS, _SHT_STRTAB, _SHF_ALLOC_EXEC = 1, 3, 0x6
_NAMES = b"\0.text\0.shstrtab\0"


def elf_of_code(code: Sequence[tuple[int, bytes]], xlen: int) -> bytes:
    """An executable with one section per (address, bytes)."""
    # e_type.. as half words, then the address-sized fields; section headers are all address-sized but name, type, link,
    # info
    header, section = ("<HHIQQQIHHHHHH", "<IIQQQQIIQQ") if xlen == 64 else ("<HHIIIIIHHHHHH", "<IIIIIIIIII")
    start = 16 + struct.calcsize(header)
    sections = [struct.pack(section, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)]
    body = b""
    for address, data in code:
        at = start + len(body)
        sections.append(struct.pack(section, 1, _SHT_PROGBITS, _SHF_ALLOC_EXEC, address, at, len(data), 0, 0, 2, 0))
        body += data
    sections.append(struct.pack(section, 7, _SHT_STRTAB, 0, 0, start + len(body), len(_NAMES), 0, 0, 1, 0))
    body += _NAMES
    ident = b"\x7fELF" + bytes([2 if xlen == 64 else 1, 1, 1]) + bytes(9)
    fields = (_ET_EXEC, _EM_RISCV, 1, 0, 0, start + len(body), _EF_RISCV_RVC, start, 0, 0)
    shape = (struct.calcsize(section), len(sections), len(sections) - 1)
    return ident + struct.pack(header, *fields, *shape) + body + b"".join(sections)

"""Instruction text for code that gdb cannot read: of a process or a kernel in a capture, of a ROM of another machine.

gdb 13 and later lets Python give its disassembler the bytes; for others the bytes themselves are shown.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping
from typing import Any

import gdb

from rvtrace_gdb.gdbext.printing import columns

with contextlib.suppress(ImportError):  # gdb < 13
    import gdb.disassembler

_ADDRESSES = (1 << 64) - 1
_ROW = re.compile(r"(?:=> |   )0x(?P<address>[0-9a-f]+)(?: <.*?>)?:\t(?P<text>.*)$")
_RAW_WIDTH = {4: 18, 8: 16}  # gdb's column for raw bytes, by the digits of a unit


def texts(codes: Mapping[int, bytes], raw: bool) -> dict[int, str]:
    """What `disassemble` would print behind each address if these instructions were there. `raw`: with the bytes.

    Each by itself: gdb's comment on an address that two instructions make (`# 0x80001130 <table>`) is not there.
    """
    found: dict[int, str] = {}
    for start, code in _runs(codes):
        found.update(_disassembled(start, code))
    return {pc: _line(code, found.get(pc), raw) for pc, code in codes.items()}


def by_python(start: int, last: int, raw: bool) -> dict[int, str]:
    """The instructions that begin at `start` to `last` in gdb's memory, as `texts`, without the command `disassemble`:
    while the TUI shows code, that prints nothing and moves the window. Raises gdb.MemoryError.
    """
    inferior = gdb.selected_inferior()
    found = inferior.architecture().disassemble(start, last)
    codes = [bytes(inferior.read_memory(it["addr"], it["length"])) if raw else b"" for it in found]
    return {it["addr"] & _ADDRESSES: _line(code, columns(it["asm"]), raw) for it, code in zip(found, codes)}


def _runs(codes: Mapping[int, bytes]) -> Iterator[tuple[int, bytes]]:
    """Stretches without holes: address and bytes."""
    start, run = 0, b""
    for pc in sorted(codes):
        if run and pc != start + len(run):
            yield start, run
            run = b""
        if not run:
            start = pc
        run += codes[pc]
    if run:
        yield start, run


def _line(code: bytes, instruction: str | None, raw: bool) -> str:
    if instruction is not None and not raw:
        return instruction
    units = _units(code)
    if instruction is None:
        instruction = f".{len(units[0]) // 2}byte\t" + ", ".join(f"0x{unit}" for unit in units)
    return (f"{' '.join(units):<{_RAW_WIDTH[len(units[0])]}}\t" if raw else "") + instruction


def _units(code: bytes) -> list[str]:
    """Words of 4 bytes, or of 2 if those do not fit, as gdb shows them."""
    size = 4 if len(code) % 4 == 0 else 2
    return [code[at : at + size][::-1].hex() for at in range(0, len(code), size)]


def _disassembled(start: int, code: bytes) -> dict[int, str]:
    """Nothing where this gdb cannot be asked, or takes the program for one of another architecture."""
    if not hasattr(gdb, "disassembler") or "riscv" not in gdb.execute("show architecture", to_string=True):
        return {}
    from rvtrace_gdb.gdbext import disassembly  # which lists instructions itself

    with _given(start, code), contextlib.suppress(gdb.error):
        if disassembly.assembly_window():
            return by_python(start, start + len(code) - 1, raw=False)
        printed = gdb.execute(f"disassemble {start:#x},{start + len(code):#x}", to_string=True)
        found = instructions(printed)
        return by_python(start, start + len(code) - 1, raw=False) if found is None else found
    return {}


def instructions(printed: str) -> dict[int, str] | None:
    """What `disassemble` printed, by address. None where the lines are not those of instructions in their order: names
    in a program may hold the end of a line, and what looks like another one.
    """
    found: dict[int, str] = {}
    before = -1
    for line in printed.split("\n")[1:-2]:
        match = _ROW.match(line)
        address = -1 if match is None else int(match["address"], 16)
        if match is None or address <= before:
            return None
        found[address] = columns(match["text"])
        before = address
    return found


@contextlib.contextmanager
def _given(start: int, code: bytes) -> Iterator[None]:
    """While this lasts, gdb's disassembler finds `code` at `start`, and nothing anywhere else."""
    before = gdb.disassembler.register_disassembler(_disassembler(start, code), None)
    try:
        yield
    finally:
        gdb.disassembler.register_disassembler(before, None)


def _disassembler(start: int, code: bytes) -> Any:
    class Info(gdb.disassembler.DisassembleInfo):
        def read_memory(self, length: int, offset: int = 0) -> bytes:
            address = self.address + offset & _ADDRESSES  # gdb 13 has negative ones
            at = address - start
            if not 0 <= at <= len(code) - length:
                raise gdb.MemoryError(f"Cannot access memory at address {address:#x}")
            return code[at : at + length]

    class Disassembler(gdb.disassembler.Disassembler):
        def __init__(self) -> None:
            super().__init__("rvtrace")

        def __call__(self, info: Any) -> Any:
            return gdb.disassembler.builtin_disassemble(Info(info))

    return Disassembler()

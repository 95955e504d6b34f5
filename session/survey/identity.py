"""What a chip behind OpenOCD says of itself: IDCODEs of its TAPs, who made its harts, a device tree in its memory."""

import re
from collections.abc import Iterable

from rvtrace_gdb.session.description import dtb
from rvtrace_gdb.session.description.dtb import DeviceTreeError, Node
from rvtrace_gdb.session.description.library.proposal import ChipIdentity
from rvtrace_gdb.session.survey.harts import SurveyedHart
from rvtrace_gdb.session.target.link import Link
from rvtrace_gdb.support.errors import Progress, RvtraceError, silent

IDCODES = "foreach tap [jtag names] {echo -n [format {0x%08x } [jtag cget $tap -idcode]]}"
"""OpenOCD's command that prints the IDCODEs that were read when it connected."""
_CODE = re.compile(r"0x([0-9a-f]{8})\b")
_HEADER = 8  # bytes: the magic number, and the size of the whole
_MOST = 2 << 20
"""Bytes of a device tree that are read: Linux' bootloaders keep 2 MiB for it."""
_WORD = 4  # memory is read in whole ones
_BOOT_HARTS = 4096


def chip(link: Link, harts: Iterable[SurveyedHart], tree: Node | None = None) -> ChipIdentity:
    """Return what is known of a chip. *tree*: its device tree. What it does not say is left out."""
    ids = [(hart.ids["mvendorid"], hart.ids["marchid"]) for hart in harts if {"mvendorid", "marchid"} <= {*hart.ids}]
    return ChipIdentity(idcodes(link), tuple(ids), () if tree is None else tree.strings("compatible"))


def idcodes(link: Link) -> tuple[int, ...]:
    """Return the IDCODEs of the TAPs, as OpenOCD found them; () if it does not tell."""
    try:
        said = link.command(f"capture {{{IDCODES}}}")
    except RvtraceError:
        return ()
    return tuple(code for found in _CODE.findall(said) if (code := int(found, 16)))


def tree_in_memory(link: Link, address: int, progress: Progress = silent) -> Node:
    """Return the device tree in the chip's memory at an address that the user named. Raises `DeviceTreeError`, and the
    transport's errors.
    """
    where = f"memory at {address:#x}"
    header = link.read_block(address, _HEADER)
    size = int.from_bytes(header[4:], "big")
    if not header.startswith(dtb.MAGIC):
        begins = f"{header[:4].hex()}, not {dtb.MAGIC.hex()}"
        raise DeviceTreeError(f"there is no device tree: it begins with {begins}", where)
    if not _HEADER < size <= _MOST:
        raise DeviceTreeError(f"its header says that it has {size} bytes, and {_MOST} are read at most", where)
    return dtb.read(link.read_block(address, -(-size // _WORD) * _WORD, progress)[:size], where)


def booted_with(link: Link, hart: SurveyedHart) -> int | None:
    """Return where a halted hart has a device tree, if it stands where firmware or a kernel begins: a0 is its number
    and a1 the address then (Linux, "RISC-V Kernel Boot Requirements"). None if it does not look like that.
    """
    if hart.state != "halted":
        return None
    try:
        said = link.command(f"{hart.name} get_reg -force {{a0 a1}}")
        values = dict(zip(said.split()[::2], (int(word, 16) for word in said.split()[1::2]), strict=True))
    except (RvtraceError, ValueError):
        return None
    number, address = values.get("a0", _BOOT_HARTS), values.get("a1", 0)
    return address if number < _BOOT_HARTS and address and address % 8 == 0 else None

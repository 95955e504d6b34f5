"""What is checked and written down when a trace begins, or a capture is opened."""

import os
from datetime import UTC, datetime

from rvtrace_gdb.decode.image import Image
from rvtrace_gdb.session import decoding
from rvtrace_gdb.session.captured import Capture
from rvtrace_gdb.session.description import Description
from rvtrace_gdb.session.errors import NoElf, WrongXlen
from rvtrace_gdb.session.link import Link
from rvtrace_gdb.session.program import Program
from rvtrace_gdb.session.version import tool
from rvtrace_gdb.support.text import printable

GIVE_IT = "give the ELF (in gdb: `file app.elf`, in the shell: --elf app.elf)"


def begun(target: str, image: Image) -> Capture:
    """The capture of a trace that begins: what does not change any more."""
    created = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return Capture(created, tool(), target, image.xlen, decoding.identity_of(image), (), (), ())


def program_of(elf: str | None) -> Program:
    """What runs on the target. Raises NoElf."""
    if elf is None:
        raise NoElf("no program: load the ELF that runs on the target first (`file app.elf`)")
    return Program(elf)


def check_xlen(image: Image, description: Description, hart: int = 0, link: Link | None = None) -> None:
    """Raises WrongXlen when the program is not for this target. *hart*: what *link* leads to, if there is one."""
    told = [(description.xlen, description.file)]
    if link is not None:
        told.append((link.xlen(), f"hart {hart}"))
    for xlen, whose in told:
        if xlen is not None and xlen != image.xlen:
            raise WrongXlen(image.path, image.xlen, whose, xlen)


def elf_of(capture: Capture, file: str) -> str:
    """Where the program was when it was captured, if it still is there; "" for a capture that has all its code."""
    if not capture.needs_elf:
        return ""
    if capture.elf is None:
        raise NoElf(f"{file} does not say with which program it was made: {GIVE_IT}")
    if not os.path.isfile(capture.elf.path):
        raise NoElf(f"{file} was made with {printable(capture.elf.path)}, which is not here: {GIVE_IT}")
    return capture.elf.path

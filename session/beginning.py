"""What is checked and written down when a trace begins, or a capture is opened."""

from datetime import UTC, datetime
from pathlib import Path

from decode.image import Image
from session import decoding
from session.captured import Capture, printable
from session.description import Description
from session.errors import NoElf, WrongXlen
from session.link import Link
from session.version import tool

GIVE_IT = "give the ELF (in gdb: `file app.elf`, in the shell: --elf app.elf)"


def begun(target: str, image: Image) -> Capture:
    """The capture of a trace that begins: what does not change any more."""
    created = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return Capture(created, tool(), target, image.xlen, decoding.identity_of(image), (), (), ())


def check_xlen(image: Image, description: Description, hart: int, link: Link) -> None:
    """Raises WrongXlen when the program is not for this target. *hart*: what *link* leads to."""
    for xlen, whose in ((description.xlen, description.file), (link.xlen(), f"hart {hart}")):
        if xlen is not None and xlen != image.xlen:
            raise WrongXlen(image.path, image.xlen, whose, xlen)


def elf_of(capture: Capture, file: str) -> str:
    """Where the program was when it was captured, if it still is there; "" for a capture that has all its code."""
    if not capture.needs_elf:
        return ""
    if capture.elf is None:
        raise NoElf(f"{file} does not say with which program it was made: {GIVE_IT}")
    if not Path(capture.elf.path).is_file():
        raise NoElf(f"{file} was made with {printable(capture.elf.path)}, which is not here: {GIVE_IT}")
    return capture.elf.path

"""The debug information of ELF files (DWARF), as pyelftools reads it, which is loaded when there is a file to read."""

import hashlib
from io import BytesIO
from pathlib import Path
from typing import Any

from rvtrace_gdb.decode.elf import Elf


def debug_information(elf: Elf) -> Any:
    """What pyelftools calls the DWARFInfo of a file; None where it is gone, or is another one by now.

    What is asked of it raises one of `errors` where the file is damaged.
    """
    from elftools.elf.elffile import ELFFile

    try:
        content = Path(elf.path).read_bytes()
        if hashlib.sha256(content).hexdigest() != elf.sha256:
            return None
        file: Any = ELFFile(BytesIO(content))
        return file.get_dwarf_info()
    except errors():
        return None


def errors() -> tuple[type[Exception], ...]:
    """What pyelftools raises where a file is damaged, or has what it does not read (segments), or refers to itself."""
    from elftools.common.exceptions import DWARFError

    from rvtrace_gdb.decode.elf_file import ERRORS

    return *ERRORS, DWARFError, NotImplementedError, RecursionError

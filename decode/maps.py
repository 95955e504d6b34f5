"""What a Linux process had in its memory: the lines of /proc/PID/maps.

Source: proc_pid_maps(5) and the kernel's fs/proc/task_mmu.c, which writes them.
"""

import re
from pathlib import Path
from typing import NamedTuple

from rvtrace_gdb.decode.errors import BadMaps as BadMaps

_LINE = re.compile(
    r"(?P<start>[0-9a-f]+)-(?P<end>[0-9a-f]+) (?P<permissions>[r-][w-][x-][sp]) (?P<offset>[0-9a-f]+)"
    r" [0-9a-f]+:[0-9a-f]+ [0-9]+(?: +(?P<name>[^ ].*))? *"
)
_DELETED = " (deleted)"
_SHOWN = 60  # characters of a bad line in its error


class Mapping(NamedTuple):
    """One line.

    start, end   addresses, *end* is the first one behind
    permissions  "r-xp": read, write, execute, private or shared
    offset       of *start* in the file, in bytes
    name         the file's absolute path, "[vdso]" and the like, "" for anonymous memory
    deleted      there is no file of that name any more, or another one
    """

    start: int
    end: int
    permissions: str
    offset: int
    name: str
    deleted: bool = False

    @property
    def executable(self) -> bool:
        """Whether code can run there."""
        return self.permissions[2] == "x"


def read_maps(path: str | Path) -> list[Mapping]:
    """The mappings in a copy of /proc/PID/maps, in rising order. Raises BadMaps, naming the line."""
    try:
        text = Path(path).read_bytes().decode("utf-8", "surrogateescape")  # file names may hold any byte
    except OSError as error:
        raise BadMaps(str(path), 0, f"cannot be read: {error.strerror}") from error
    return parse_maps(text, str(path))


def parse_maps(text: str, path: str = "maps") -> list[Mapping]:
    """As `read_maps`, from *text*; *path* is what errors call it."""
    mappings: list[Mapping] = []
    for number, line in enumerate(text.split("\n"), 1):
        line = line.removesuffix("\r")
        if line.strip():
            mapping = _mapping(line, path, number)
            if mappings and mapping.start < mappings[-1].end:
                raise BadMaps(path, number, "is not behind the mapping before it: is this the memory of one process?")
            mappings.append(mapping)
    if not mappings:
        raise BadMaps(path, 0, "holds no mapping (those of a kernel thread are empty)")
    return mappings


def _mapping(line: str, path: str, number: int) -> Mapping:
    match = _LINE.fullmatch(line)
    if match is None:
        raise BadMaps(path, number, f"not a line of /proc/PID/maps: {line[:_SHOWN]!r}")
    start, end, offset = (int(match[field], 16) for field in ("start", "end", "offset"))
    if end <= start:
        raise BadMaps(path, number, f"the mapping ends at 0x{end:x}, which is not behind its start 0x{start:x}")
    name = (match["name"] or "").replace("\\012", "\n")  # the one character the kernel escapes
    return Mapping(start, end, match["permissions"], offset, name.removesuffix(_DELETED), name.endswith(_DELETED))

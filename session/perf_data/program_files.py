"""The files that ran, on this machine: found by name or in perf's cache, and taken only when their build-id is right.

perf keeps copies of what ran in ~/.debug, or where PERF_BUILDID_DIR says, in folders named by build-id (`perf help
buildid-cache`). `perf record --kcore` puts the kernel's memory beside the data: kcore, an ELF file with the code of
kernel and modules at their addresses.
"""

import os
from collections.abc import Iterable
from collections.abc import Mapping as MappingOf
from dataclasses import dataclass, field
from pathlib import Path

from rvtrace_gdb.decode.program.elf import BadElf, Elf
from rvtrace_gdb.decode.program.image import Image, read_elf
from rvtrace_gdb.decode.program.linux.user_code import MappedFiles, Mapping, add_kernel_pages
from rvtrace_gdb.session.perf_data.processes import FileMapping

KERNEL_TEXT = "[kernel.kallsyms]"
"""How perf calls the kernel; its mapping's name has a symbol behind it."""
_IN_CACHE = ("elf", "vdso", "vmlinux")  # names of the file itself in the folder of a build-id
_TEXT_SYMBOL = "_text"
_KALLSYMS = "kallsyms"


@dataclass(frozen=True)
class BuildIdFiles(MappedFiles):
    """Files of mappings that have the right build-id.

    build_ids  by the names of the mappings, in hexadecimal
    cache      perf's folder of files by build-id
    refused    why a file was not taken, by the names of the mappings; filled by `find`
    """

    build_ids: MappingOf[str, str] = field(default_factory=dict)
    cache: Path = Path()
    refused: dict[str, str] = field(default_factory=dict)

    def find(self, mapping: Mapping) -> Path | None:
        """Return the file of a mapping, None if there is none with its build-id."""
        build_id = self.build_ids.get(mapping.name, "")
        for path in (super().find(mapping), *self._cached(build_id)):
            if path is not None and path.is_file() and self._is_right(path, mapping.name, build_id):
                self.refused.pop(mapping.name, None)
                return path
        return None

    def _cached(self, build_id: str) -> list[Path]:
        folder = self.cache / ".build-id" / build_id[:2] / build_id[2:]
        return [folder / name for name in _IN_CACHE] if build_id else []

    def _is_right(self, path: Path, name: str, build_id: str) -> bool:
        try:
            found = read_elf(path).build_id or ""
        except BadElf as error:
            self.refused[name] = str(error)
            return False
        if build_id and found and not _same(build_id, found):
            self.refused[name] = f"{path} has build-id {found}, and {name} had {build_id}"
            return False
        return True


def _same(one: str, other: str) -> bool:
    """Return whether two build-ids are the same: perf fills short ones with zeros."""
    size = min(len(one), len(other))
    return one[:size] == other[:size] and not (one[size:] + other[size:]).strip("0")


def cache_folder() -> Path:
    """Return perf's folder of files by build-id."""
    return Path(os.environ.get("PERF_BUILDID_DIR") or Path.home() / ".debug")


def as_maps(mappings: Iterable[FileMapping]) -> list[Mapping]:
    """Return the executable mappings of a process as /proc/PID/maps has them."""
    return [
        Mapping(it.start, it.end, "r-xp", it.offset, "" if it.name == "//anon" else it.name)
        for it in mappings
        if it.executable
    ]


def add_kcore(image: Image, folder: Path) -> None:
    """Add kernel and modules, as they were, with their names, of a folder that `perf record --kcore` made. Raises
    BadElf, BadMemory.
    """
    add_kernel_pages(image, folder)
    if (folder / _KALLSYMS).is_file():
        image.add_elf(read_elf(folder / _KALLSYMS), loaded=False)


def kernel_bias(mappings: tuple[FileMapping, ...], vmlinux: Elf) -> int:
    """Return how far above its own addresses the kernel was in memory (KASLR), from where its symbol _text was; 0: not
    known.
    """
    text = next((it for it in mappings if it.name == KERNEL_TEXT + _TEXT_SYMBOL), None)
    own = next((it.address for part in vmlinux.sections for it in part.symbols if it.name == _TEXT_SYMBOL), None)
    return text.start - own if text is not None and own is not None else 0

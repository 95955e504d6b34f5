"""The code of a recording: the kernel's, and that of each process, from files on this machine."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePath

from rvtrace_gdb.decode.program.image import Image, read_elf
from rvtrace_gdb.decode.program.linux.user_code import KernelCopies, process_image
from rvtrace_gdb.session.perf_data.processes import KERNEL, PerfProcess, ProcessMemory
from rvtrace_gdb.session.perf_data.program_files import (
    BuildIdFiles,
    add_kcore,
    as_maps,
    cache_folder,
    kernel_bias,
)
from rvtrace_gdb.session.perf_data.recording import PerfRecording
from rvtrace_gdb.support.text import printable


@dataclass(frozen=True)
class PerfPrograms:
    """Where the files that ran are.

    elves         by the user: files that processes had mapped, by the last part of their names, and the kernel
    vdso          the file for [vdso]
    sysroot       the target's root file system
    kernel        what the user copied of the kernel's memory
    """

    elves: tuple[str, ...] = ()
    vdso: str | None = None
    sysroot: str | None = None
    kernel: KernelCopies = field(default_factory=KernelCopies)


@dataclass
class RecordedImages:
    """The images of a recording. *pid*: of this process alone; None: of all. *notes*: about files that were refused."""

    recording: PerfRecording
    programs: PerfPrograms
    pid: int | None = None
    notes: list[str] = field(default_factory=list)
    _images: dict[tuple[int, ProcessMemory], Image] = field(default_factory=dict)

    def kernel(self) -> Image:
        """Return what is in memory in every context: files, then memory as it was. Raises BadElf, BadMemory."""
        image = Image(self.recording.xlen)
        kernel = self.recording.processes.get(KERNEL, PerfProcess(KERNEL))
        for path in self._others():
            elf = read_elf(path)
            image.add_elf(elf, kernel_bias(kernel.mappings, elf))
        if self.recording.kcore is not None:
            add_kcore(image, self.recording.kcore)
        self.programs.kernel.add_to(image)
        return image

    def of_memory(self, process: PerfProcess, memory: ProcessMemory) -> Image:
        """Return the code of a process. Raises BadElf, BadMemory."""
        key = process.pid, memory
        if key not in self._images:
            build_ids = {it.name: it.build_id for it in memory.mappings if it.build_id}
            files = BuildIdFiles(self._user_files(), self.programs.sysroot, build_ids, cache_folder())
            self._images[key] = process_image(as_maps(memory.mappings), files, self.recording.xlen)
            self.notes += map(printable, files.refused.values())
        return self._images[key]

    def processes(self) -> Iterator[PerfProcess]:
        """Yield the processes whose code is wanted."""
        for pid, process in sorted(self.recording.processes.items()):
            if pid != KERNEL and any(it.mappings for it in process.memories) and self.pid in (None, pid):
                yield process

    @cached_property
    def _mapped(self) -> set[str]:
        """The last parts of the names of all files that a process had mapped, whichever is wanted."""
        processes = [process for pid, process in self.recording.processes.items() if pid != KERNEL]
        return {PurePath(it.name).name for process in processes for one in process.memories for it in one.mappings}

    def _others(self) -> list[str]:
        """Return the files of the user that no process had mapped: the kernel."""
        return [elf for elf in self.programs.elves if Path(elf).name not in self._mapped]

    def _user_files(self) -> dict[str, str | Path]:
        """Return the files of the user that processes had mapped, by their names there."""
        mapped = self._mapped
        given: dict[str, str | Path] = {Path(elf).name: elf for elf in self.programs.elves if Path(elf).name in mapped}
        if self.programs.vdso is not None:
            given["[vdso]"] = self.programs.vdso
        return given

"""`rvtrace qemu` with a program that waits for gdb, as a child process: for `--qemu`, the tests, and test benches."""

import codecs
import contextlib
import os
import re
import shlex
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from rvtrace_gdb.console.rig import Processes, RigError, listens, wait_until
from rvtrace_gdb.support.errors import RvtraceError

_CHOSEN = {
    "-gdb": "rvtrace chooses the port",
    "-s": "rvtrace chooses the port",
    "-S": "it waits for gdb as it is",
    "-d": "the log is the recorder's",
    "-D": "the log is the recorder's",
    "-daemonize": "it ends with what it was started for",
}
"""Options of QEMU that are not the user's here."""
_USUAL = (
    (("-M", "-machine"), ("-M", "virt")),
    (("-bios",), ("-bios", "none")),
    (("-display", "-nographic"), ("-display", "none")),
    (("-serial", "-nographic"), ("-serial", "stdio")),
    (("-icount", "-accel", "-smp"), ("-icount", "shift=7,sleep=off")),  # 128 ns an instruction
)
"""What is said for the user, if none of the names is given."""
_ERROR = re.compile(r"\S*(qemu-system-|rvtrace)[^ :]*: ")
_LAST_WORDS = 5.0  # seconds for what was printed before the end


class QemuRig(Processes):
    """`with QemuRig(elf, folder, "-smp 2") as rig:` - the program at reset on QEMU, which waits for gdb at gdb_port.

    *options*: of QEMU, as a shell takes them; they may begin with its program. What they do not say is as in
    `machine`. *printed*: gets what the program prints, on another thread. Raises RigError, RvtraceError.
    """

    def __init__(
        self, elf: str | os.PathLike[str], folder: str | os.PathLike[str], options: str = "",
        printed: Callable[[str], None] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(elf, folder)
        self._words = machine(self.elf, options)
        self._printed = printed
        self._reader: threading.Thread | None = None

    def start(self) -> None:
        """Start QEMU with its recorder, and wait until it listens."""
        log = self.folder / "qemu.log"
        command = [sys.executable, "-m", "rvtrace_gdb", "qemu", "--quiet", "--write-target", str(self.target_file)]
        command += ["--", *self._words, "-S", "-gdb", f"tcp:127.0.0.1:{self.gdb_port}"]
        theirs = None if self._printed is None else self._pipe(self._printed)
        try:
            qemu = self._start(command, log, theirs)
        finally:
            if theirs is not None:
                os.close(theirs)
        try:
            wait_until(qemu, "QEMU", log, lambda: self.target_file.exists() and listens(self.gdb_port))
        except RigError as error:
            raise RigError("QEMU did not start", _complaint(error.log)) from None

    def stop(self) -> None:
        """End QEMU, when all that the program printed was told."""
        super().stop()
        if self._reader is not None:
            self._reader.join(_LAST_WORDS)
            self._reader = None

    def _pipe(self, printed: Callable[[str], None]) -> int:
        """What is written into it *printed* gets."""
        ours, theirs = os.pipe()
        text = codecs.getincrementaldecoder("utf-8")(errors="replace")

        def read() -> None:
            with open(ours, "rb", buffering=0) as stream:
                while data := stream.read(1 << 12):
                    with contextlib.suppress(RvtraceError):  # nobody listens; QEMU goes on
                        printed(text.decode(data))

        self._reader = threading.Thread(target=read, daemon=True)
        self._reader.start()
        return theirs


def _complaint(log: str) -> str:
    """What is wrong stands before advice."""
    lines = [line for line in log.splitlines() if _ERROR.match(line)]
    return lines[-1] if lines else log


def machine(elf: Path, options: str) -> list[str]:
    """QEMU's arguments: the user's, and for what they do not say `-M virt -bios none -kernel ELF -display none`.

    What the program prints goes to standard output; the clock of one hart goes by the instructions, so that each run is
    the same.
    Raises RvtraceError for what cannot be said here.
    """
    try:
        words = shlex.split(options)
    except ValueError as error:
        raise RvtraceError(f"--qemu {options}: {str(error).lower()}") from None
    named = 1 if words and "qemu-system" in Path(words[0]).name else 0
    said = {"-" + word.lstrip("-") for word in words[named:] if word.startswith("-")}
    for word in said & _CHOSEN.keys():
        raise RvtraceError(f"--qemu: {word} cannot be given here: {_CHOSEN[word]}")
    if words[named:] and not words[named].startswith("-"):
        raise RvtraceError(f"--qemu {options}: expected arguments of QEMU, as in --qemu '-M virt -smp 2'")
    firmware = "-bios" in said and words[_behind(words, "-bios") : _behind(words, "-bios") + 1] != ["none"]
    if firmware:
        said.add("-kernel")  # it may be the program itself
    missing = [word for names, wanted in _USUAL if not said & set(names) for word in wanted]
    kernel = [] if "-kernel" in said else ["-kernel", str(elf)]
    return [*words[:named], *missing, *kernel, *words[named:]]


def _behind(words: Sequence[str], option: str) -> int:
    return max(at for at, word in enumerate(words) if "-" + word.lstrip("-") == option) + 1

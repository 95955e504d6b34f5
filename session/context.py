"""The context of a request: the program, and the target description that applies."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rvtrace_gdb.session.description.model import Description


@dataclass(frozen=True)
class Context:
    """*elf*: the program, if one is loaded; see `session.program.placement`. *others*: files that the debugger has
    besides, or the same one at another place. *target_file*: the description that the user gave.

    *overrides*: single values that the user gave: encoder_base, ram_sink_base, buffer_start, buffer_size, openocd_host,
    openocd_port.

    *hart*: the selected hart, in the description's numbers. None: the debugger's *thread_hart*, if it was traced, else
    the first.

    *tvec*: mtvec of the selected hart, if it is known: trap packets may lack the address of the handler.

    *openocd*: the value that the debugger's OpenOCD has in a variable, see `session.target.link.checked`.

    *threads*: (number in the remote protocol, hart) of each of the debugger's threads, if any has another hart than its
    number says. *on_hart*: the debugger's number of the thread that is on a hart, if the selected one, a task, is not.
    *candidates*: how many harts the debugger's thread may be, if it is not known which one it is.

    *save_memory*: which memory is saved with a trace, see `session.target.target_state.ranges_of`; None: not said.

    *values*: which values are reconstructed from a trace that has only addresses, see `session.past.choice`: "on",
    "registers" without memory, "off".

    *rtos*: which operating system has tasks, see `session.tasks.task_system.system_of`: "auto", "off", a name, a file.

    *runs*: a number that changes whenever the debugger resumes the program, None if unknown. It prevents repeated
    read-outs of a halted program's trace.
    """

    elf: str | None = None
    target_file: str | None = None
    overrides: Mapping[str, Any] = field(default_factory=dict)
    runs: int | None = None
    hart: int | None = None
    thread_hart: int | None = None
    tvec: int | None = None
    others: tuple[str, ...] = ()
    openocd: str | None = None
    threads: tuple[tuple[int, int | None], ...] = ()
    on_hart: int | None = None
    candidates: int = 0
    save_memory: str | None = None
    values: str = "on"
    rtos: str = "auto"

    def description(self, environ: Mapping[str, str] = os.environ) -> "Description":
        """Return the target description that applies. Raises `DescriptionError`.

        It is the given file, else $RVTRACE_TARGET, else rvtrace.toml beside the ELF, each modified by the overrides,
        else the overrides alone.
        """
        from rvtrace_gdb.session.description.selection import selected  # most requests need no description

        return selected(self._own_elf(), self.target_file, self.overrides, environ)

    def is_described(self, environ: Mapping[str, str] = os.environ) -> bool:
        """Return whether a target description applies, right or wrong."""
        from rvtrace_gdb.session.description.selection import is_described

        return is_described(self._own_elf(), self.target_file, self.overrides, environ)

    def _own_elf(self) -> str | None:
        from rvtrace_gdb.session.program import placement

        return None if self.elf is None else placement(self.elf)[0]

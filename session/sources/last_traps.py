"""What the harts of a trace say of their last traps, asked once for each end that the trace has had."""

from collections.abc import Callable, Iterable

from rvtrace_gdb.controlregs.target import CsrAccess
from rvtrace_gdb.decode.program.csrs import NAMES
from rvtrace_gdb.session.capture.model import CapturedTrap
from rvtrace_gdb.session.target.link import Link, csrs_of
from rvtrace_gdb.session.target.trap_registers import trap_registers
from rvtrace_gdb.support.errors import RvtraceError


class LastTraps:
    """*access* opens the CSRs of a hart. It may raise RvtraceError: then nothing is known."""

    def __init__(self, access: Callable[[int], CsrAccess]) -> None:
        self._access = access
        self._still: frozenset[int] = frozenset()
        self._trace: object = None  # that was asked of
        self._traps: dict[int, CapturedTrap | None] = {}  # None: it could not be found out this time

    @classmethod
    def through(cls, link: Link) -> "LastTraps":
        """Return those of the harts that a link leads to."""
        return cls(lambda hart: csrs_of(link, hart, NAMES))

    def traps(self, trace: object) -> tuple[CapturedTrap, ...]:
        """Return what was said of the end of *trace*, which is what was read out."""
        if trace != self._trace:
            self._traps, self._trace = {}, trace
        return tuple(trap for trap in self._traps.values() if trap is not None)

    def may_ask(self, harts: Iterable[int]) -> None:
        """Note which harts have been halted since the trace was read out: the others may be elsewhere by now.

        Those that could not be asked before are asked again.
        """
        self._still = frozenset(harts)
        self._traps = {hart: trap for hart, trap in self._traps.items() if trap is not None}

    def ask(self, hart: int, trace: object) -> None:
        """Ask a hart, if it has not been asked of this trace, and is where it ends."""
        self.traps(trace)
        if hart in self._still and hart not in self._traps:
            self._traps[hart] = self._read_trap(hart)

    def _read_trap(self, hart: int) -> CapturedTrap | None:
        try:
            found = trap_registers(self._access(hart))
        except RvtraceError:
            return None
        return None if found is None else CapturedTrap(hart, found)

"""CSRs through OpenOCD: its Tcl server, or gdb's `monitor`, which leads to the same interpreter."""

from collections.abc import Callable, Sequence

from rvtrace_gdb.controlregs.csr_access import Access, Answer
from rvtrace_gdb.controlregs.errors import HartRuns
from rvtrace_gdb.session.ctr.access_errors import CsrsNotExposed
from rvtrace_gdb.session.ctr.csr_names import expose_csrs, names, numbers
from rvtrace_gdb.session.errors import HartUnreachable
from rvtrace_gdb.support.progress import Progress, silent
from rvtrace_gdb.transport.openocd_csrs import NOT_EXPOSED, HartNotHalted, OpenOcdCsrs
from rvtrace_gdb.transport.openocd_errors import OpenOcdRefused

_MARK, _END = "<<rvtrace", "rvtrace>>"


class OpenOcdAccess:
    """A `CsrAccess`. *evaluate*: what a script returns in OpenOCD; *hart*: the number of its target there, if given.

    Raises besides CsrsNotExposed and HartUnreachable, when it is used first.
    """

    def __init__(self, evaluate: Callable[[str], str], where: str, hart: int | None, version: str | None) -> None:
        self.name = where
        self._evaluate, self._hart, self._version = evaluate, hart, version
        self._opened: tuple[OpenOcdCsrs, int] | None = None

    @property
    def xlen(self) -> int:
        return self._open()[1]

    def run(self, accesses: Sequence[Access], progress: Progress = silent) -> list[Answer]:
        progress("reading CSRs", 0)
        csrs, _ = self._open()
        try:
            answers = csrs.run(accesses)
        except HartNotHalted as error:
            if error.state == "running":
                raise HartRuns from error
            state = error.state or "unknown"
            raise HartUnreachable(self._hart or 0, f"its state is {state}; see OpenOCD's log") from error
        if answers and answers[-1] == NOT_EXPOSED:
            number = accesses[len(answers) - 1][0]
            answers[-1] = f"{self.name} does not expose it: `riscv expose_csrs {_exposing(number)}` is missing"
        return answers

    def _open(self) -> tuple[OpenOcdCsrs, int]:
        if self._opened is None:
            target = self._target()
            csrs = OpenOcdCsrs(self._evaluate, target, names)
            wanted = numbers(self._version)
            if not any(csrs.exposed(wanted).values()):
                raise CsrsNotExposed(self.name, expose_csrs(self._version))
            self._opened = csrs, self._width(target)
        return self._opened

    def _target(self) -> str | None:
        """OpenOCD's name of the hart."""
        targets = self._evaluate("target names").split()
        if self._hart is None or len(targets) <= 1:
            return targets[0] if len(targets) == 1 else None
        if self._hart >= len(targets):
            raise HartUnreachable(self._hart, f"OpenOCD counts {len(targets)} ({', '.join(targets)})")
        return targets[self._hart]

    def _width(self, target: str | None) -> int:
        """misa is 0 where it is not implemented; then the width of pc says it."""
        prefix = "" if target is None else f"{target} "
        text = self._evaluate(f"lindex [{prefix}get_reg pc] 1")
        return 32 if len(text.strip()) <= len("0x00000000") else 64


class Monitored:
    """Scripts through gdb's `monitor`: *monitor* gives what a command prints, the log with it."""

    def __init__(self, monitor: Callable[[str], str]) -> None:
        self._monitor = monitor

    def __call__(self, script: str) -> str:
        """Raises OpenOcdRefused."""
        said = self._monitor(
            f"set _rvtrace_code [catch {{{script}}} _rvtrace]; "
            f'return -level 0 "{_MARK} $_rvtrace_code ${{_rvtrace}}{_END}"'
        )
        _, mark, rest = said.partition(_MARK)
        code, _, result = rest.lstrip().partition(" ")
        if not mark or _END not in rest or code != "0":
            raise OpenOcdRefused(script[:60], (result if mark else said).partition(_END)[0])
        return result.partition(_END)[0]


def _exposing(number: object) -> str:
    known = names(number) if isinstance(number, int) else []
    return "=".join([str(number), *known])

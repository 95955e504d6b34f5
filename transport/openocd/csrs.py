"""The CSRs of a hart behind OpenOCD, which executes a whole list of accesses as one Tcl script.

OpenOCD names a CSR it does not know `csr_NAME` or `csrNUMBER`, as `riscv expose_csrs` in its configuration declares;
without that line it has no such register. `get_reg` without -force returns the cached value, even of a register that
was never read.

Ref: OpenOCD User's Guide 0.12.0, sections "CPU Configuration" (get_reg, set_reg), "RISC-V" (expose_csrs); JTAG and
`monitor` lead to the same interpreter.
"""

import re
from collections.abc import Callable, Sequence

from rvtrace_gdb.transport.openocd.errors import OpenOcdError, OpenOcdRefused, OpenOcdTooOld
from rvtrace_gdb.transport.openocd.memory_ways import HAS_READ_MEMORY, is_missing

RequestedRegister = int | str
RequestedAccess = tuple[RequestedRegister, int | None]
OpenOcdAnswer = int | str
Evaluate = Callable[[str], str]
"""Returns the result of a Tcl script in OpenOCD. Raises OpenOcdError leaves."""
NOT_EXPOSED = "OpenOCD does not expose it"
_UNKNOWN = re.compile(r"unknown register|register .* not found|no such register", re.IGNORECASE)
_SCRIPT_CHARACTERS = 6000  # characters of a script: `monitor` sends two digits for each, in a packet of 16 KB


class HartNotHalted(OpenOcdError):
    """OpenOCD can access registers of halted harts only. *state*: the state of this hart."""

    def __init__(self, state: str) -> None:
        super().__init__(f"the hart is {state or 'not known'}, not halted: its registers cannot be reached")
        self.state = state


class OpenOcdCsrs:
    """The CSRs of *target* ("riscv.cpu0"); None: OpenOCD's current target.

    *names*: the possible names of a CSR, by number, the likeliest first; OpenOCD's own forms are added here.
    """

    def __init__(self, evaluate: Evaluate, target: str | None, names: Callable[[int], Sequence[str]]) -> None:
        self._evaluate, self._names = evaluate, names
        self._target = "[target current]" if target is None else target
        self._found: dict[int, str | None] = {}

    def exposed(self, numbers: Sequence[int]) -> dict[int, str | None]:
        """Return OpenOCD's name of each of some CSRs; None where it has no register for it."""
        unknown = [number for number in dict.fromkeys(numbers) if number not in self._found]
        if unknown:
            self._find(unknown)
        return {number: self._found[number] for number in numbers}

    def run(self, accesses: Sequence[RequestedAccess]) -> list[OpenOcdAnswer]:
        """Do the accesses and return the answers up to and including the first refusal; the accesses after it are not
        done.

        Raises HartNotHalted.
        """
        names = self.exposed([register for register, _ in accesses if isinstance(register, int)])
        answers: list[OpenOcdAnswer] = []
        pieces: list[str] = []
        for register, value in accesses:
            name = names[register] if isinstance(register, int) else register
            if name is None:
                return answers if self._flush(pieces, answers) else [*answers, NOT_EXPOSED]
            pieces.append(f"{name} {'-' if value is None else hex(value)}")
            if sum(map(len, pieces)) + len(pieces) > _SCRIPT_CHARACTERS and self._flush(pieces, answers):
                return answers
        self._flush(pieces, answers)
        return answers

    def _flush(self, pieces: list[str], answers: list[OpenOcdAnswer]) -> bool:
        """Execute *pieces* and return whether one of them was refused."""
        done = self._script(pieces) if pieces else []
        pieces.clear()
        answers += done
        return bool(done) and isinstance(done[-1], str)

    def read_all(self, registers: Sequence[str]) -> dict[str, int] | None:
        """Return the values of registers by OpenOCD's names, read with one command; None: not all of them can be read.

        OpenOCD looks after all harts of the target before each command, which takes a while if these are many.
        """
        said = self._response(
            f"set _rvtrace_target {self._target}; set _rvtrace_out {{}}; "
            f"catch {{set _rvtrace_out [$_rvtrace_target get_reg -force {{{' '.join(registers)}}}]}}; set _rvtrace_out"
        )
        words = said.split()
        values = {name: _parse_answer(value) for name, value in zip(words[::2], words[1::2], strict=False)}
        found = {name: value for name, value in values.items() if isinstance(value, int)}
        return found if set(registers) <= found.keys() else None

    def _script(self, pieces: Sequence[str]) -> list[OpenOcdAnswer]:
        """Execute *pieces*, which print each value on a line of its own, and the refusal of the last one with a "!" in
        front.
        """
        target = self._target
        said = self._evaluate(
            f"set _rvtrace_target {target}; set _rvtrace_state [$_rvtrace_target curstate]; "
            'if {$_rvtrace_state ne "halted"} {set _rvtrace_out "?$_rvtrace_state"} else {set _rvtrace_out {}; '
            f"foreach {{_rvtrace_reg _rvtrace_value}} {{{' '.join(pieces)}}} {{"
            'if {$_rvtrace_value eq "-"} {set _rvtrace_code [catch {'
            "lindex [$_rvtrace_target get_reg -force $_rvtrace_reg] 1} _rvtrace_said]} else {"
            "set _rvtrace_code [catch {$_rvtrace_target set_reg [list $_rvtrace_reg $_rvtrace_value]; set _ 0x0} "
            "_rvtrace_said]}; "
            'if {$_rvtrace_code} {lappend _rvtrace_out "!$_rvtrace_said"; break}; '
            "lappend _rvtrace_out $_rvtrace_said}; "
            'set _rvtrace_out [join $_rvtrace_out "\\n"]}; set _rvtrace_out'
        )
        if said.startswith("?"):
            raise HartNotHalted(said[1:].strip())
        return [_parse_answer(line) for line in said.split("\n")]

    def _find(self, numbers: Sequence[int]) -> None:
        """Find which of the possible names OpenOCD has. This reads its cache and accesses no hart."""
        spelt = {number: self._spellings(number) for number in numbers}
        every = [name for names in spelt.values() for name in names]
        said = self._response(
            f"if {{[{HAS_READ_MEMORY}] eq {{}}}} {{error {{invalid command name read_memory}}}}; "
            f"set _rvtrace_target {self._target}; set _rvtrace_out {{}}; foreach _rvtrace_reg {{{' '.join(every)}}} {{"
            "catch {$_rvtrace_target get_reg $_rvtrace_reg} _rvtrace_said; "
            'lappend _rvtrace_out "$_rvtrace_reg [string map {\\n { }} $_rvtrace_said]"}; '
            'set _rvtrace_out [join $_rvtrace_out "\\n"]'
        )
        has = {line.split(" ", 1)[0] for line in said.split("\n") if not _UNKNOWN.search(line)}
        for number, names in spelt.items():
            self._found[number] = next((name for name in names if name in has), None)

    def _response(self, script: str) -> str:
        try:
            return self._evaluate(script)
        except OpenOcdRefused as error:
            if is_missing(error.answer):  # OpenOCD was reached in another way, which does not know its version
                raise OpenOcdTooOld("") from error
            raise

    def _spellings(self, number: int) -> list[str]:
        names = self._names(number)
        return [*names, *(f"csr_{name}" for name in names), f"csr{number}", f"csr_csr{number}"]


def _parse_answer(line: str) -> OpenOcdAnswer:
    if line.startswith("!"):
        return " ".join(line[1:].split()) or "OpenOCD gave no reason"
    try:
        return int(line, 16)
    except ValueError:
        return f"OpenOCD answered {line[:40]!r}"

"""The harts that OpenOCD has: their names, their states, and who made them (mvendorid, marchid, mimpid)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from rvtrace_gdb.session.target.link import NO_POWER, Link, other_type
from rvtrace_gdb.transport.openocd.availability import unavailable
from rvtrace_gdb.transport.openocd.csrs import HartNotHalted, OpenOcdCsrs
from rvtrace_gdb.transport.openocd.errors import OpenOcdRefused

ID_REGISTERS: Mapping[int, str] = {0xF11: "mvendorid", 0xF12: "marchid", 0xF13: "mimpid"}
"""RISC-V Privileged Architecture, "Machine-Level CSRs"."""
VENDORS: Mapping[int, str] = {
    0x31E: "Andes",
    0x489: "SiFive",
    0x5B7: "T-Head",
    0x612: "Espressif",
    0x710: "SpacemiT",
}
"""By mvendorid, which is a JEDEC manufacturer ID."""
_GONE = ("unknown", NO_POWER)


@dataclass(frozen=True)
class SurveyedHart:
    """*ids*: the registers that were read, by name. *problem*: why they were not. *other*: the type of OpenOCD's target
    if it is not a RISC-V core.
    """

    number: int
    name: str
    state: str
    ids: Mapping[str, int] = field(default_factory=dict)
    problem: str = ""
    other: str = ""

    @property
    def available(self) -> bool:
        return self.state not in _GONE and not self.other

    @property
    def text(self) -> str:
        """The hart in one line: "hart 0: riscv.cpu0, halted, mvendorid 0x489 (SiFive), marchid 0x7, mimpid 0x1"."""
        return ", ".join([f"hart {self.number}: {self.name}", self.state or "state unknown", *self._known_facts()])

    def _known_facts(self) -> Iterator[str]:
        for name, value in self.ids.items():
            maker = f" ({VENDORS[value]})" if name == "mvendorid" and value in VENDORS else ""
            yield f"{name} {value:#x}{maker}"
        if self.problem:
            yield self.problem


def find(link: Link) -> list[SurveyedHart]:
    """Return all harts. A hart that runs is not stopped for it. Raises the transport's errors."""
    link.state()  # which connects
    before, found = link.target, []
    with link.unpolled():
        cores = [name for number, name in enumerate(link.targets) if not other_type(link, number)]
        off = unavailable(link.command, cores)
        try:
            for number, name in enumerate(link.targets):
                link.target = name
                found.append(_surveyed_hart(link, number, name, is_off=name in off))
        finally:
            link.target = before
    return found


def _surveyed_hart(link: Link, number: int, name: str, *, is_off: bool) -> SurveyedHart:
    state, other = NO_POWER if is_off else link.state(), other_type(link, number)
    if other:
        return SurveyedHart(number, name, state, problem=f"{other}: no RISC-V core", other=other)
    if state in _GONE:
        return SurveyedHart(number, name, state, problem="check power, reset and OpenOCD's log")
    if state != "halted":
        return SurveyedHart(number, name, state, problem="mvendorid and marchid are not read: halt it for that")
    csrs, ids, problem = OpenOcdCsrs(link.command, name, lambda csr: [ID_REGISTERS[csr]]), {}, ""
    try:
        for csr, register in ID_REGISTERS.items():
            answer = csrs.run([(csr, None)])[0]
            if isinstance(answer, int):
                ids[register] = answer
            else:
                problem = f"{register} cannot be read: {answer}"
    except (HartNotHalted, OpenOcdRefused) as error:
        problem = f"mvendorid and marchid cannot be read: {error}"
    return SurveyedHart(number, name, state, ids, problem)

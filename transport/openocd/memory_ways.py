"""The ways to a target's memory that OpenOCD has, and what can be found out when it refuses an access.

A target's memory is reached by instructions in the program buffer and by abstract commands, for which its hart must be
halted, or over the system bus. `riscv set_mem_access` says which of them OpenOCD may use; its log says what became of
each.

Ref: OpenOCD User's Guide 0.12.0, section "RISC-V" (set_mem_access); its log: "progbuf=skipped (target not halted),
sysbus=disabled, abstract=failed". `info commands` is Jim Tcl's.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

WAYS = ("progbuf", "sysbus", "abstract")  # in the order that OpenOCD tries them unless it is configured
_OUTCOME = re.compile(rf"\b({'|'.join(WAYS)})=(\w+(?: \([^)]*\))?)")
_DISABLED = "disabled"
_NO_COMMAND = re.compile(r'invalid command name "?(?:read_memory|write_memory|get_reg|set_reg)\b')
HAS_READ_MEMORY = "info commands read_memory"
"""Tcl whose result is empty in an OpenOCD before 0.12."""


@dataclass(frozen=True)
class RefusedAccess:
    """What was found out about a refused access. *state*: of the hart, "" if it is not known. *ways*: what became of
    each way to memory, as OpenOCD's log has it.
    """

    state: str = ""
    ways: Mapping[str, str] = field(default_factory=dict)

    @property
    def allowed(self) -> list[str]:
        """The ways that OpenOCD may use, as far as they are known."""
        return [way for way in WAYS if way in self.ways and self.ways[way] != _DISABLED]

    @property
    def disabled(self) -> list[str]:
        return [way for way in WAYS if self.ways.get(way) == _DISABLED]

    @property
    def text(self) -> str:
        """E.g. "the hart is running; progbuf: skipped (target not halted), sysbus: failed"; "" if nothing is known."""
        state = f"the hart is {self.state}" if self.state else ""
        return "; ".join(filter(None, [state, ", ".join(f"{way}: {what}" for way, what in self.ways.items())]))

    @property
    def advice(self) -> str:
        """What to do beside looking at OpenOCD's log; "" if nothing is seen that says so."""
        if self.state == "running":
            return (
                "on some chips memory cannot be reached while the hart runs: halt it (`interrupt`) and repeat the"
                " command; otherwise check the base address, power and clock"
            )
        return ""


def outcomes(log: str) -> dict[str, str]:
    """Return what became of each way to memory, from what OpenOCD logged."""
    return {found[1]: found[2] for found in _OUTCOME.finditer(log)}


def is_missing(answer: str) -> bool:
    """Return whether OpenOCD answers that it has no such command, of those that came with 0.12."""
    return _NO_COMMAND.search(answer) is not None

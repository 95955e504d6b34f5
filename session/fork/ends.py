"""Why a fork does not execute its next instruction, with what it depends on: from a `HartStop` to a row."""

from collections.abc import Callable, Iterator

from rvtrace_gdb.decode.semantics.operations import BRANCHES
from rvtrace_gdb.decode.tandem.wording import X
from rvtrace_gdb.rows.fork_rows import ForkEnd
from rvtrace_gdb.session.fork.fork import ForkedHart
from rvtrace_gdb.support.text import printable
from rvtrace_gdb.transport.simulated.partial.stops import HartStop, StopCause
from rvtrace_gdb.transport.simulated.partial.unknown import is_unknown

_OF_REGISTERS = (StopCause.BRANCH, StopCause.JUMP, StopCause.LOAD_ADDRESS, StopCause.STORE_ADDRESS, StopCause.CSR)


def end_of(fork: ForkedHart, stop: HartStop, data_name: Callable[[int], str]) -> ForkEnd:
    """Return why the instruction at the pc of a fork is not executed. *data_name*: names what is at an address."""
    access = stop.access
    registers = tuple(_unknown_registers(fork)) if stop.reason in _OF_REGISTERS else ()
    if access is None:
        return ForkEnd(stop.reason.value, cause=stop.cause, registers=registers)
    name = data_name(access.address) or fork.memory_name(access.address)
    return ForkEnd(stop.reason.value, access.kind, access.address, access.size, printable(name), stop.cause, registers)


def _unknown_registers(fork: ForkedHart) -> Iterator[str]:
    """Yield the registers by which the instruction at the pc decides, and that are not known."""
    hart = fork.hart
    operation = hart.operation_at(hart.pc)
    if operation.name == "mret":
        yield "mepc"
        return
    sources = (operation.rs1, operation.rs2) if operation.name in BRANCHES else (operation.rs1,)
    yield from dict.fromkeys(X[number] for number in sources if is_unknown(hart.x[number]))

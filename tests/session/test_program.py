"""Code from the target: never from where the trace components' registers are, whatever a trace leads to."""


import pytest

from rvtrace_gdb.controlregs.trace_control.component_registers import RAM_DATA
from rvtrace_gdb.decode.program.image import CodeMissing
from rvtrace_gdb.session.program import CodeOnTarget, LoadedProgram
from rvtrace_gdb.transport.openocd.target import OpenOcd
from tests.session.board import DEMO

ENCODER, SINK = range(0x2000_0000, 0x2000_1000), range(0x2000_1000, 0x2000_2000)


class Asked(OpenOcd):
    """A target that has zeros everywhere and keeps what was read from it."""

    def __init__(self) -> None:
        super().__init__()
        self.reads: list[range] = []

    def read_block(self, address: int, nbytes: int, progress: object = None) -> bytes:
        self.reads.append(range(address, address + nbytes))
        return bytes(nbytes)


@pytest.mark.parametrize("address", [0x2000_0000, 0x2000_0FFE, 0x2000_1000 + RAM_DATA.offset, 0x2000_1FFE])
def test_registers_of_trace_components_are_not_read(address: int) -> None:
    link = Asked()
    image = LoadedProgram(str(DEMO), target=CodeOnTarget(link, (ENCODER, SINK))).image()
    with pytest.raises(CodeMissing):
        image.instruction(address)
    assert link.reads == []

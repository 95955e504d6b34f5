"""The register map of NEORV32's datasheet, retyped: offset, register, bit, name."""

from rvtrace_gdb.controlregs.neorv32.registers import CTRL, DELTA_DST, DELTA_SRC, STOP_ADDR, TRACER

DATASHEET = [
    (0x0, "CTRL", 0, "EN"), (0x0, "CTRL", 1, "HSEL"), (0x0, "CTRL", 2, "START"), (0x0, "CTRL", 3, "STOP"),
    (0x0, "CTRL", 4, "RUN"), (0x0, "CTRL", 5, "AVAIL"), (0x0, "CTRL", 6, "IRQ_CLR"), (0x0, "CTRL", 7, "TBM"),
    (0x4, "STOP_ADDR", 0, "ADDR"), (0x8, "DELTA_SRC", 0, "FIRST"), (0x8, "DELTA_SRC", 1, "SRC"),
    (0xC, "DELTA_DST", 0, "TRAP"), (0xC, "DELTA_DST", 1, "DST"),
]  # fmt: skip


def test_the_registers_are_those_of_the_datasheet() -> None:
    listed = [
        (register.offset, register.name, register.lsb(field.name), field.name)
        for register in TRACER.registers
        for field in register.fields
        if field.name is not None
    ]
    assert listed == DATASHEET
    assert CTRL.by_name["TBM"].width == 4 and STOP_ADDR.bits == 32
    assert DELTA_SRC.port and DELTA_DST.port, "reading them takes entries out"

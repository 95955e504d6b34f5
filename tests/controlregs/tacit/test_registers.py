"""The register maps of the RTL, retyped: offset, register, bit, name."""

from rvtrace_gdb.controlregs.tacit.registers import ENCODER, LIMITED_SINK, SINK, TR_TE_TARGET

RTL = [
    (0x0, "TR_TE_CTRL", 0, "ACTIVE"), (0x0, "TR_TE_CTRL", 1, "ENABLE"), (0x4, "TR_TE_INFO", 0, "INFO"),
    (0x20, "TR_TE_TARGET", 0, "TARGET"), (0x24, "TR_TE_BRANCH_MODE", 0, "MODE"),
    (0x0, "TR_SK_DMA_FLUSH", 0, "FLUSH"), (0x4, "TR_SK_DMA_FLUSH_DONE", 0, "DONE"),
    (0x8, "TR_SK_DMA_ADDR", 0, "BITS"), (0xC, "TR_SK_DMA_ADDR_HIGH", 0, "BITS"),
    (0x10, "TR_SK_DMA_COUNT", 0, "BITS"), (0x14, "TR_SK_DMA_COUNT_HIGH", 0, "BITS"),
]  # fmt: skip


LIMITED = [
    (0x0, "TR_SK_DMA_ADDR"), (0x8, "TR_SK_DMA_COUNT"), (0x10, "TR_SK_DMA_MAX_SIZE"), (0x18, "TR_SK_DMA_RESET"),
    (0x1C, "TR_SK_DMA_MODE"), (0x20, "TR_SK_DMA_WRAP_COUNT"),
]  # fmt: skip


def test_the_registers_of_the_later_sink() -> None:
    listed = [(register.offset, register.name) for register in LIMITED_SINK.registers]
    assert [row for row in listed if not row[1].endswith("_HIGH")] == LIMITED


def test_the_registers_are_those_of_the_rtl() -> None:
    listed = [
        (register.offset, register.name, register.lsb(field.name), field.name)
        for block in (ENCODER, SINK)
        for register in block.registers
        for field in register.fields
        if field.name is not None
    ]
    assert listed == RTL
    assert TR_TE_TARGET.by_name["TARGET"].width == 8

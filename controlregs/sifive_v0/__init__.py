"""The trace control interface from before 1.0 (tr??VerMajor 0), as SiFive built it: registers te*, tf*, ts*, not tr*.

Ref: RISC-V Trace Control Interface Proposed, SiFive, document version 20200612: the interface's "version 0"
     https://lists.riscv.org/g/tech-nexus/files/RISC-V-Trace-Control-Interface-Proposed-20200612.pdf, CC-BY 4.0; as text
     in the history of https://github.com/riscv-non-isa/tg-nexus-trace (docs/, 2020-07)
Ref: register tables of the SiFive P550 core ("P550" in these modules)
     https://github.com/ganboing/riscv-trace-umd, rvtrace/platforms/p550.md
Ref: OpenOCD scripts for the HiFive Premier P550 ("scripts")
     https://github.com/ganboing/sifive-trace-decoder, scripts/p550

Only encoders and funnels have a register block. Both can hold the sink as well, chosen by teSink and tfSink, with its
registers at 0x010 to 0x024 and, for pins and ATB, at 0xF00 and 0xE00. Names are the P550's where the sources differ.
Not declared, since no source says what is in them: te_fifo, te_btmcount, te_wordcount (0x030 to 0x038, only named by
the scripts), and the units for PC samples (0x100) and cycle-accurate trace (a block of its own).

`procedures`, `lifecycle` and `capabilities` are what is done with such components: `controlregs.generations`
chooses between these and those of 1.0. Both sources of practice start the funnel first and stop it last.
"""

from rvtrace_gdb.controlregs.sifive_v0.component_registers import (
    ATB,
    ENCODER,
    FUNNEL,
    MEMORY,
    NO_COMP_TYPE,
    PINS,
    sink_block,
)

__all__ = ["ATB", "ENCODER", "FUNNEL", "MEMORY", "NO_COMP_TYPE", "PINS", "sink_block"]

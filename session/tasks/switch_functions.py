"""The functions with which systems switch from one task to another, by the names of their symbols.

At the entry of such a function the old task still runs; behind it the new one does. Functions that only decide which
task is next are here where the switch itself is the end of a trap handler without a symbol of its own: the handler
leaves with mret, whatever it called before.

Sources: FreeRTOS-Kernel, portable/GCC/RISC-V/portASM.S (the trap handler calls vTaskSwitchContext); Zephyr,
arch/riscv/core/switch.S; RT-Thread, libcpu/risc-v/common/context_gcc.S; Linux, arch/riscv/kernel/entry.S and
arch/riscv/kvm/vcpu_switch.S. That of Linux's three names a SiFive P550 needs all: libnexus-rv, contrib/p550/README.md.
"""

from collections.abc import Mapping

SWITCH_FUNCTIONS: Mapping[str, tuple[str, ...]] = {
    "Linux": ("__switch_to", "__kvm_switch_resume", "__kvm_switch_return"),
    "Zephyr": ("z_riscv_switch",),
    "FreeRTOS": ("vTaskSwitchContext",),
    "RT-Thread": ("rt_hw_context_switch", "rt_hw_context_switch_to", "rt_hw_context_switch_interrupt"),
}
"""The names by system; of Linux also those of the switches between a host and its virtual machines."""

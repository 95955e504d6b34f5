"""Switching programmable CoreSight funnels and replicators on and off.

Neither tells when it is empty: what is under way in it arrives when the TMC behind it is flushed.

Ref: dynamic_funnel_enable_hw of Linux 6.1, drivers/hwtracing/coresight/coresight-funnel.c; dynamic_replicator_enable of
coresight-replicator.c.
"""

from collections.abc import Collection, Iterable

from rvtrace_gdb.controlregs.component import Component
from rvtrace_gdb.controlregs.coresight.registers import (
    ALL_PASSES,
    FUNCTL,
    ID_FILTERS,
    MIN_HOLD_TIME,
    NOTHING_PASSES,
    PRICTL,
)
from rvtrace_gdb.controlregs.errors import SettingRefused


def close_funnel(funnel: Component) -> None:
    """Switch all inputs off. Raises ComponentAccess, SettingRefused."""
    value = funnel.set(FUNCTL, EnS=0)
    if FUNCTL.get(value, "EnS"):
        text = f"its inputs stay on (FUNCTL reads {value:#x} after 0 was written)"
        raise SettingRefused(funnel.name, funnel.base, text)


def open_funnel(funnel: Component, inputs: Collection[int]) -> None:
    """Let these inputs through, all with the same priority. Raises ComponentAccess, SettingRefused."""
    funnel.write(PRICTL, 0)
    wanted = sum(1 << number for number in inputs)
    value = funnel.set(FUNCTL, EnS=wanted, HT=MIN_HOLD_TIME)
    missing = wanted & ~FUNCTL.get(value, "EnS")
    if missing:
        number = (missing & -missing).bit_length() - 1
        text = f"has no input {number} (FUNCTL reads {value:#x}); correct `inputs` in the target description"
        raise SettingRefused(funnel.name, funnel.base, text)


def close_replicator(replicator: Component) -> None:
    """Let nothing through. Raises ComponentAccess, SettingRefused."""
    open_replicator(replicator, ())


def open_replicator(replicator: Component, outputs: Iterable[int]) -> None:
    """Let everything through to these outputs, nothing to others. Raises ComponentAccess, SettingRefused."""
    wanted = set(outputs)
    for number, register in enumerate(ID_FILTERS):
        value = ALL_PASSES if number in wanted else NOTHING_PASSES
        got = replicator.write(register, value)
        if got != value:
            text = f"{register.name} reads {got:#x} after {value:#x} was written"
            raise SettingRefused(replicator.name, replicator.base, text)

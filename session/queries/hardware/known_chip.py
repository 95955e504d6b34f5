"""What `trace connect` says of a chip that no target description is about: which shipped target it is."""

import base64
import binascii
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rvtrace_gdb.session.description import dtb
from rvtrace_gdb.session.description.devicetree import has_trace_components
from rvtrace_gdb.session.description.dtb import DeviceTreeError, Node
from rvtrace_gdb.session.description.library.proposal import ChipIdentity, TargetProposal, proposed
from rvtrace_gdb.support import typed

if TYPE_CHECKING:
    from rvtrace_gdb.session.target.usb import UsbBench

_NUMBER = typed.number_in(range(1 << 64))


def lines_of_usb(bench: "UsbBench") -> list[str]:
    """Return a line for each shipped target that a chip behind a USB adapter may be. Raises the transport's errors."""
    idcode, harts = bench.identity()
    found = proposed(ChipIdentity((idcode,) if idcode else (), tuple(harts)))
    sure = [proposal for proposal in found if proposal.surely]
    more = "`rvtrace targets show {0}` has its description; the table [usb] goes in the place of [openocd]"
    return [f"the chip: {it.text}: {more.format(it.target.name)}" for it in sure or found]


def lines(chip: Mapping[str, Any]) -> list[str]:
    """Return a line for each shipped target that a chip may be, and one for the trace components in its device tree.

    *chip*: see `session.rpc.debugger.hardware`; what is not as it says there is ignored.
    """
    tree = _tree(chip.get("device_tree"))
    compatible = () if tree is None else tree.strings("compatible")
    harts = tuple(typed.list_of(chip.get("harts"), lambda pair: typed.pair_of(pair, _NUMBER, _NUMBER)) or ())
    idcodes = tuple(typed.list_of(chip.get("idcodes"), _NUMBER) or ())
    found = proposed(ChipIdentity(idcodes, harts, compatible))
    sure = [proposal for proposal in found if proposal.surely]
    said = [_proposal_line(proposal) for proposal in sure or found]
    if tree is not None and has_trace_components(tree):
        said.append("The device tree that the chip was booted with has trace components: `rvtrace init` reads it.")
    return said


def _proposal_line(proposal: TargetProposal) -> str:
    target = proposal.target
    begin = f"No target description is set, and {proposal.text}"
    if target.template or not target.description().encoders:
        return f"{begin}: `rvtrace targets show {target.name}` says what to do."
    return f"{begin}: `set trace target {target.name}` takes its description."


def _tree(text: object) -> Node | None:
    """Return a device tree, None if there is none, or it cannot be read."""
    try:
        return dtb.read(base64.b64decode(text, validate=True), "memory") if isinstance(text, str) else None
    except (binascii.Error, ValueError, DeviceTreeError):
        return None

"""Which shipped target a chip is, by what it says of itself: IDCODE, mvendorid and marchid, its device tree."""

from collections.abc import Iterator
from dataclasses import dataclass

from rvtrace_gdb.session.description.library.shipped import ShippedTarget, targets

_MANUFACTURER = 0x7FF
"""IDCODE, bits 11:1 (IEEE 1149.1, chapter 12)."""


@dataclass(frozen=True)
class ChipIdentity:
    """What a chip says of itself, as far as it is known. *idcodes*: of its TAPs. *harts*: mvendorid and marchid of
    each. *compatible*: of the root of its device tree.
    """

    idcodes: tuple[int, ...] = ()
    harts: tuple[tuple[int, int], ...] = ()
    compatible: tuple[str, ...] = ()


@dataclass(frozen=True)
class TargetProposal:
    """A shipped target that a chip may be. *because*: what it has that is this target's, in words. *surely*: no other
    chip has that; else it names a maker, or a core, or the emulator alone.
    """

    target: ShippedTarget
    because: str
    surely: bool

    @property
    def text(self) -> str:
        """The proposal in one line."""
        is_it = "is" if self.surely else "may be"
        return f"it {is_it} {self.target.board} ({self.because}), which rvtrace knows as {self.target.name}"


def proposed(chip: ChipIdentity) -> list[TargetProposal]:
    """Return the shipped targets that a chip may be, those first that it surely is."""
    found = [proposal for target in targets() if (proposal := _of(target, chip)) is not None]
    return sorted(found, key=lambda proposal: not proposal.surely)


def _of(target: ShippedTarget, chip: ChipIdentity) -> TargetProposal | None:
    reasons = list(_reasons(target, chip))
    if not reasons:
        return None
    because, surely = max(reasons, key=lambda reason: reason[1])
    return TargetProposal(target, because, surely and not target.template)


def _reasons(target: ShippedTarget, chip: ChipIdentity) -> Iterator[tuple[str, bool]]:
    """Yield what a chip has that is the target's, in words, and whether only this target has it."""
    identity = target.identity
    for name in chip.compatible:
        if name in identity.compatible:
            yield f'its device tree is compatible with "{name}"', True
    for vendor, arch in chip.harts:
        if (vendor, arch) in identity.harts:
            yield f"mvendorid {vendor:#x}, marchid {arch:#x}", True
        elif vendor in identity.vendors:
            yield f"mvendorid {vendor:#x}", False
    for idcode in chip.idcodes:
        if idcode in identity.idcodes:
            yield f"IDCODE {idcode:#010x}", True
        elif idcode >> 1 & _MANUFACTURER in identity.manufacturers:
            yield f"IDCODE {idcode:#010x}", False

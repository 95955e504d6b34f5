"""Where the two versions of Control Transfer Records have their bits and CSRs, for the independent model.

Sources: Control Transfer Records 1.0, "CSRs"; draft 0.1.4, chapters 2 and 3. Written from the documents a second time,
and not from `controlregs`, because the model has to be independent of it.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Bits:
    """A version's layout: bit numbers, and CSR numbers by what they are.

    modes, vs_modes   enable bit of a mode's bits 1:0 (0 U, 1 S, 3 M) in the control register, and in that for V=1
    control, high     CSR -> "m", "s" or "vs"; *high*: bits 63:32 on RV32
    inhibits          bit 32 + TYPE of each transfer type filter, NTBREN among them
    """

    modes: dict[int, int]
    vs_modes: dict[int, int]
    mte: int
    ste: int
    rasemu: int
    bpfrz: int
    lcofifrz: int
    frozen: int
    hidden_from_s: int
    control: dict[int, str]
    high: dict[int, str]
    status: tuple[int, ...]
    selects: dict[int, int]
    eten: int | None = None
    clr: int | None = None
    wrap: int | None = None
    depth_csr: int | None = None

    @property
    def defined(self) -> int:
        """All fields of the control register that the document defines, but for the custom ones."""
        bits = [*self.modes.values(), self.mte, self.ste, self.rasemu, self.bpfrz, self.lcofifrz]
        bits += [32 + kind for kind in (1, 2, 3, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15)]
        bits += [] if self.eten is None else [self.eten]
        depth = 0 if self.depth_csr else 0xF << 16
        return sum(1 << bit for bit in bits) | depth


_SELECTS = {0x150: 0, 0x250: 0x100}  # siselect, vsiselect -> distance of their sireg* from 0x151

V1_0 = Bits(
    modes={0: 0, 1: 1, 3: 2}, vs_modes={0: 0, 1: 1}, mte=9, ste=8, rasemu=7, bpfrz=11, lcofifrz=12, frozen=31,
    hidden_from_s=1 << 2 | 1 << 9, control={0x14E: "s", 0x24E: "vs", 0x34E: "m"}, high={}, status=(0x14F,),
    selects=_SELECTS, depth_csr=0x15F,
)  # fmt: skip

V0_1_4 = Bits(
    modes={3: 0, 1: 1, 0: 2}, vs_modes={1: 1, 0: 2}, mte=8, ste=9, rasemu=10, bpfrz=11, lcofifrz=12, frozen=15,
    hidden_from_s=1 << 0 | 1 << 8, control={0x181: "s", 0x281: "vs", 0x381: "m"},
    high={0x182: "s", 0x282: "vs", 0x382: "m"}, status=(0x183, 0x383), selects=_SELECTS | {0x350: 0x200},
    eten=38, clr=7, wrap=14,
)  # fmt: skip

VERSIONS = {"1.0": V1_0, "0.1.4": V0_1_4}
DRAFT_DEPTHS = {0b0000: 16, 0b0001: 32, 0b0011: 64, 0b0111: 128, 0b1111: 256}

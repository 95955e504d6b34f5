"""CtrCycleCounter: the active cycles since the last record.

Sources: CTR 1.0, "Cycle Counting" and "RAS Emulation Mode"; CTR 0.1.4, 5.3 and 5.4, which do not name the counter.
"""

from rvtrace_gdb.controlregs.ctr.cycles import MANTISSA_BITS, decode_cycles, encode_cycles
from rvtrace_gdb.controlregs.ctr.layout import DATA


class CycleCounter:
    """*exponent_bits*: bits of CCE there are, None: no counts at all. `valid`: whether the next record gets CCV=1.

    `mask`: the bits of ctrdata that exist for it.
    """

    def __init__(self, exponent_bits: int | None) -> None:
        self._exponent_bits = exponent_bits
        self.count = 0
        self.valid = False
        self.mask = 0
        if exponent_bits is not None:
            self.mask = DATA.mask("CCV", "CCM") | DATA.put(0, "CCE", (1 << exponent_bits) - 1)

    def advance(self, cycles: int) -> None:
        """So many cycles pass, or are added. That a counter of hardware is full at some point, `data` sees to."""
        self.count += cycles

    def invalidate(self) -> None:
        """What was counted is meaningless until the next record: after a write to xctrctl, SCTRCLR."""
        self.count, self.valid = 0, False

    def take(self, elapsed: int = 0) -> int | None:
        """The count for a record, None if it has none, after so many more cycles; counting begins anew."""
        count = self.count + elapsed if self.valid else None
        self.count, self.valid = 0, True
        return count

    def data(self, count: int | None) -> int:
        """CCV and CC for a count, in their places of ctrdata."""
        if count is None or self._exponent_bits is None:
            return 0
        exponent, mantissa = divmod(encode_cycles(count, self._exponent_bits), 1 << MANTISSA_BITS)
        return DATA.pack(CCV=1, CCE=exponent, CCM=mantissa)

    def give_back(self, data: int) -> None:
        """A record goes (RAS emulation), its ctrdata being this: the next one counts from the one before it."""
        if DATA.get(data, "CCV"):
            self.advance(decode_cycles(DATA.get(data, "CCE") << MANTISSA_BITS | DATA.get(data, "CCM")))
        else:
            self.valid = False

"""What a decoder or an encoder of data packets must know: the part of `Parameters` and `Modes` that shapes them."""

from dataclasses import dataclass
from enum import Enum

from rvtrace_gdb.decode.etrace.options import Modes, Parameters


class Content(Enum):
    """What packets hold (trTeDataNoValue, trTeDataNoAddr)."""

    BOTH = "address and data"
    ADDRESS = "address only"
    DATA = "data only"


@dataclass(frozen=True)
class DataOptions:
    """The shape of data packets.

    content        what is in them
    extended       they are those of the Multi-Memory Access and Compare and Swap extension v0.8
    split          loads and atomics are a request and a later response
    data_width, address_width, lrid_width, csr_width, format_width, diff_width   bits (see `Parameters`)
    difference     compressed data is a difference where diff has one bit
    reference      as the reference model makes them (see `Parameters.data_reference`)
    full_address, full_data   nothing is compressed; decoders do not need these: diff tells
    """

    content: Content = Content.BOTH
    extended: bool = False
    split: bool = False
    data_width: int = 64
    address_width: int = 64
    lrid_width: int = 0
    csr_width: int = 64
    format_width: int = 3
    diff_width: int = 2
    difference: bool = False
    reference: bool = False
    full_address: bool = False
    full_data: bool = False

    @classmethod
    def of(cls, parameters: Parameters, modes: Modes) -> "DataOptions":
        """Those of an encoder with these parameters, in these modes."""
        extended = parameters.mmacas_ext
        return cls(
            _content(modes),
            extended,
            parameters.lrid_width > 0,
            parameters.data_width,
            parameters.daddress_width,
            parameters.lrid_width,
            max(parameters.csr_width or parameters.data_width, 8),
            min(parameters.data_format_width, 2) if extended else min(max(parameters.data_format_width, 2), 3),
            parameters.data_diff_width,
            parameters.data_difference,
            parameters.data_reference,
            modes.data_full_address,
            modes.data_full_data,
        )

    @property
    def size_width(self) -> int:
        """Bits of *size*: max(1, clog2(clog2(data_width/8 + 1)))."""
        return max(1, _clog2(_clog2(self.data_width // 8 + 1)))

    @property
    def csr_len_width(self) -> int:
        """Bits of *data_len* and *op_len* of CSRs: 2 for 32-bit CSRs, 3 for 64-bit ones."""
        return 2 if self.csr_width <= 32 else 3


def _content(modes: Modes) -> Content:
    """With neither address nor value there are no packets; the address is what a packet for nothing would hold."""
    if modes.data_no_data:
        return Content.ADDRESS
    return Content.DATA if modes.data_no_address else Content.BOTH


def _clog2(value: int) -> int:
    """The ceiling of the logarithm to base 2."""
    return (value - 1).bit_length()

"""The Siemens infrastructure as the reference models write it to files: a byte, then the payload.

    byte 0  length[4:0]  msg_type[7:5]: 2 te_inst, 3 te_data

Source: riscv-trace-spec, referenceFlow (encoder and decoder models). Its whole form, with flow, index and timestamp,
has the bytes of `encap`.
"""

from rvtrace_gdb.decode.etrace.encapsulation.encap import MAX_LENGTH, NULLS, behind_header
from rvtrace_gdb.decode.etrace.encapsulation.interface import CannotCarry, Kind
from rvtrace_gdb.decode.etrace.encapsulation.reading import Sorter, UniformSorter
from rvtrace_gdb.decode.etrace.encapsulation.stream import Layout, any_of

NAME = "smi"
TE_INST, TE_DATA = 2, 3
"""msg_type."""

_KINDS = {TE_INST: Kind.INSTRUCTION, TE_DATA: Kind.DATA}


def layout() -> Layout:
    """How packets are cut. No byte is wrong: packets of other types are counted."""
    return Layout([1 + (header & MAX_LENGTH) for header in range(256)], any_of(sorted(NULLS)), lambda header: "")


def sorter() -> Sorter:
    """What reads packets."""
    return UniformSorter(behind_header, [_KINDS.get(header >> 5, Kind.OTHER) for header in range(256)], NULLS)


def packet(payload: bytes, kind: Kind) -> bytes:
    """The bytes of a packet. Raises CannotCarry."""
    if not 1 <= len(payload) <= MAX_LENGTH:
        raise CannotCarry(NAME, f"a payload of {len(payload)} bytes: it has 1 to {MAX_LENGTH}")
    if kind is Kind.OTHER:
        raise CannotCarry(NAME, "packets that are neither te_inst nor te_data")
    return bytes([(TE_INST if kind is Kind.INSTRUCTION else TE_DATA) << 5 | len(payload)]) + payload

"""The worked examples of E-Trace 2.0.5, chapter "Code fragment and transport": payloads byte for byte as printed there.

The encoder of that chapter has iaddress_lsb 0, context and tval of 32 and 64 bits that are 0, and full addresses.
"""

from rvtrace_gdb.decode.etrace.options import Modes, Parameters
from rvtrace_gdb.decode.executed.encoder_ingress import IngressTrap
from rvtrace_gdb.decode.history.events import EventKind
from tests.decode.etrace.worked_examples import (
    ENDED_REP,
    Example,
    Fields,
    address,
    branches,
    code,
    start,
    support,
    trap,
)

PARAMETERS = Parameters(iaddress_width=64, iaddress_lsb=0, ecause_width=5, context_width=32)
TEST = code(
    64,
    """
    80000104 00000297
    80000108 11e28293
    8000010c 8282
    8000014c 00000297
    80000150 fb828293
    80000154 9282
    80000188 00080517
    8000018c ef850513
    80000190 4108
    80000192 4585
    80000194 fab50ce3
    80000198 40430333
    8000019c 34402473
    800001a0 8c21
    800001a2 300024f3
    800001a6 8ca5
    800001a8 fe0310e3
    800001b0 a805
    800001e0 342023f3
    800001e4 fff0031b
    800001e8 137e
    """,
)
EXAMPLE = Example(TEST, PARAMETERS, Modes(full_address=True))
BEGIN = support(EXAMPLE.modes)
END = support(EXAMPLE.modes, ENDED_REP, enabled=False)


def check(packet: Fields, payload: str, example: Example = EXAMPLE) -> Fields:
    """*packet*, whose payload the document prints."""
    assert example.payloads([packet])[0].hex(" ") == payload
    return packet


def test_illegal_opcode() -> None:
    """An exception at the target of a jump: thaddr is 0, the address the EPC; the handler comes as format 3.0.

    Of that packet the document prints 73 00 00 00 00 6c 00 00 10, which in the layout of all others is address
    0x200000d8; its text says 0x800001b0.
    """
    packets = [
        BEGIN,
        start(0x80000192),
        check(branches(0, to=0x80000104), "05 04 01 00 80 00"),
        check(address(0x8000010C), "32 04 00 00 02"),
        check(trap(0x80000222, thaddr=0, ecause=2), "77 00 00 00 00 81 88 00 00 20"),
        check(start(0x800001B0), "73 00 00 00 00 d8 00 00 40"),
        address(0x800001E0),
        END,
    ]
    before = [0x80000192, 0x80000194, 0x8000014C, 0x80000150, 0x80000154, 0x80000104, 0x80000108, 0x8000010C]
    handler = [0x800001B0, 0x800001E0]
    history = EXAMPLE.decodes(packets, [*before, *handler])
    hit = [event for event in history.events if event.kind is EventKind.TRAP]
    assert [(event.position, event.last_pc, event.next_pc) for event in hit] == [(8, 0x80000222, 0x800001B0)]
    EXAMPLE.encodes([*before, IngressTrap(0x80000222, False, 2, 0, 0x800001B0), *handler], packets)


def test_timer_long_loop() -> None:
    """An interrupt between two instructions: the last one is reported with 15 branches, the handler with thaddr=1."""
    packets = [
        BEGIN,
        start(0x80000188),
        check(branches(*[1, 0] * 7, 1, to=0x800001A2), "bd aa aa 68 00 00 20"),
        check(trap(0x800001B0, thaddr=1, ecause=7, interrupt=1), "77 00 00 00 80 33 6c 00 00 20"),
        address(0x800001E0),
        END,
    ]
    round_trip = [
        *(0x80000188, 0x8000018C, 0x80000190, 0x80000192, 0x80000194, 0x80000198),
        *(0x8000019C, 0x800001A0, 0x800001A2, 0x800001A6, 0x800001A8),
    ]
    before, handler = [*round_trip * 7, *round_trip[:9]], [0x800001B0, 0x800001E0]
    history = EXAMPLE.decodes(packets, [*before, *handler])
    hit = [event for event in history.events if event.kind is EventKind.TRAP]
    assert [(event.position, event.last_pc, event.next_pc) for event in hit] == [(86, 0x800001A6, 0x800001B0)]
    EXAMPLE.encodes([*before, IngressTrap(0x800001A6, True, 7, 0, 0x800001B0), *handler], packets)


def test_startup_xrle() -> None:
    """The support packet, and the first instruction of a trace."""
    image = code(32, "20010522 1141\n20010524 c606\n20010526 c422\n20010528 0800\n2001052a 800107b7")
    parameters = Parameters(iaddress_width=32, iaddress_lsb=0, ecause_width=5, context_width=32)
    example = Example(image, parameters, Modes(full_address=True))
    packets = [
        check(BEGIN, "1f 04", example),
        check(start(0x20010522), "73 00 00 00 00 91 82 00 10", example),
        address(0x20010528),
        END,
    ]
    pcs = [0x20010522, 0x20010524, 0x20010526, 0x20010528]
    example.decodes(packets, pcs)
    example.encodes(pcs, packets)

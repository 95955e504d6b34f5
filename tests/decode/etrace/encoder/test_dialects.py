"""The encoder as others make theirs: what differs is in `decode.etrace.dialects`, and here, what is sent at all."""

from dataclasses import fields

import pytest

from rvtrace_gdb.decode.etrace.decoder import decode
from rvtrace_gdb.decode.etrace.dialects import DEFAULTS
from rvtrace_gdb.decode.etrace.encapsulation import Encapsulation
from rvtrace_gdb.decode.etrace.encoder.encoder import Encoder
from rvtrace_gdb.decode.etrace.encoder.options import EncoderOptions, ResyncMode
from rvtrace_gdb.decode.etrace.layout import Packet
from rvtrace_gdb.decode.etrace.options import Dialect, Modes, Parameters, SupportLayout
from rvtrace_gdb.decode.etrace.packet import parse
from rvtrace_gdb.decode.program.csrs import ProgramContext
from tests.decode.etrace import encoder_vectors as vectors
from tests.decode.etrace.encoder.words import Item, branch, exception, interrupt, jr, plain
from tests.decode.etrace.vectors import expected, framed

HANDLER = 0x4000
OTHERS = [Dialect.PULP, Dialect.ET20, Dialect.PT10, Dialect.QEMU]


def options_of(dialect: Dialect, width: int = 32) -> EncoderOptions:
    """As that dialect's encoders are built, with addresses of *width* bits."""
    given = DEFAULTS[dialect]
    own = {field.name: given[field.name] for field in fields(Parameters) if field.name in given}
    parameters = Parameters(**own | {"iaddress_width": width, "privilege_width": 2})  # type: ignore[arg-type]
    modes = Modes(full_address=bool(given.get("full_address")))
    support = SupportLayout(given.get("support", "reference"))
    return EncoderOptions(parameters, modes, dialect, support, ResyncMode.PACKETS, 2)


def sent(dialect: Dialect, *items: Item) -> list[Packet]:
    """Without the support packets."""
    options, packets = options_of(dialect), list[bytes]()
    encoder = Encoder(options, packets.append)
    encoder.start()
    encoder.retire(items)
    encoder.stop()
    return [parse(packet, options.decoder, options.modes) for packet in packets[1:-1]]


@pytest.mark.parametrize("dialect", OTHERS)
def test_an_execution_with_many_traps_is_decoded(dialect: Dialect) -> None:
    """311 of them, and no instruction is missing or too much."""
    options = options_of(dialect, 64)
    packets: list[bytes] = []
    encoder = Encoder(options, packets.append)
    encoder.context(ProgramContext(vectors.MACHINE))
    encoder.start()
    encoder.retire(vectors.items("torture64"))
    encoder.stop()
    image = vectors.image("torture64")
    history = decode(framed(packets), image, options.decoder, Encapsulation())
    assert list(history.pcs()) == expected("torture64", "o01")


@pytest.mark.parametrize("dialect", OTHERS)
def test_packets_of_dialects(dialect: Dialect) -> None:
    """The same fields in other packets, as a decoder of that dialect reads them."""
    first = plain(0x1000), branch(0x1002), jr(0x1004), plain(0x2000, 2)
    found = sent(dialect, *first, exception(0x2004, HANDLER, 5, 0x77), plain(HANDLER, 2))
    assert [(packet.format, packet.subformat) for packet in found] == [(3, 0), (1, None), (2, None), (3, 1), (2, None)]
    assert (found[1].fields["branches"], found[1].fields["branch_map"]) == (1, 1)
    assert (found[3].fields["ecause"], found[3].fields["tval"], found[3].fields["address"]) == (5, 0x77, HANDLER)


@pytest.mark.parametrize("dialect", [Dialect.PULP, Dialect.QEMU])
def test_targets_always_have_updiscon(dialect: Dialect) -> None:
    """rv_tracer sets it in all its samples, whatever follows, and QEMU in its code."""
    found = sent(dialect, plain(0x1000), jr(0x1002), plain(0x2000, 3))
    assert [packet.fields["updiscon"] for packet in found[1:]] == [1, 0]


def test_traps_without_thaddr() -> None:
    """PT10's packets are older than it: only the handler is reported, and the EPC is the value of illegal instructions
    (tvalepc). A trap whose handler does not begin cannot be told.
    """
    jumped = plain(0x1000), jr(0x1002)
    found = sent(Dialect.PT10, *jumped, exception(0x66, HANDLER, 2, 0x12), plain(HANDLER, 2))
    assert [(packet.format, packet.fields["address"]) for packet in found[1:]] == [
        (2, 0x1002),
        (3, HANDLER),
        (2, HANDLER + 2),
    ]
    assert found[2].fields["tval"] == 0x66
    found = sent(Dialect.PT10, *jumped, exception(0x66, HANDLER, 5, 0x12), plain(HANDLER, 2))
    assert found[2].fields["tval"] == 0x12
    found = sent(Dialect.PT10, *jumped, exception(0x66, HANDLER), interrupt(HANDLER, 0x5000, 3), plain(0x5000, 2))
    assert [packet.fields["ecause"] for packet in found if packet.subformat == 1] == [3]

"""All te_inst packets of the reference vectors: read, and written again byte for byte.

The vectors say what packets are in each stream (packet_histogram). What fields hold is compared with a second reader,
written from the document's tables on its own (`etrace_packets`).
"""

from collections import Counter

import pytest

from rvtrace_gdb.decode.etrace.layout import Packet
from rvtrace_gdb.decode.etrace.options import Modes, Options
from rvtrace_gdb.decode.etrace.packet import codec
from tests.decode.etrace.encoder_vectors import PROGRAMS, ROOT, packets, vector
from tests.decode.etrace.packets import read
from tests.decode.etrace.vectors import OPTIONS, official, parameters_in

SUPPORT = 3


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_option_streams(program: str, option: str) -> None:
    """Own streams, with every option."""
    found = vector(program, option)
    options = found.options
    packets_of = codec(options, options.modes)
    kinds: Counter[str] = Counter()
    for payload in found.packets:
        packet = packets_of.parse(payload)
        kinds[f"f{packet.format}{'' if packet.subformat is None else packet.subformat}"] += 1
        assert packets_of.build(*packet, compress=bool(found.what["options"]["compress"])) == payload
        _compare(packet, payload, options)
    assert kinds == found.what["packet_histogram"]
    assert kinds.total() == found.what["packets"]


@pytest.mark.parametrize("folder", [path.relative_to(ROOT).as_posix() for path in official()])
def test_official_streams(folder: str) -> None:
    """Streams of the official encoder model."""
    parameters = parameters_in(ROOT / folder / "hw.scf")
    modes = Modes(full_address="debug" in folder)  # "itype3_debug: full address" (README)
    options = Options(parameters, modes)
    packets_of = codec(options, modes)
    payloads = packets(next((ROOT / folder).glob("*.te_inst_raw")).read_bytes())
    assert payloads
    for payload in payloads:
        packet = packets_of.parse(payload)
        assert packets_of.build(*packet) == payload
        _compare(packet, payload, options)


def _compare(packet: Packet, payload: bytes, options: Options) -> None:
    """*packet* is what the second reader finds; it gives differences of addresses without their sign."""
    expected = read(payload, options.parameters, options.modes)
    if packet.subformat == SUPPORT:
        return
    assert (packet.format, packet.subformat) == (expected.pop("format"), expected.pop("subformat", None))
    fields = dict(packet.fields)
    if fields.get("address", 0) < 0:
        fields["address"] += 1 << options.parameters.iaddress_width
    widths = {"time": options.parameters.time_width, "context": options.parameters.context_width}
    assert fields == {name: value for name, value in expected.items() if widths.get(name, 1)}

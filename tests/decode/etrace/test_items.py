"""Traces taken apart without the program: packets with addresses, and in words."""

from collections.abc import Iterable
from copy import deepcopy
from dataclasses import replace
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rvtrace_gdb.decode.etrace.data.packet import DataOptions
from rvtrace_gdb.decode.etrace.data.packet import codec as data_codec
from rvtrace_gdb.decode.etrace.encapsulation import ContentKind, Encapsulation
from rvtrace_gdb.decode.etrace.items import Item, Itemizer
from rvtrace_gdb.decode.etrace.options import Dialect, Modes, Options, Parameters, SupportLayout, TrapHandlers
from rvtrace_gdb.decode.etrace.packet import build, support_fields
from rvtrace_gdb.decode.etrace.wording import Wording
from tests.decode.etrace.encoder_vectors import PROGRAMS, Vector, vector
from tests.decode.etrace.packets import read
from tests.decode.etrace.vectors import expected, framed
from tests.helpers.core_captures import VECTORS

ENCAP = Encapsulation("encap")
RV32 = Options(Parameters(iaddress_width=32, iaddress_lsb=1, ecause_width=5))
PLAIN = Modes()


def items(
    data: bytes,
    options: Options = RV32,
    encapsulation: Encapsulation = ENCAP,
    xlen: int = 32,
    *,
    wrapped: bool = False,
    pieces: Iterable[int] = (),
) -> list[Item]:
    """The items of a trace, fed in these *pieces* and the rest."""
    itemizer = Itemizer(options, encapsulation, xlen, wrapped=wrapped)
    found: list[Item] = []
    at = 0
    for size in (*pieces, len(data)):
        found += itemizer.feed(data[at : at + size])
        at += size
    found += itemizer.finish()
    return found


def lines(data: bytes, options: Options = RV32, encapsulation: Encapsulation = ENCAP, xlen: int = 32) -> list[str]:
    """The items of a trace in words."""
    wording = Wording(options)
    return [wording.text(item) for item in items(data, options, encapsulation, xlen)]


def accounted(found: list[Item], size: int) -> None:
    """The items are all bytes of the trace, one behind the other."""
    offsets = list(accumulate((item.length for item in found), initial=0))
    assert [item.offset for item in found] == offsets[:-1]
    assert offsets[-1] == size


def sync(address: int, **more: int) -> bytes:
    """A synchronization."""
    return build(3, 0, {"branch": 1, "privilege": 3, "address": address, **more}, RV32, PLAIN)


def jump(difference: int, **flags: int) -> bytes:
    """An address."""
    return build(2, None, {"address": difference, **flags}, RV32, PLAIN)


def support(modes: Modes = PLAIN, options: Options = RV32, **status: int) -> bytes:
    """A support packet."""
    fields = support_fields(options.support, options.parameters, modes) | status
    return build(3, 3, fields, options, modes)


def summed(found: Vector) -> list[int | None]:
    """The addresses of a stream of differences without jump target cache, added up by the tests' own reader.

    None for an address that the document calls undefined: of an interrupt with thaddr 0.
    """
    modes, parameters = found.options.modes, found.options.parameters
    at, reported = 0, list[int | None]()
    for payload in found.packets:
        fields = read(payload, parameters, modes)
        if "address" in fields:
            relative = fields["format"] < 3 and not modes.full_address
            address = (at if relative else 0) + fields["address"] & (1 << parameters.iaddress_width) - 1
            at = at if fields.get("thaddr", 1) == 0 else address
            reported.append(None if fields.get("thaddr", 1) == 0 and fields["interrupt"] else address)
    return reported


@pytest.mark.parametrize("option", ["o01", "o02", "o05", "o06", "o07", "o12", "o14"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_addresses_of_the_vectors(program: str, option: str) -> None:
    """They are those of instructions that ran."""
    found = vector(program, option)
    taken = items(framed(found.packets), found.options, xlen=found.what["xlen"])
    accounted(taken, sum(map(len, found.packets)) + len(found.packets))
    addresses = [item.address for item in taken if item.packet and "address" in item.packet.fields]
    assert addresses == summed(found)
    ran = {*expected(program, option)}
    told = [item.packet.fields.get("thaddr", 1) for item in taken if item.packet and "address" in item.packet.fields]
    assert all(address in ran for address, handler in zip(addresses, told, strict=True) if handler)


@pytest.mark.parametrize("program", PROGRAMS)
def test_jump_targets_of_the_vectors(program: str) -> None:
    """With a jump target cache the same addresses are reported as without, some of them by their index."""

    def reported(option: str) -> list[int | None]:
        found = vector(program, option)
        taken = items(framed(found.packets), found.options, xlen=found.what["xlen"])
        told = [(item.address, item.packet.fields) for item in taken if item.packet]
        defined = [(address, sent) for address, sent in told if sent.get("thaddr", 1) or not sent.get("interrupt")]
        return [address for address, sent in defined if {"address", "index"} & sent.keys()]

    assert reported("o09") == reported("o03")
    assert None not in reported("o08")


def test_targets_that_cannot_be_known() -> None:
    """Where returns are not reported, nobody can say without the program what is in the cache; nor after a loss."""
    parameters = replace(RV32.parameters, cache_size=4, return_stack_size=2)
    packets = [sync(0x1000), jump(0x10), jump(0x22)]
    for modes, address in ((Modes(jump_target_cache=True), 0x1010),
                           (Modes(jump_target_cache=True, implicit_return=True), None)):  # fmt: skip
        options = Options(parameters, modes)
        index = build(0, 1, {"index": 0x1010 >> 1 & 15, "branches": 0}, options, modes)
        absent = build(0, 1, {"index": 3, "branches": 0}, options, modes)
        taken = items(framed([*packets, index, jump(6), absent, jump(6), index]), options)
        known = None if address is None else address + 6
        assert [item.address for item in taken[2:]] == [0x1032, address, known, None, None, None]
        synchronized = items(framed([*packets, sync(0x2000), index]), options)
        assert synchronized[-1].address is None
        lost = items(framed([*packets, b"\x06" + bytes(9) + b"\x12", index]), options)
        assert lost[-1].address is None


def test_a_reported_address_that_no_jump_led_to_is_no_target() -> None:
    """ "Format 2 notify and updiscon fields": followed by a format 3 packet, or asked for by a trigger."""
    modes = Modes(jump_target_cache=True)
    options = Options(replace(RV32.parameters, cache_size=4), modes)
    index = build(0, 1, {"index": 0x1010 >> 1 & 15, "branches": 0}, options, modes)
    assert items(framed([sync(0x1000), jump(0x10, notify=1), jump(2), index]), options)[-1].address is None
    assert items(framed([sync(0x1000), jump(0x10), sync(0x1012), index]), options)[-1].address is None


def test_from_the_middle() -> None:
    """Differences mean nothing before the first full address; nor after bytes that are not a packet."""
    too_long = b"\x06" + bytes(9) + b"\x12"
    taken = items(framed([jump(4), sync(0x1000), jump(4), too_long, jump(4), sync(0x2000), jump(-2)]))
    assert [item.address for item in taken] == [None, 0x1000, 0x1004, None, None, 0x2000, 0x1FFE]
    assert [item.problem for item in taken if item.problem] == ["11 bytes, of which 5 are fields"]
    assert lines(framed([jump(4)])) == [
        "te_inst format=2 address=0x4 addr=? # address reached; its address is relative to one that is not known here"
    ]


def test_addresses_have_xlen_bits() -> None:
    """They wrap around."""
    assert [item.address for item in items(framed([sync(0xFFFFFFFC), jump(8)]))] == [0xFFFFFFFC, 4]


def test_modes_are_those_of_the_support_packet_before() -> None:
    """Differences, then full addresses; if modes are pinned, all are differences."""
    full = Modes(full_address=True)
    address = build(2, None, {"address": 0x3000}, RV32, full)
    data = framed([support(), sync(0x1000), jump(4), support(full), address, sync(0x2000), support(), jump(4)])
    assert [item.address for item in items(data)] == [None, 0x1000, 0x1004, None, 0x3000, 0x2000, None, 0x2004]
    pinned = items(data, replace(RV32, pinned=True))
    assert [item.address for item in pinned] == [None, 0x1000, 0x1004, None, 0x4004, 0x2000, None, 0x2004]


def test_sizes_are_those_of_the_support_packet_before() -> None:
    """The standard one says that time has 16 bits."""
    options = Options(replace(RV32.parameters, time_width=16), support=SupportLayout.STANDARD)
    timed = build(3, 0, {"branch": 1, "privilege": 3, "time": 0x1234, "address": 0x1000}, options, PLAIN)
    untold = replace(options, parameters=replace(options.parameters, time_width=0))
    assert items(framed([support(options=options), timed]), untold)[1].address == 0x1000
    assert items(framed([timed]), untold)[0].address != 0x1000


def test_traps() -> None:
    """No difference is relative to where a trap was, which is undefined for an interrupt; a handler that is not sent is
    known from the trap vector.
    """
    trap = {"branch": 1, "privilege": 3, "ecause": 7, "interrupt": 1, "thaddr": 0, "address": 0x1234}
    data = framed([sync(0x1000), build(3, 1, trap, RV32, PLAIN), jump(4)])
    assert [item.address for item in items(data)] == [0x1000, None, 0x1004]
    assert "the address is undefined" in lines(data)[1]
    exception = {**trap, "interrupt": 0, "ecause": 1, "tval": 0}
    data = framed([sync(0x1000), build(3, 1, exception, RV32, PLAIN), jump(4)])
    assert [item.address for item in items(data)] == [0x1000, 0x1234, 0x1004]
    modes = Modes(implicit_exception=True)
    handler = build(3, 1, {**trap, "thaddr": 1}, RV32, modes)
    options = replace(RV32, modes=modes)
    data = framed([handler, jump(4)])
    assert [item.address for item in items(data, options)] == [None, None]
    assert "addr=? " in lines(data, options)[0]
    assert lines(data, options)[0].endswith("the address of that handler was not sent")
    vectored = replace(options, trap_handlers=TrapHandlers(tvec=0x8001))
    assert [item.address for item in items(data, vectored)] == [0x801C, 0x8020]


def test_sources() -> None:
    """Each has its own modes and addresses; items come in the order of the trace."""
    encapsulation = Encapsulation("encap", src_bits=8)
    framer = encapsulation.framer()
    sent = [(1, sync(0x1000)), (2, sync(0x2000)), (1, jump(4)), (2, jump(4)), (2, jump(4)), (1, jump(4))]
    data = b"".join(framer.packet(payload, ContentKind.INSTRUCTION, source) for source, payload in sent)
    taken = items(data, encapsulation=encapsulation)
    accounted(taken, len(data))
    assert [(item.source, item.address) for item in taken] == [
        (1, 0x1000), (2, 0x2000), (1, 0x1004), (2, 0x2004), (2, 0x2008), (1, 0x1008),
    ]  # fmt: skip
    assert lines(data, encapsulation=encapsulation)[2] == (
        "te_inst format=2 address=0x4 source=1 addr=0x1004 # address reached"
    )


def test_timestamps_that_go_back_are_marked() -> None:
    """Each packet where they do, apart for each source, and for times in packets."""
    encapsulation = Encapsulation("encap", src_bits=8, timestamp_bytes=2)
    framer = encapsulation.framer()
    sent = [(1, sync(0x1000), 9), (2, sync(0x1000), 5), (1, jump(4), None), (1, jump(4), 8), (2, jump(4), 6)]
    data = b"".join(framer.packet(payload, ContentKind.INSTRUCTION, source, time) for source, payload, time in sent)
    marked = ["goes back from 9 to 8" in line for line in lines(data, encapsulation=encapsulation)]
    assert marked == [False, False, False, True, False]
    options = replace(RV32, parameters=replace(RV32.parameters, time_width=16))
    starts = [{"branch": 1, "privilege": 3, "time": time, "address": 0x1000} for time in (7, 6)]
    data = framed(build(3, 0, fields, options, PLAIN) for fields in starts)
    assert ["goes back from 7 to 6" in line for line in lines(data, options)] == [False, True]


def test_filling_is_one_item() -> None:
    """Whatever pieces it comes in."""
    data = framed([sync(0x1000)]) + bytes(10_000) + framed([jump(4)])
    taken = items(data, pieces=[100, 5000])
    accounted(taken, len(data))
    assert [item.is_idle for item in taken] == [False, True, False]
    assert lines(data)[1] == "Idle BYTES=10000"


@given(st.lists(st.integers(0, 700), max_size=6))
def test_pieces_do_not_matter(pieces: list[int]) -> None:
    """The same items come of a trace in any pieces."""
    data = framed(vector("br_j_asm", "o01").packets)
    options = vector("br_j_asm", "o01").options
    assert items(data, options, xlen=64, pieces=pieces) == items(data, options, xlen=64)


@pytest.mark.parametrize("option", ["o01", "o08", "o10"])
def test_a_copy_goes_on(option: str) -> None:
    """From where the original stands, which does not notice."""
    found = vector("dhrystone", option)
    data = framed(found.packets)
    half = len(data) // 2
    first = Itemizer(found.options, ENCAP, 64)
    begun = list(first.feed(data[:half]))
    second = deepcopy(first)
    rest = [*second.feed(data[half:]), *second.finish()]
    assert [*first.feed(data[half:]), *first.finish()] == rest
    assert begun + rest == items(data, found.options, xlen=64)


def test_a_copy_is_independent() -> None:
    """Also of what is in the jump target cache, and of the last address."""
    modes = Modes(jump_target_cache=True)
    options = Options(replace(RV32.parameters, cache_size=4), modes)
    index = framed([build(0, 1, {"index": 8, "branches": 0}, options, modes)])
    first = Itemizer(options, ENCAP, 32)
    assert not list(first.feed(framed([sync(0x1000), jump(0x10), jump(2)])))  # items come a slice at a time
    filling = bytes(4096 - len(framed([sync(0x1000), jump(0x10), jump(2)])))
    assert [item.address for item in first.feed(filling)] == [0x1000, 0x1010, 0x1012]
    second = deepcopy(first)
    list(first.feed(framed([jump(0x1E), jump(2)]) + bytes(4096)))  # 0x1030 takes the place of 0x1010
    assert [item.address for item in [*second.feed(index), *second.finish()]] == [None, 0x1010]


def test_packets_that_are_missing() -> None:
    """What differs from them is not known."""
    encapsulation = Encapsulation("esp32")
    framer = encapsulation.framer()
    packets = [framer.packet(payload) for payload in (sync(0x1000), jump(4), jump(4), jump(4), sync(0x2000))]
    del packets[2]  # their indices are 0, 1, 3, 4
    taken = items(framer.synchronization() + b"".join(packets), encapsulation=encapsulation)
    assert [item.address for item in taken if item.packet] == [0x1000, 0x1004, None, 0x2000]
    missing = next(item for item in taken if item.problem)
    assert (missing.length, missing.offset) == (0, taken[-2].offset)


def store(*, address: int, value: int = 0, diff: int = 0, modes: Modes = PLAIN) -> bytes:
    """A data packet: a store of 4 bytes; *address* in units of 4 bytes."""
    fields = {"size": 2, "diff": diff, "data_len": 0, "data": value, "address": address}
    return data_codec(DataOptions.from_parameters(RV32.parameters, modes)).build("store", "", fields)


def test_data_packets() -> None:
    """Relative to those before them, since the last synchronization or loss; in the form the support packet told."""
    encapsulation = Encapsulation("encap", type_bits=1, block_size=64)
    framer = encapsulation.framer()

    def addresses(*packets: bytes | str) -> list[int | None]:
        """Of data packets; those of instruction trace begin with 3 (format 3). "lost": bytes that are not a packet."""
        data = b""
        for packet in packets:
            if packet == "lost":  # a packet that would go on in the next block
                data += framer.idle(60 - len(data) % 64) + b"\x1f" * 4
            else:
                assert isinstance(packet, bytes)
                data += framer.packet(packet, ContentKind.INSTRUCTION if packet[0] & 3 == 3 else ContentKind.DATA)
        return [item.access.address for item in items(data, encapsulation=encapsulation) if item.access]

    near = store(address=1, diff=1)
    assert near[0] & 3 != 3
    assert addresses(sync(0), store(address=0x400), near, near) == [0x1000, 0x1004, 0x1008]
    assert addresses(sync(0), store(address=0x400), near, sync(0), near) == [0x1000, 0x1004, None]
    assert addresses(sync(0), store(address=0x400), "lost", near) == [0x1000, None]
    bare = Modes(data_no_data=True)
    only = store(address=0x400, modes=bare)
    assert addresses(support(bare), sync(0), only) == [0x1000]
    assert addresses(sync(0), store(address=0x400), support(bare), sync(0), only) == [0x1000, 0x1000]


def test_a_copy_knows_data_of_its_own() -> None:
    """The last address of each size is not shared."""
    encapsulation = Encapsulation("encap", type_bits=1)
    framer = encapsulation.framer()
    begin = framer.packet(sync(0)) + framer.packet(store(address=0x400), ContentKind.DATA)
    near = framer.packet(store(address=1, diff=1), ContentKind.DATA)
    first = Itemizer(RV32, encapsulation, 32)
    assert len(list(first.feed(begin + framer.idle(4096 - len(begin))))) == 2
    second = deepcopy(first)
    for itemizer in (first, second):
        told = [item.access for item in [*itemizer.feed(near), *itemizer.finish()] if item.access]
        assert [access.address for access in told] == [0x1004]


def test_data_packets_of_the_reference_model() -> None:
    """The accesses of vectors/data/basic, as its table has them: how many, and the first ones."""
    folder = VECTORS / "etrace" / "data"
    data = (folder / "basic" / "qsort.te_data_raw").read_bytes()
    options = Options(Parameters(64, 1, 2, 5, context_width=32, data_reference=True))
    taken = items(data, options, Encapsulation("smi"), 64)
    accounted(taken, len(data))
    told = [item.access for item in taken if item.access]
    assert len(told) == 17624  # README
    assert [(one.kind, one.address, one.size, one.value) for one in told[:2]] == [
        ("load", 0x1018, 8, 0x80000000), ("store", 0x80025B30, 8, 0),
    ]  # fmt: skip
    assert lines(data, options, Encapsulation("smi"), 64)[1] == (
        "te_data kind=load size=3 diff=1 data_len=7 data=0x80000000 address=0x203 addr=0x1018 value=0x80000000"
        " # load of 8 bytes, differential address, differential data"
    )


def test_words() -> None:
    """One line for each kind of packet."""
    modes = Modes(branch_prediction=True, jump_target_cache=True)
    parameters = replace(RV32.parameters, bpred_size=4, cache_size=4, return_stack_size=2, context_width=8)
    options = Options(parameters, modes)

    def made(format: int, subformat: int | None, **fields: int) -> bytes:
        return build(format, subformat, fields, options, modes)

    data = framed([
        made(3, 3, **support_fields(options.support, parameters, modes)),
        made(3, 0, branch=0, privilege=0, context=5, address=0x1000),
        made(3, 1, branch=1, privilege=3, context=5, ecause=2, interrupt=0, thaddr=1, address=0x2000, tval=0x57),
        made(3, 1, branch=1, privilege=1, context=5, ecause=12, interrupt=0, thaddr=0, address=0x10, tval=0x10),
        made(3, 2, privilege=1, context=6),
        made(2, None, address=0x10, updiscon=1),
        made(2, None, address=-0x10, notify=1),
        made(1, None, branches=3, branch_map=0b101, address=2, irreport=1, irdepth=3),
        made(1, None, branches=0, branch_map=1),
        made(0, 0, branch_count=0, branch_fmt=0),
        made(0, 0, branch_count=5, branch_fmt=3, address=4),
        made(0, 0, branch_count=5, branch_fmt=2, address=4),
        made(0, 1, index=1, branches=2, branch_map=0b10),
        made(0, 1, index=9, branches=0, irreport=1, irdepth=1),
        made(3, 3, **support_fields(options.support, parameters, modes, ienable=False) | {"qual_status": 3}),
        made(
            *(3, 3),
            **support_fields(options.support, parameters, PLAIN, denable=True, dloss=True) | {"encoder_mode": 1},
        ),
    ])  # fmt: skip
    zeros = "denable=0 dloss=0 no_address=0 no_data=0 full_daddress=0 full_data=0"
    on = f"implicit_return=0 implicit_exception=0 full_address=0 jump_target_cache=1 branch_prediction=1 {zeros}"
    assert lines(data, options) == [
        f"te_inst format=3 subformat=3 ienable=1 encoder_mode=0 qual_status=0 {on}"
        " # tracing on; branch prediction, jump target cache",
        "te_inst format=3 subformat=0 branch=0 privilege=0 context=0x5 address=0x1000 addr=0x1000"
        " # start of tracing, or synchronization; U-mode; the branch there is taken",
        "te_inst format=3 subformat=1 branch=1 privilege=3 context=0x5 ecause=2 interrupt=0 thaddr=1 address=0x2000"
        " tval=0x57 addr=0x2000 # exception 2 (illegal instruction); M-mode",
        "te_inst format=3 subformat=1 branch=1 privilege=1 context=0x5 ecause=12 interrupt=0 thaddr=0 address=0x10"
        " tval=0x10 addr=0x10 # exception 12 (instruction page fault); S-mode; nothing of the handler has run yet: the"
        " address is where the trap was, if a discontinuity led there",
        "te_inst format=3 subformat=2 privilege=1 context=0x6 # context; S-mode",
        "te_inst format=2 address=0x10 updiscon=1 addr=0x2010 # after an uninferable discontinuity",
        "te_inst format=2 address=-0x10 notify=1 addr=0x2000 # reported because a trigger requested it",
        "te_inst format=1 branches=3 branch_map=0x5 address=0x2 irreport=1 irdepth=3 addr=0x2002 map=NTN"
        " # 3 branches; return stack depth 3",
        "te_inst format=1 branches=0 branch_map=0x1 map=NTTTTTTTTTTTTTTTTTTTTTTTTTTTTTT # 31 branches, branch map full",
        "te_inst format=0 subformat=0 branch_count=0 branch_fmt=0 # 31 branches as predicted; the next one not",
        "te_inst format=0 subformat=0 branch_count=5 branch_fmt=3 address=0x4 addr=0x2006"
        " # 36 branches as predicted; the one at the address not",
        "te_inst format=0 subformat=0 branch_count=5 branch_fmt=2 address=0x4 addr=0x200a # 36 branches as predicted",
        "te_inst format=0 subformat=1 index=1 branches=2 branch_map=0x2 addr=0x2002 map=TN"
        " # to entry 1 of the jump target cache; 2 branches",
        "te_inst format=0 subformat=1 index=9 branches=0 irreport=1 irdepth=1 addr=?"
        " # to entry 9 of the jump target cache; return stack depth 1; the contents of the jump target cache"
        " follow from the code",
        f"te_inst format=3 subformat=3 ienable=0 encoder_mode=0 qual_status=3 {on} # tracing off; tracing ended, the"
        " packet before would have been sent anyway; branch prediction, jump target cache",
        "te_inst format=3 subformat=3 ienable=1 encoder_mode=1 qual_status=0 implicit_return=0 implicit_exception=0"
        " full_address=0 jump_target_cache=0 branch_prediction=0 denable=1 dloss=1 no_address=0 no_data=0"
        " full_daddress=0 full_data=0 # tracing on; reserved encoder_mode 1; data trace on; data packets were lost",
    ]


def test_words_for_implicit_returns() -> None:
    """Implicit Return extension."""
    options = Options(replace(RV32.parameters, iret_ext=True, return_stack_size=2))
    payload = build(2, None, {"address": 4, "irreport": 1, "irets": 1}, options, PLAIN)
    assert lines(framed([sync(0x1000), payload]), options)[1] == (
        "te_inst format=2 address=0x4 irreport=1 irets=1 addr=0x1004"
        " # 1 implicit return since the last branch or packet"
    )


def test_one_bit_of_privilege() -> None:
    """Machine mode or user mode."""
    options = Options(replace(RV32.parameters, privilege_width=1))
    for privilege, mode in ((0, "U-mode"), (1, "M-mode")):
        payload = build(3, 0, {"branch": 1, "privilege": privilege, "address": 0}, options, PLAIN)
        assert lines(framed([payload]), options)[0].endswith(f"; {mode}")


def test_payloads_are_shown_on_request() -> None:
    """And always where they are no packet."""
    wording = Wording(RV32)
    too_long = b"\x06" + bytes(9) + b"\x12"
    good, bad = items(framed([sync(0x1000), too_long]))
    assert wording.text(good, raw=True).startswith("te_inst format=3 subformat=0 ")
    assert f" RAW={sync(0x1000).hex()} # " in wording.text(good, raw=True)
    assert wording.text(bad) == ("NoPacket BYTES=12 RAW=0600000000000000000012 # 11 bytes, of which 5 are fields")


def test_what_no_encoder_sends() -> None:
    """Reserved codes, and what is not a packet."""
    wording = Wording(RV32)
    good, mode, privilege, bad, idle = items(
        framed([sync(0x1000), support(encoder_mode=1), sync(0, privilege=2), b"\x06" + bytes(9) + b"\x12"]) + bytes(3)
    )
    assert [wording.is_odd(item) for item in (good, mode, privilege, bad, idle)] == [False, True, True, True, False]


ENCAPSULATIONS = [
    ENCAP, Encapsulation("encap", src_bits=6, timestamp_bytes=2, type_bits=1), Encapsulation("smi"),
    Encapsulation("atb"), Encapsulation("esp32"), Encapsulation("pulp"), Encapsulation("qemu"),
]  # fmt: skip


@given(
    st.lists(st.binary(max_size=60) | st.sampled_from([bytes(40), framed([sync(0x1000), jump(4)])]), max_size=9),
    st.sampled_from(ENCAPSULATIONS), st.sampled_from(Dialect), st.sampled_from(SupportLayout), st.booleans(),
    st.sampled_from([Modes(), Modes(jump_target_cache=True), Modes(full_address=True, branch_prediction=True)]),
)  # fmt: skip
def test_any_bytes(
    parts: list[bytes],
    encapsulation: Encapsulation,
    dialect: Dialect,
    layout: SupportLayout,
    wrapped: bool,
    modes: Modes,
) -> None:
    """Every byte is in one item, which has a line."""
    parameters = replace(RV32.parameters, bpred_size=3, cache_size=3, return_stack_size=2)
    options = Options(parameters, modes, support=layout, dialect=dialect)
    data = b"".join(parts)
    taken = items(data, options, encapsulation, wrapped=wrapped)
    assert sum(item.length for item in taken) == len(data)
    wording = Wording(options)
    for item in taken:
        line = wording.text(item, raw=True)
        assert "\n" not in line
        assert isinstance(wording.is_odd(item), bool)
        assert item.problem or item.is_idle or line.startswith(("te_inst format=", "te_data kind=", "Other BYTES="))

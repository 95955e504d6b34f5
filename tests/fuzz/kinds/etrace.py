"""Raw E-Trace bytes: packets of all dialects and options, what they travel in, and data packets among them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from rvtrace_gdb.decode.etrace.data.codec import DataEncoder
from rvtrace_gdb.decode.etrace.encapsulation import ContentKind, Encapsulation
from rvtrace_gdb.decode.etrace.encoder.options import ResyncMode
from rvtrace_gdb.decode.etrace.options import Dialect, Modes, Options, Parameters, SupportLayout
from rvtrace_gdb.decode.program.context_images import ContextImages
from rvtrace_gdb.decode.program.instructions import (
    ATOMIC,
    CAS_FAILURE,
    CSR,
    LOAD,
    MULTIPLE,
    STORE,
    STORE_FAILURE,
    MemoryAccess,
)
from rvtrace_gdb.session.capture.etrace_settings import EtraceTraceOptions
from tests.decode.etrace.random_programs import Case, legal
from tests.fuzz.kinds.trace_checks import Trace, Traces

_STEPS = 50  # instructions of each trace
FIELDS: dict[str, tuple[Any, ...]] = {
    "iaddress_lsb": (0, 1, 1),
    "privilege_width": (2, 3),
    "ecause_width": (4, 6),
    "context_width": (0, 11),
    "time_width": (0, 0, 16),
    "bpred_size": (1, 3),
    "cache_size": (1, 3),
    "return_stack_size": (0, 2),
    "call_counter_size": (0, 3),
    "f0s_width": (None, None, 1, 2),
    "ecall_retires": (False, True),
    "full_address": (False, False, True),
    "implicit_exception": (False, False, True),
    "sijump": (False, True),
    "implicit_return": (False, True),
    "branch_prediction": (False, True),
    "jump_target_cache": (False, True),
    "resync_disabled": (False, False, False, True),
    "sync_mode": (ResyncMode.PACKETS,),
    "sync_max": (0, 1, 2),
    "compress": (True,),
    "shortest": (False, True),
    "epc_after_inferred": (False, True),
}
ENCAPSULATIONS = {
    "encap": Encapsulation(),
    "encap with all": Encapsulation("encap", src_bits=6, timestamp_bytes=2, type_bits=2, extend_bit=5),
    "encap with odd srcID": Encapsulation("encap", src_bits=11, timestamp_bytes=1, type_bits=1),
    "encap packed": Encapsulation("encap", src_bits=3, type_bits=1, bit_packed=True),
    "encap in blocks": Encapsulation("encap", src_bits=8, block_size=64),
    "smi": Encapsulation("smi"),
    "smi with all": Encapsulation("smi", src_bits=8, timestamp_bytes=4, type_bits=2, extend_bit=6),
    "atb": Encapsulation("atb"),
    "atb of 16": Encapsulation("atb", atb_bytes=16, timestamp_bytes=2, type_bits=1),
    "esp32": Encapsulation("esp32"),
    "pulp": Encapsulation("pulp"),
    "qemu": Encapsulation("qemu"),
}
_DIALECTS = {"pulp": Dialect.PULP, "qemu": Dialect.QEMU, "esp32": Dialect.ET20}


def _case(number: int) -> Case:
    rng = random.Random(number)
    drawn: dict[str, Any] = {name: rng.choice(values) for name, values in FIELDS.items()}
    return Case(number, legal(drawn), steps=_STEPS, trap_rate=0.03, breaks=0.1 if number % 5 == 0 else 0)


class ETracePackets(Traces):
    """Programs and options by number; some are read as what another maker's encoder sent."""

    def __init__(self) -> None:
        super().__init__({str(number): etrace_of(number) for number in range(24)})


def etrace_of(number: int) -> Trace:
    """The trace of a program, both by number."""
    case = _case(number)
    options = replace(case.options, pinned=number % 2 == 0)
    if number % 4 == 3:
        dialect, support = random.Random(number).choice(list(_others()))
        options = replace(options, dialect=dialect, support=support)
    trace_options = EtraceTraceOptions(options, Encapsulation())
    return Trace(case.trace, ContextImages(case.image), trace_options, wrapped=number % 3 == 0)


def _others() -> Iterator[tuple[Dialect, SupportLayout]]:
    for dialect in Dialect:
        for support in SupportLayout:
            yield dialect, support


class Encapsulated(Traces):
    """Each encapsulation, with packets of two sources where it tells sources."""

    def __init__(self) -> None:
        traces = {}
        for number, (name, encapsulation) in enumerate(ENCAPSULATIONS.items()):
            case = _case(number + 100)
            trace_options = EtraceTraceOptions(
                replace(case.options, dialect=_DIALECTS.get(name, Dialect.STANDARD)), encapsulation
            )
            data = _put(case.packets, encapsulation)
            for wrapped in (False, True):
                traces[f"{name}{' wrapped' * wrapped}"] = Trace(data, ContextImages(case.image), trace_options, wrapped)
        super().__init__(traces)


def _put(packets: list[bytes], encapsulation: Encapsulation) -> bytes:
    framer = encapsulation.framer()
    has_time, has_sources = encapsulation.timestamp_bytes > 0, encapsulation.src_bits > 0 or encapsulation.name == "atb"
    stream = bytearray(framer.synchronization())
    for number, packet in enumerate(packets):
        time = 3 * number if has_time and number % 3 else None
        stream += framer.packet(packet, ContentKind.INSTRUCTION, 1 + number % 2 if has_sources else 0, time)
        if number % 7 == 6:
            stream += framer.idle(4)
    return bytes(stream)


_DATA = {
    "plain": (Parameters(), Modes()),
    "reference": (Parameters(data_reference=True), Modes()),
    "difference": (Parameters(data_difference=True, data_diff_width=1), Modes(data_full_address=True)),
    "split": (Parameters(lrid_width=2), Modes()),
    "no address": (Parameters(data_width=128), Modes(data_no_address=True)),
    "no data": (Parameters(), Modes(data_no_data=True)),
    "extended": (Parameters(mmacas_ext=True, lrid_width=1), Modes(data_full_data=True)),
    "narrow": (Parameters(data_format_width=2, daddress_width=32), Modes()),
}


class DataTrace(Traces):
    """Data packets of all layouts among instruction packets."""

    def __init__(self) -> None:
        traces = {}
        for number, (name, (parameters, modes)) in enumerate(_DATA.items()):
            case = _case(number + 200)
            options = _with_data(case.options, parameters, modes)
            trace_options = EtraceTraceOptions(options, Encapsulation("encap", type_bits=1))
            traces[name] = Trace(
                _mixed(case, trace_options, number), ContextImages(case.image), trace_options, wrapped=number % 2 == 0
            )
        super().__init__(traces)


def _with_data(options: Options, parameters: Parameters, modes: Modes) -> Options:
    """*options* with what is said of data packets."""
    names = ("data_width", "daddress_width", "lrid_width", "data_format_width", "data_diff_width", "data_difference",
             "data_reference", "mmacas_ext")  # fmt: skip
    told = {name: getattr(parameters, name) for name in names}
    switched = {name: getattr(modes, name) for name in vars(modes) if name.startswith("data_")}
    return replace(
        options, parameters=replace(options.parameters, **told), modes=replace(options.modes, **switched)
    )


def _mixed(case: Case, trace_options: EtraceTraceOptions, number: int) -> bytes:
    rng, stream, framer = random.Random(number), bytearray(), trace_options.encapsulation.framer()
    data = DataEncoder(
        trace_options.options.parameters,
        trace_options.options.modes,
        lambda packet: stream.extend(framer.packet(packet, ContentKind.DATA)),
    )
    for packet in case.packets:
        stream += framer.packet(packet)
        if packet[0] & 3 == 3:
            data.synchronize()
        for _ in range(rng.choice((0, 1, 1, 3))):
            data.access(_access(rng))
    return bytes(stream)


def _access(rng: random.Random) -> MemoryAccess:
    kind = rng.choice((LOAD, LOAD, STORE, STORE, ATOMIC, CSR))
    size = rng.choice((4, 8)) if kind in (ATOMIC, CSR) else rng.choice((1, 2, 4, 8))
    address = rng.randrange(0x1000) if kind == CSR else 0x8000 + rng.randrange(1 << 10)
    operation = {ATOMIC: ("add", "swap", "max", CAS_FAILURE, STORE_FAILURE), CSR: ("rw", "rs", "rc")}
    what = rng.choice(operation.get(kind, ("", "", MULTIPLE)))
    return MemoryAccess(kind, size, what, address, rng.randrange(1 << 8 * size), rng.randrange(1 << 8 * size))

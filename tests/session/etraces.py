"""Ways E-Trace streams are made: any of them, for tests of who passes them on."""

from dataclasses import fields

from hypothesis import strategies as st

from rvtrace_gdb.decode.etrace.encapsulation import Encapsulation
from rvtrace_gdb.decode.etrace.options import Dialect, Modes, Options, Parameters, SupportLayout, TrapHandlers
from rvtrace_gdb.session.capture.etrace_settings import EtraceTraceOptions

_booleans = {field.name: st.booleans() for field in fields(Modes)}

parameters = st.builds(
    Parameters,
    iaddress_width=st.integers(2, 64),
    iaddress_lsb=st.integers(0, 2),
    privilege_width=st.integers(1, 3),
    ecause_width=st.integers(1, 64),
    context_width=st.integers(0, 64),
    time_width=st.integers(0, 64),
    bpred_size=st.integers(0, 16),
    cache_size=st.integers(0, 16),
    return_stack_size=st.integers(0, 16),
    call_counter_size=st.integers(0, 16),
    f0s_width=st.none() | st.integers(0, 2),
    iret_ext=st.booleans(),
    ecall_retires=st.booleans(),
    data_width=st.sampled_from([32, 64, 128]),
    daddress_width=st.integers(2, 64),
    lrid_width=st.integers(0, 16),
    data_format_width=st.integers(0, 3),
    data_diff_width=st.integers(1, 2),
    data_difference=st.booleans(),
    data_reference=st.booleans(),
    csr_width=st.integers(0, 64),
    mmacas_ext=st.booleans(),
)
modes = st.builds(Modes, **_booleans)
_addresses = st.integers(0, (1 << 64) - 1)
_handlers = st.dictionaries(st.tuples(st.integers(0, 63), st.booleans()), _addresses, max_size=3)
options = st.builds(
    Options,
    parameters=parameters,
    modes=modes,
    pinned=st.booleans(),
    unfiltered=st.booleans(),
    sync_packets=st.integers(0, 1 << 19),
    branch_count_bits=st.integers(1, 32),
    support=st.sampled_from(SupportLayout),
    dialect=st.sampled_from(Dialect),
    trap_handlers=st.builds(TrapHandlers, st.none() | _addresses, _handlers),
)
encapsulations = st.builds(
    Encapsulation,
    name=st.sampled_from(["encap", "smi"]),
    src_bits=st.integers(0, 16),
    timestamp_bytes=st.integers(0, 8),
    type_bits=st.integers(0, 2),
    extend_bit=st.integers(5, 7),
    bit_packed=st.booleans(),
    block_size=st.integers(0, 1 << 30),
    block_start=st.integers(0, 1 << 30),
) | st.builds(Encapsulation, name=st.sampled_from(["atb", "esp32", "pulp", "qemu"]))
etraces = st.builds(EtraceTraceOptions, options, encapsulations)

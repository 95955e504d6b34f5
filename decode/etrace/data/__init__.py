"""E-Trace data packets (te_data): what instructions loaded, stored, and did to CSRs."""

from rvtrace_gdb.decode.etrace.data.decoder import DataDecoder as DataDecoder
from rvtrace_gdb.decode.etrace.data.options import DataOptions as DataOptions

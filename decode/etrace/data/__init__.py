"""E-Trace data packets (te_data): what instructions loaded, stored, and did to CSRs."""

from rvtrace_gdb.decode.etrace.data.codec import DataDecoder
from rvtrace_gdb.decode.etrace.data.packet import DataOptions

__all__ = ["DataDecoder", "DataOptions"]

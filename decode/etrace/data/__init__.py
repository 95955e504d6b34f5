"""E-Trace data packets (te_data): what instructions loaded, stored, and did to CSRs."""

from decode.etrace.data.decoder import DataDecoder as DataDecoder
from decode.etrace.data.options import DataOptions as DataOptions

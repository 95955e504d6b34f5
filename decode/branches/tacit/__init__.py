"""TACIT, the trace format of Berkeley's encoder for Rocket, Shuttle and BOOM (L-trace): a packet for each transfer.

`packets` has the layout, `reader` cuts bytes into packets, `predictor` is the encoder's branch predictor, `decoder`
makes a history of packets, and `encoder` sends what a hart ran.
"""

from rvtrace_gdb.decode.branches.tacit.decoder import history_of
from rvtrace_gdb.decode.branches.tacit.reader import items_of

__all__ = ["history_of", "items_of"]

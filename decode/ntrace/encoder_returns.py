"""The return addresses an encoder remembers, so that it need not report returns to them.

Source: RISC-V N-Trace 1.0, "Implicit Return Optimization" and, for what each instruction does to the stack, "Handling
of 4-bit itype values". `callstack` is the decoder's side.
"""

from collections import deque

from rvtrace_gdb.decode.instructions import IType
from rvtrace_gdb.decode.ntrace.encoder_options import EncoderOptions
from rvtrace_gdb.decode.ntrace.options import ImplicitReturn

_PUSH = frozenset({IType.UNINFERABLE_CALL, IType.INFERABLE_CALL, IType.COROUTINE_SWAP})
_POP = frozenset({IType.RETURN, IType.COROUTINE_SWAP})


class ReturnStack:
    """A counter, or a stack of whole or of cut-off addresses, of a fixed depth; full, it forgets the oldest call."""

    def __init__(self, options: EncoderOptions) -> None:
        bits = {ImplicitReturn.COUNTER: 0, ImplicitReturn.PARTIAL_STACK: options.partial_bits}
        self._mask = (1 << bits.get(options.implicit_return, options.xlen)) - 1  # of a counter nothing is compared
        self._addresses: deque[int] = deque(maxlen=options.return_depth)

    def follow(self, itype: IType, fall: int, target: int) -> bool:
        """An instruction of this type before *fall* has gone to *target*: whether that is a return it expected."""
        expected = False
        if itype in _POP and self._addresses:
            expected = self._addresses.pop() == target & self._mask
        if itype in _PUSH:
            self._addresses.append(fall & self._mask)
        return expected

    def clear(self) -> None:
        """Forget all calls, as at every synchronizing message."""
        self._addresses.clear()

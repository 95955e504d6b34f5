"""The values that the writer of a register left, and found."""

from rvtrace_gdb.decode.program import csrs
from rvtrace_gdb.session.past.past import INSTRUCTION, OUTSIDE, PC, PastWrite
from rvtrace_gdb.session.past.reconstructed.values import ReconstructedValues
from rvtrace_gdb.session.past.register_writers import RegisterWriters


def with_values(written: PastWrite, values: ReconstructedValues, writers: RegisterWriters) -> PastWrite:
    """Return a writer with the values of the register before it and after it, as far as they are known."""
    register, position = written.register, written.position
    if register is None or register == PC:
        return written
    if written.kind == INSTRUCTION:
        old = values.registers_at(position)(register)
        new = None if writers.changes_before(position + 1, register) else values.registers_at(position + 1)(register)
    else:  # what it was one instruction earlier, which must not have written it
        is_known = position > 0 and not writers.is_instruction(position - 1, register)
        old = values.registers_at(position - 1)(register) if is_known else None
        new = written.new if written.kind == OUTSIDE else values.registers_at(position)(register)
    doubts = written.doubts
    if new is None and not csrs.is_counter(register):
        doubts = (*doubts, "The value that it wrote is not known.")
    return written._replace(old=old, new=new, doubts=doubts)

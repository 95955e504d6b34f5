"""The Ownership messages that tell a context.

Source: RISC-V N-Trace 1.0, "Ownership Message"; `process` has the sub-fields.
"""

from rvtrace_gdb.decode.history import Context
from rvtrace_gdb.decode.ntrace.encoder_options import EncoderOptions
from rvtrace_gdb.decode.ntrace.process import Format


def processes(context: Context, options: EncoderOptions, *, whole: bool) -> list[int]:
    """The PROCESS fields to send, in this order: *whole* tells all of the context, else only the privilege mode.

    A hart without hcontext sends one message; with it two, hcontext first. The mode must be known.
    """
    assert context.prv is not None
    mode = context.prv << 2 | context.virtual << 4
    forms: list[tuple[int, int]] = []
    if whole and context.hcontext is not None:
        forms.append((Format.HCONTEXT, context.hcontext))
    if whole and (context.scontext is not None or forms or options.ownership_full):
        forms.append((Format.SCONTEXT, context.scontext or 0))
    if options.dialect.scontext_first:
        forms.reverse()
    return [value << 5 | mode | form for form, value in forms or [(int(Format.PRIVILEGE), 0)]]

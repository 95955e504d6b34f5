"""Which source a target description asks for. A session traces one sort of target, and loads what that needs."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.description.model import Description
from rvtrace_gdb.session.sources import TraceOwner
from rvtrace_gdb.support.errors import Progress

if TYPE_CHECKING:
    from rvtrace_gdb.session.target.link import ConnectLink


def start(
    session: TraceOwner, description: Description, context: Context, options: Mapping[str, Any],
    connect: "ConnectLink", progress: Progress,
) -> list[str]:  # fmt: skip
    """Start the source for the target, and return a line for each thing that was set up.

    Raises BadElf, DescriptionError, BadOption, WrongXlen, and the errors of the transport and the components.
    """
    if description.qemu:
        from rvtrace_gdb.session.sources.qemu import trace as qemu

        return qemu.start(session, description, context, options, progress)
    if description.tandem:
        from rvtrace_gdb.session.sources import tandem_port

        if tandem_port.is_requested(description, options):
            return tandem_port.start(session, description, context, options)
    if description.tracers and not description.encoders:
        from rvtrace_gdb.session.sources import neorv32_tracer

        return neorv32_tracer.start(session, description, context, options, connect, progress)
    if description.tacit and not description.encoders:
        from rvtrace_gdb.session.sources import tacit_encoder

        return tacit_encoder.start(session, description, context, options, connect, progress)
    if not description.encoders and not description.tandem:
        from rvtrace_gdb.session.description.connections import no_encoder

        raise no_encoder(description.file, "" if description.usb is None else description.usb.adapter)
    from rvtrace_gdb.session.sources import trace_control

    return trace_control.start(session, description, context, options, connect, progress)

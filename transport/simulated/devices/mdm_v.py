"""The sink to an AXI4-Stream of AMD's MDM V, as a device: it sends each message as it comes, and has no settings.

Behaviour: AMD PG428 (MDM V 1.0), "AXI Slave Register Space"; the bits of its control register, by their names, as those
of every component of the Trace Control Interface.
"""

from rvtrace_gdb.controlregs.mdm_v import AXI_STREAM_SINK
from rvtrace_gdb.transport.simulated.devices.component import ComponentBuild
from rvtrace_gdb.transport.simulated.devices.output import TraceConsumer
from rvtrace_gdb.transport.simulated.devices.sinks import PinProbe

_UNKNOWN = 0xB
"""What tr??CompType reads: no document says it, so it is a value that no other component has."""


class AxiStreamSink(TraceConsumer):
    """A sink whose messages *stream* receives."""

    by_message = True
    async_interval = 0

    def __init__(self, stream: PinProbe, *, build: ComponentBuild | None = None) -> None:
        super().__init__(
            AXI_STREAM_SINK, implemented={}, constant={"trStreamCompType": _UNKNOWN}, control_default={}, build=build
        )
        self._stream = stream

    def accept(self, data: bytes) -> int:
        """Take one whole message."""
        if not self.ready:
            return 0
        self._stream.write(data)
        return len(data)

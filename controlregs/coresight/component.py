"""A CoreSight component that takes part in a trace."""

from rvtrace_gdb.controlregs.component import Component
from rvtrace_gdb.controlregs.fields import RegisterBlock
from rvtrace_gdb.controlregs.target import Target


class CoresightComponent(Component):
    """A CoreSight component at *base*. *is_link*: it passes trace on; else it stores it.

    routes     what is used of it: inputs of a funnel, outputs of a replicator
    pages      addresses of the pages of a TMC's buffer, if that is scattered
    readout    what was read of a TMC's buffer since it stopped, if that is not all: the next reading goes on there, as
               each word of a TMC's own memory can be read only once
    taken      it was claimed, and has to be given back
    """

    def __init__(
        self, target: Target, base: int, block: RegisterBlock, name: str, timeout: float = 1.0, *, is_link: bool = True
    ) -> None:
        super().__init__(target, base, block, name, timeout)
        self.is_link = is_link
        self.routes: tuple[int, ...] = ()
        self.pages: tuple[int, ...] = ()
        self.readout = bytearray()
        self.taken = False

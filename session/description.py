"""What a target description says: which trace components there are, where they are, and how they are reached."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from session.etrace_settings import Value
from support.errors import RvtraceError


class DescriptionError(RvtraceError):
    """A target description that cannot be used, or none at all.

    *file*, *table* and *key* say where, as far as known.
    """

    def __init__(self, problem: str, file: str = "", table: str = "", key: str = "") -> None:
        super().__init__(": ".join(part for part in (file, table, key, problem) if part))
        self.problem, self.file, self.table, self.key = problem, file, table, key


@dataclass(frozen=True)
class OpenOcd:
    """Where OpenOCD's Tcl server listens."""

    host: str = "127.0.0.1"
    tcl_port: int = 6666


@dataclass(frozen=True)
class Encoder:
    """A trace encoder: the registers trTe* at *base*, tracing *hart*, feeding the sinks named in *to*.

    *etrace*: what a decoder must know and no register tells, see `session.etrace_settings`.
    """

    name: str
    base: int
    hart: int
    to: tuple[str, ...]
    etrace: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True)
class RamSink:
    """A RAM sink: the registers trRam* at *base*.

    *start* and *size* (bytes) reserve its buffer; SRAM sinks may know them themselves.
    """

    name: str
    base: int
    mode: str
    start: int | None
    size: int | None


@dataclass(frozen=True)
class Description:
    """A target description that has been checked."""

    name: str
    file: str
    xlen: int | None
    openocd: OpenOcd
    encoders: tuple[Encoder, ...]
    sinks: tuple[RamSink, ...]

    def sink_of(self, encoder: Encoder) -> RamSink:
        """The sink that *encoder* feeds."""
        return next(sink for sink in self.sinks if sink.name == encoder.to[0])

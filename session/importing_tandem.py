"""A tandem trace that something else made (a simulation, a board) as a capture: nothing of it is in registers."""

from datetime import UTC, datetime
from pathlib import PurePath

from rvtrace_gdb.decode.image import Image
from rvtrace_gdb.decode.tandem.parameters import Parameters
from rvtrace_gdb.session.captured import Capture, CapturedTandem, TandemPort
from rvtrace_gdb.session.decoding import identity_of
from rvtrace_gdb.session.version import tool


def tandem_capture(
    name: str, data: bytes, parameters: Parameters, image: Image, *, hart: int = 0, wrapped: bool = False
) -> Capture:
    """The bytes as the capture of one hart. *name*: of the file. *image*: the program, empty where none is known."""
    port = TandemPort(f"tandem{hart}", parameters)
    return Capture(
        created=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        tool=tool(),
        target=f"an unknown target, imported from {PurePath(name).name}",
        xlen=parameters.xlen,
        elf=identity_of(image) if image.path else None,
        encoders=(),
        sinks=(),
        code=tuple(image.code) if image.path else tuple(image.segments),
        tandem=(CapturedTandem(hart, port, data, wrapped),),
    )

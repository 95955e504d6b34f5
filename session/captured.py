"""A trace as it was captured: what a capture file holds, and what the decoder is given."""

from dataclasses import dataclass

from controlregs.request import EncoderInForce, SinkInForce


@dataclass(frozen=True)
class ElfIdentity:
    """Which program ran: *path* where it was (for messages), GNU build-id in hex if it has one, SHA-256 of the file."""

    path: str
    build_id: str | None
    sha256: str


@dataclass(frozen=True)
class CapturedEncoder:
    """An encoder, its registers as read back while tracing, and the hart it traced."""

    hart: int
    in_force: EncoderInForce


@dataclass(frozen=True)
class CapturedSink:
    """What a sink held, oldest byte first.

    *wrapped*: older bytes were overwritten, so *data* may begin inside a message. *missing*: bytes at the end that
    could not be read. *encoders*: names of those that feed it. *lost*: names of those that dropped messages or stalled
    their hart.
    """

    in_force: SinkInForce
    data: bytes
    wrapped: bool
    missing: int
    encoders: tuple[str, ...]
    lost: tuple[str, ...]


@dataclass(frozen=True)
class Capture:
    """A trace as it is saved. *created*: ISO 8601, UTC. *tool*: name and version. *notes*: lines for the user."""

    created: str
    tool: str
    target: str
    xlen: int
    elf: ElfIdentity | None
    encoders: tuple[CapturedEncoder, ...]
    sinks: tuple[CapturedSink, ...]
    code: tuple[tuple[int, bytes], ...]
    notes: tuple[str, ...] = ()


def printable(text: str) -> str:
    """*text* from a file, fit to be shown: one line without control characters."""
    return "".join(character if character.isprintable() else "?" for character in text)

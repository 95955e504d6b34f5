"""`rvtrace encode --tandem`: Spike's commit log as a tandem trace, in any of the forms of the protocol."""

import argparse
import dataclasses
from collections import deque
from collections.abc import Callable, Iterator

from rvtrace_gdb.console import encode_output, tandem_forms, tandem_options
from rvtrace_gdb.console.output import Output
from rvtrace_gdb.decode.executed.log import Log
from rvtrace_gdb.decode.image import Image
from rvtrace_gdb.decode.tandem import csrs
from rvtrace_gdb.decode.tandem.commits import CommitLog
from rvtrace_gdb.decode.tandem.dialect import DIALECTS, SPECIFICATION
from rvtrace_gdb.decode.tandem.encoder import Encoder, Retired
from rvtrace_gdb.decode.tandem.parameters import Parameters
from rvtrace_gdb.session.captured import Capture
from rvtrace_gdb.session.importing_tandem import tandem_capture
from rvtrace_gdb.session.tandem.items import Itemizer
from rvtrace_gdb.session.tandem.wording import Wording
from rvtrace_gdb.support.errors import RvtraceError
from rvtrace_gdb.support.progress import Progress

_BATCH = 1024  # groups


class EncodeTandemError(RvtraceError):
    """A log that cannot be made a tandem trace, or not as it is wanted."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the encoder."""
    group = parser.add_argument_group("tandem", "What the encoder is like (docs/tandem.md).")
    tandem_forms.add_arguments(group, forms=tandem_forms.OF_ENCODER)
    tandem_options.add_own(group)


class Encoding:
    """A log on its way through the encoder, and what there was in it. *starts*: whether an address is the first."""

    def __init__(
        self, args: argparse.Namespace, commits: CommitLog, parameters: Parameters,
        starts: Callable[[int], bool] | None, progress: Progress,
    ) -> None:  # fmt: skip
        self.instructions = self.traps = self.groups = self.bytes = 0
        self.parameters = parameters
        self._commits, self._starts, self._limit, self._progress = commits, starts, args.limit, progress
        self._forms = tandem_forms.chosen(args, "--forms", tandem_forms.OF_ENCODER).forms
        self._sent: list[bytes] = []
        self._encoder = Encoder(parameters, self._sent.append, self._forms)

    def pieces(self) -> Iterator[bytes]:
        """The trace. Raises LogError, BadElement, EncodeTandemError, and what *progress* raises."""
        for count, told in enumerate(self._wanted()):
            if not count and told.own is not None:
                self._encoder.begin(told.own, told.own_privilege)
            self._checked(told)
            self._encoder.put(told)
            trapped = any(number in csrs.TRAP_OF_CAUSE for number, _ in told.csrs) and told.privilege is not None
            self.traps += trapped
            self.instructions += not trapped
            if len(self._sent) >= _BATCH:
                self._progress("encoding (instructions)", count + 1)
                yield self._taken()
        self._encoder.finish()
        yield self._taken()

    def _wanted(self) -> Iterator[Retired]:
        """From the first instruction that is wanted on."""
        begun, count = self._starts is None, 0
        for told in self._commits.retired():
            begun = begun or (told.own is not None and self._starts is not None and self._starts(told.own))
            if begun:
                count += 1
                yield told
            if count == self._limit:
                return

    def _checked(self, told: Retired) -> None:
        """Requests on the bus have physical addresses; the log's are the program's."""
        forms = self._forms
        if (forms.memory or forms.fetch) and any(number == csrs.SATP and value for number, value in told.csrs):
            raise EncodeTandemError(
                f"--forms: memory requests have physical addresses, and the program translates addresses from"
                f" 0x{told.own or 0:x} on (satp): leave out memory and fetch"
            )

    def _taken(self) -> bytes:
        self.groups += len(self._sent)
        data = b"".join(self._sent)
        self._sent.clear()
        self.bytes += len(data)
        return data

    def summary(self) -> str:
        """One line."""
        traps = f", {self.traps} trap{'s' if self.traps > 1 else ''}" if self.traps else ""
        return (
            f"{self.instructions} instructions{traps}: {self.groups} groups, {self.bytes} bytes,"
            f" {8 * self.bytes / max(self.instructions, 1):.3f} bits per instruction"
        )

    def facts(self) -> dict[str, object]:
        """As `summary`, for programs."""
        return {
            "instructions": self.instructions, "traps": self.traps, "items": self.groups, "bytes": self.bytes,
            "bits-per-instruction": round(8 * self.bytes / max(self.instructions, 1), 6),
        }  # fmt: skip


def encode(
    args: argparse.Namespace, image: Image, starts: Callable[[int], bool] | None, log: Log, shown: Output
) -> None:  # fmt: skip
    """Encode, and say what there was. Raises as `Encoding`, and OutputError, CaptureError."""
    if args.format not in (None, "spike"):
        raise EncodeTandemError(f"--format {args.format}: a tandem trace is made of Spike's commit log")
    parameters = _parameters(args, image)
    commits = CommitLog(log, image.xlen, image, args.hart)
    encoding = Encoding(args, commits, parameters, starts, shown.progress)

    def capture_of(data: bytes) -> Capture:
        return tandem_capture(args.output, data, parameters, image, hart=args.hart or 0)

    with encode_output.destination(args, capture_of) as write:
        pieces = encode_output.written(encoding.pieces(), write)
        if args.dump:
            itemizer, wording = Itemizer(parameters), Wording(parameters)
            shown.rows(encode_output.items(pieces, itemizer, wording, json=shown.json))
        else:
            deque(pieces, maxlen=0)
        if not encoding.instructions and not encoding.traps:
            raise EncodeTandemError(f"{log.name}: {_nothing(starts, args.hart)}")
    notes = [commits.mismatch] if commits.mismatch else []
    if shown.json and not args.dump:
        shown.facts({"file": args.output, "format": "tandem", **encoding.facts(), "messages": notes})
    else:
        shown.say([*(f"note: {note}" for note in notes), encoding.summary()])


def _nothing(starts: object, hart: int | None) -> str:
    if starts is not None:
        return "nothing was executed at --start"
    of_hart = "" if hart is None else f" of hart {hart}"
    return f"has no commit lines{of_hart}: a tandem trace needs what `spike -l --log-commits` writes"


def _parameters(args: argparse.Namespace, image: Image) -> Parameters:
    dialect = DIALECTS[args.tandem_dialect or SPECIFICATION.name]
    found = Parameters.of_elf(image.path, mlen=args.mlen or 0, dialect=dialect)
    flen = found.flen if args.flen is None else args.flen
    return dataclasses.replace(found, flen=flen, eaddr=args.eaddr or 0, supervisor=not args.no_supervisor)

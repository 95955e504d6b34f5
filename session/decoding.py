"""How a captured trace is decoded: the right options, whether the ELF is the right one, why there is nothing."""

from pathlib import PurePath

from rvtrace_gdb.controlregs.encoder import Format, InstMode, SyncMode
from rvtrace_gdb.controlregs.encoder_setup import SYNC_MAX_LOWEST_UNIT
from rvtrace_gdb.controlregs.request import EncoderInForce
from rvtrace_gdb.decode.history import EventKind, History
from rvtrace_gdb.decode.image import Image
from rvtrace_gdb.decode.ntrace import decoder as ntrace
from rvtrace_gdb.decode.ntrace.dialect import DIALECTS
from rvtrace_gdb.decode.ntrace.options import ImplicitReturn
from rvtrace_gdb.session.captured import Captured, CapturedRecords, CapturedTandem, ElfIdentity
from rvtrace_gdb.session.errors import NoTrace, Unsupported
from rvtrace_gdb.session.tandem import advice
from rvtrace_gdb.support.lines import warning
from rvtrace_gdb.support.text import printable

N_TRACE_MAJOR = 1
"""The trTeProtocolMajor that can be decoded (N-Trace 1.0, "N-Trace Specific Trace Controls")."""


def ntrace_options(encoder: EncoderInForce, *, alone: bool) -> ntrace.Options:
    """How to decode what *encoder* sends; *alone*: nothing else is in the same buffer. Raises `Unsupported`."""
    if encoder.format != Format.N_TRACE:
        name = "E-Trace" if encoder.format == Format.E_TRACE else f"trTeFormat {encoder.format}"
        raise undecodable(encoder, name)
    if encoder.version and encoder.protocol_version[0] != N_TRACE_MAJOR:  # a higher minor one adds only what is enabled
        raise undecodable(encoder, f"N-Trace {'.'.join(map(str, encoder.protocol_version))}")
    return ntrace.Options(
        src_bits=encoder.src_bits,
        src_id=None if alone or not encoder.src_bits else encoder.src_id,
        timestamps=encoder.timestamps,
        timestamp_bits=encoder.timestamp_bits,
        btm=encoder.inst_mode == InstMode.BTM,
        implicit_return=_implicit_return(encoder),
        sequential_jump=bool(encoder.feature("trTeInstEnSequentialJump")),
        all_jumps=bool(encoder.feature("trTeInstEnAllJumps")),
        extend_addr_msb=bool(encoder.feature("trTeInstExtendAddrMSB")),
        sync_period=sync_period(encoder),
        dialect=DIALECTS[encoder.dialect],
    )


def sync_period(encoder: EncoderInForce) -> int | None:
    """Messages or packets after which an encoder synchronizes, None where it counts something else or does not say."""
    mode, exponent = encoder.sync
    return 1 << exponent + SYNC_MAX_LOWEST_UNIT if encoder.version and mode == SyncMode.MESSAGES else None


def _implicit_return(encoder: EncoderInForce) -> ImplicitReturn:
    """An encoder that does not say how it follows calls is read like all that do: I-CNT tells what was not reported."""
    mode = encoder.implicit_return
    return ImplicitReturn.OFF if mode is None else ImplicitReturn(mode or ImplicitReturn.FULL_STACK)


def undecodable(encoder: EncoderInForce, what: str) -> Unsupported:
    """The error for an encoder that produces *what*."""
    return Unsupported(f"{printable(encoder.name)} produces {what}, which cannot be decoded yet; `trace save` keeps it")


def identity_of(image: Image) -> ElfIdentity:
    """What tells the image's ELF from others."""
    return ElfIdentity(image.path, image.build_id, image.sha256)


def other_elf(captured: ElfIdentity | None, image: Image) -> str | None:
    """A line when *image* is not the program that was captured. The same build-id is the same code, stripped or not."""
    if captured is None or captured.sha256 == image.sha256:
        return None
    if captured.build_id is not None and captured.build_id == image.build_id:
        return None
    was, now = printable(PurePath(captured.path).name), PurePath(image.path).name
    return warning(
        f"the trace was made with {was} ({_build(captured.build_id, captured.sha256)}), not with this {now}"
        f" ({_build(image.build_id, image.sha256)}): where their code differs, the history is wrong or missing"
    )


def _build(build_id: str | None, sha256: str) -> str:
    return printable(f"build-id {build_id[:12]}" if build_id else f"SHA-256 {sha256[:12]}")


def mismatch(history: History, image: Image) -> str | None:
    """What is said when trace and program contradict each other: most likely another program runs.

    In code that is not in the ELF: it was overwritten after it ran, or was written after it had been read.
    """
    found = [event for event in history.events if event.kind is EventKind.MISMATCH]
    if not found:
        return None
    places = f", and {len(found) - 1} more such places" if len(found) > 1 else ""
    pc = found[0].last_pc
    if pc is not None and image.is_added(pc):
        return f"{found[0].text}{places}: that memory has changed since the code in it ran"
    return f"{found[0].text}{places}: is this the program that ran?"


def losses(history: History) -> str | None:
    """What is said when bytes could not be used, whatever the program."""
    found = [event for event in history.events if event.kind is EventKind.LOSS]
    if not found:
        return None
    first = f"at byte {found[0].offset:#x}: {found[0].text}"
    if len(found) == 1:
        return f"a part of the trace cannot be decoded, {first}"
    return f"{len(found)} parts of the trace cannot be decoded, the first {first}"


def contradictions(history: History, image: Image, who: str = "", *, misread: bool = False) -> list[str]:
    """What does not fit in a history, a line each. *who*: whose it is, if there are several.

    *misread*: the trace is known to be read with wrong parameters, so that nothing speaks against the program.
    """
    problems = (None if misread else mismatch(history, image), losses(history))
    return [warning(f"{who}{problem}") for problem in problems if problem is not None]


def same_rows(before: History, after: History) -> bool:
    """Whether the numbers of a history still mean the same, though it was decoded anew."""
    if (len(before), before.instructions) != (len(after), after.instructions):
        return False
    return not len(before) or all(before.pc(i) == after.pc(i) for i in (0, len(before) // 2, len(before) - 1))


def nothing_traced(*, live: bool) -> NoTrace:
    """There are no bytes. *live*: there may be some later."""
    if not live:
        return NoTrace("the trace is empty: it has 0 bytes")
    return NoTrace("nothing was traced yet: let the program run (`continue`), then ask again")


def nothing_decoded(sink: Captured, history: History, image: Image, *, live: bool) -> NoTrace:
    """Why a history is empty. *live*: it comes from a target, and more can be traced there."""
    if not sink.data:
        return nothing_traced(live=live)
    if isinstance(sink, CapturedTandem):
        wrong = advice.advice(sink.data, sink.in_force.parameters, wrapped=sink.wrapped, by_elf=bool(image.path))
        if wrong:
            return NoTrace(wrong)
    problem = mismatch(history, image)
    if isinstance(sink, CapturedRecords) and problem is None:
        return NoTrace("nothing that ran can be told from the records: `trace ctr show` lists them")
    if problem is not None:
        return NoTrace(problem)
    traps = [event for event in history.events if event.kind is EventKind.TRAP]
    if traps:
        handler = f"the last an {traps[-1].text} with the handler at 0x{traps[-1].next_pc or 0:x}"
        return NoTrace(f"no instruction ran in this trace, only traps: {len(traps)}, {handler}")
    size = f"{len(sink.data)} byte{'s' if len(sink.data) > 1 else ''} of trace"
    if isinstance(sink, CapturedTandem):
        return NoTrace(f"{size}, and no instruction in it that retired: `trace dump` lists the groups")
    if any(event.next_pc is not None for event in history.events):
        more = ": let the program run on, or give it a larger buffer" if live else ""
        return NoTrace(f"{size} with a synchronizing message, and nothing after it that can be decoded{more}")
    more = "; ask for more of them (`trace start -sync-period N`), or use a larger buffer" if live else ""
    if not more and any(event.kind is EventKind.NOTE for event in history.events):
        more = ": `trace dump` lists the messages there are"
    return NoTrace(f"{size} without a synchronizing message, where decoding could start{more}")

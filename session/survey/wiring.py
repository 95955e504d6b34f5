"""What no register says: which hart an encoder traces, what feeds what, where a RAM sink has its buffer.

Where there is one possibility it is taken; where there are several, the user is asked.

Ref: RISC-V Trace Control Interface 1.0, ratified 2024-11-21, "Connections Between Components".
"""

from collections.abc import Callable, Iterable, Sequence

from rvtrace_gdb.controlregs.trace_control.discovery import ProbedComponent
from rvtrace_gdb.session.survey import arm_trace_bus
from rvtrace_gdb.session.survey.parts import SurveyedComponent
from rvtrace_gdb.session.survey.probing import probed_addresses
from rvtrace_gdb.session.survey.questions import Ask, Question, Unfit
from rvtrace_gdb.support.errors import RvtraceError

SOURCES, FUNNELS = ("encoder", "funnel"), ("funnel", "coresight_funnel")
SINKS = ("ram_sink", "pib_sink", "atb_bridge", "coresight_tmc")
HARTS, TO, BUFFER = "--harts N,...", "--to NAME,...", "--buffer START:SIZE"
ASSUMED = "assumed: in the order of the addresses, no register says it"

Readable = Callable[[int, int], None]
"""Reads the first and the last word of a buffer. Raises the transport's errors."""


class Incomplete(Unfit):
    """Components are missing without which nothing can be traced."""


def check_complete(parts: Sequence[SurveyedComponent], asleep: Sequence[ProbedComponent] = ()) -> None:
    """Raise Incomplete, unless there are an encoder and a sink. *asleep*: what may be components in reset."""
    kinds = {part.kind for part in parts}
    other, more = "allow other addresses with --probe, from the chip's manual", "allow more addresses (--probe)"
    if asleep:
        wake = f"what is at {probed_addresses(asleep)} may be in reset: --wake finds out; or "
        other, more = wake + other, wake + more
    if not kinds:
        raise Incomplete(f"no trace component was found: {other}")
    if "encoder" not in kinds:
        raise Incomplete(f"no trace encoder was found, so nothing can be traced: {more}")
    if not kinds & set(SINKS):
        raise Incomplete(f"no sink was found, so trace has nowhere to go: {more}")


def harts(parts: Sequence[SurveyedComponent], names: Sequence[str], ask: Ask) -> None:
    """Set the hart of each encoder. *names*: OpenOCD's, () if they are not known. Raises what *ask* raises."""
    encoders = [part for part in parts if part.kind == "encoder" and "hart" not in part.settings]
    if not encoders:
        return
    if len(encoders) == len(names) == 1:
        encoders[0].set("hart", 0, f"OpenOCD has only {names[0]}")
        return
    listed = ", ".join(f"{part.name} ({part.base:#x})" for part in encoders)
    few = bool(names) and len(names) < len(encoders)
    have = f"; OpenOCD has {', '.join(f'{n} {name}' for n, name in enumerate(names))}" if names else ""
    question = Question(
        f"Harts that {listed} trace, in OpenOCD's order{have}",
        HARTS,
        lambda text: _hart_numbers(text, len(encoders), len(names)),
        None if few else ",".join(map(str, range(len(encoders)))),
        ASSUMED,
    )
    numbers, source = ask.ask(question)
    for part, number in zip(encoders, numbers, strict=True):
        part.set("hart", number, source)


def _hart_numbers(text: str, count: int, hart_count: int) -> list[int]:
    words = [word.strip() for word in text.split(",")]
    if not all(word.isdecimal() and len(word) < 6 for word in words) or len(words) != count:
        raise Unfit(f'"{text}": {count} number{"s, separated by commas" * (count > 1)}, please: one for each encoder')
    numbers = [int(word) for word in words]
    if len(set(numbers)) < count:
        raise Unfit(f'"{text}": a hart has one encoder, and a number is there twice')
    if hart_count and max(numbers) >= hart_count:
        raise Unfit(f'"{text}": OpenOCD has {hart_count} harts, from 0 to {hart_count - 1}')
    return numbers


def connect(parts: Sequence[SurveyedComponent], ask: Ask) -> None:
    """Set what each component feeds that feeds others. Raises what *ask* raises."""
    on_bus = any(part.kind in arm_trace_bus.BUS for part in parts)
    for part in parts:
        feeds = part.kind in SOURCES or arm_trace_bus.passes_on(part) or (on_bus and part.kind == "atb_bridge")
        if feeds and "to" not in part.settings:
            names, source = _receivers(part, parts, ask)
            part.set("to", names, source)
    for part in parts:
        feeders = [other.name for other in parts if part.name in _fed(other)]
        if part.kind in FUNNELS and feeders and "inputs" not in part.settings:
            part.set("inputs", {name: number for number, name in enumerate(feeders)}, ASSUMED)
    arm_trace_bus.number_bridges(parts)


def _fed(part: SurveyedComponent) -> Sequence[str]:
    value = part.settings["to"].value if "to" in part.settings else ()
    return value if isinstance(value, Sequence) else ()


def _receivers(part: SurveyedComponent, parts: Sequence[SurveyedComponent], ask: Ask) -> tuple[Sequence[str], str]:
    bus = [other for other in parts if other.kind in arm_trace_bus.BUS and other is not part]
    behind = part.kind in ("atb_bridge", *arm_trace_bus.BUS)
    funnels = [other for other in parts if other.kind == "funnel" and other is not part]
    sinks = [other for other in parts if other.kind in SINKS and other not in bus]
    if behind:
        funnels, sinks = ([] if part.kind in arm_trace_bus.BUS else funnels), bus
    default, because = arm_trace_bus.likely(part, bus) if behind else _likely(part, parts, funnels, sinks)
    possible = [other.name for other in (*funnels, *sinks)]
    if len(possible) == 1:
        return tuple(possible), because
    listed = ", ".join(f"{other.name} ({other.base:#x})" for other in (*funnels, *sinks))
    text = f"What {part.name} ({part.base:#x}) feeds, of {listed}"
    parse = _among(possible)
    obvious = bool(default) and (behind or (part.kind == "encoder" and (len(funnels) == 1 or bool(bus))))
    return ask.ask(Question(text, TO, parse, ",".join(default) or None, because, part.name, obvious=obvious))


def _likely(
    part: SurveyedComponent,
    parts: Sequence[SurveyedComponent],
    funnels: Sequence[SurveyedComponent],
    sinks: Sequence[SurveyedComponent],
) -> tuple[list[str], str]:
    """Return what a component probably feeds, and why; nothing where that would be a guess."""
    encoders, bridges = ([other for other in parts if other.kind == kind] for kind in ("encoder", "atb_bridge"))
    if part in encoders and len(encoders) == len(bridges) > 1:
        own = bridges[encoders.index(part)]
        return [own.name], "assumed: there is a bridge for each encoder, in the order of the addresses"
    if part.kind == "encoder" and len(funnels) == 1:
        return [funnels[0].name], "assumed: there is one funnel, and nothing else to feed it"
    if funnels:
        return [], ""
    if len(sinks) == 1:
        return [sinks[0].name], "the only sink that was found"
    return [sink.name for sink in sinks], "assumed: all sinks that were found"


def _among(possible: Sequence[str]) -> Callable[[str], tuple[str, ...]]:
    def parse(text: str) -> tuple[str, ...]:
        names = tuple(dict.fromkeys(name.strip() for name in text.split(",")))
        for name in names:
            if name not in possible:
                raise Unfit(f'"{name}" is not there, or cannot be fed: {", ".join(possible)}')
        return names

    return parse


def buffers(parts: Iterable[SurveyedComponent], ask: Ask, readable: Readable, taken: Iterable[range]) -> None:
    """Set mode and buffer of each RAM sink. *taken*: addresses of the program. Raises what *ask* raises."""
    taken = list(taken)
    for part in parts:
        if part.kind == "ram_sink" or (part.kind == "coresight_tmc" and "mode" not in part.settings):
            _set_buffer(part, ask, readable, taken)


def _set_buffer(part: SurveyedComponent, ask: Ask, readable: Readable, taken: Sequence[range]) -> None:
    if part.storage == ("SRAM",):
        part.set("mode", "SRAM", "found: trRamImpl says that it has only memory of its own")
        return
    own = "SRAM" in part.storage or not part.storage
    in_use = f"{part.buffer[0]:#x}:{part.buffer[1]:#x}" if part.buffer else None
    text = f"Memory for the buffer of {part.name} ({part.base:#x}), START:SIZE, which nothing else may use"
    if own:
        text += "; or SRAM: the sink's own"
    default, because = _default(part, own, in_use)
    question = Question(text, BUFFER, lambda text: _buffer(text, part, readable, taken), default, because, part.name)
    place, source = ask.ask(question)
    part.set("mode", "SMEM" if place else "SRAM", source)
    if place:
        part.set("start", place[0], source)
        part.set("size", place[1], source)


def _default(part: SurveyedComponent, own: bool, in_use: str | None) -> tuple[str | None, str]:
    if in_use is not None:
        return in_use, "found: where the sink has its buffer now"
    if not own:
        return None, ""
    return "SRAM", "default: trRamImpl says that it has memory of its own" if part.storage else "default: not known"


def _buffer(text: str, part: SurveyedComponent, readable: Readable, taken: Sequence[range]) -> tuple[int, int] | None:
    if text.upper() == "SRAM":
        if part.storage == ("SMEM",):
            raise Unfit(f"{part.name} has no memory of its own: give START:SIZE")
        return None
    start, size = _buffer_range(text)
    for used in taken:
        if start < used.stop and used.start < start + size:
            raise Unfit(f"{text}: the program is at {used.start:#x} to {used.stop - 1:#x}: name memory that is free")
    try:
        readable(start, size)
    except RvtraceError as error:
        raise Unfit(f"{text}: cannot be read on the target: {error}") from None
    return start, size


def _buffer_range(text: str) -> tuple[int, int]:
    words = text.split(":")
    try:
        start, size = (int(word, 0) for word in words)
    except ValueError:
        raise Unfit(f'"{text}" is not START:SIZE, as in 0x80000000:0x10000') from None
    if start < 0 or size <= 0 or start % 4 or size % 4 or start + size > 1 << 64:
        raise Unfit(f'"{text}": start and size are multiples of 4, and size is not 0')
    return start, size

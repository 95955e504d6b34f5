"""The findings of the tandem verifier, as text and as JSON, one object per line (docs/tandem-verifier.md,
docs/json.md).
"""

from collections.abc import Iterator
from typing import Any

from rvtrace_gdb.console.commands.tandem.show import OpenedTandem
from rvtrace_gdb.decode.history.positions import history_number_if_known
from rvtrace_gdb.decode.program import csrs
from rvtrace_gdb.decode.program.csrs import ProgramContext, trap_text
from rvtrace_gdb.decode.program.source.source_lines import SourceLines
from rvtrace_gdb.session.verify.masks import ABSENT, ALL, COPIED
from rvtrace_gdb.session.verify.model import PC, Difference, DifferenceKind, Divergence, ModelTrap, VerifyCounts
from rvtrace_gdb.session.verify.verifier import Verifier
from rvtrace_gdb.support.text import json_line, printable
from rvtrace_gdb.views.disassembly import Disassemblers
from rvtrace_gdb.views.json_rows import JsonFields, place
from rvtrace_gdb.views.tandem.csr_fields import MODES
from rvtrace_gdb.views.tandem.group_rows import GroupWords, name_of, value_of
from rvtrace_gdb.views.tandem.groups import Groups, GroupTexts

_BARE = (DifferenceKind.ORDER, DifferenceKind.TRAP)


class FindingObjects:
    """The findings as JSON. Numbers of groups and of the history begin at 1, as everywhere."""

    def __init__(self, opened_tandem: OpenedTandem, source: Disassemblers) -> None:
        self._hart, self._groups = opened_tandem.hart, Groups(opened_tandem.tandem)
        self._parameters = opened_tandem.tandem.trace.parameters
        self._texts = GroupTexts(source, opened_tandem.decoded.program, self._parameters.xlen)
        self._lines = SourceLines(opened_tandem.decoded.image)

    def beginning(self, configuration: list[str], verifier: Verifier, model: str) -> list[str]:
        """What hart the model is, and what is not compared."""
        told = (text.partition(":") for text in configuration)
        fields: JsonFields = {"model": model, "configuration": {name.strip(): value.strip() for name, _, value in told}}
        fields |= {"masked": list(verifier.masked) or None, "absent": sorted(verifier.missing) or None}
        return [json_line(fields)]

    def divergence(self, divergence: Divergence) -> list[str]:
        """One divergence."""
        row = self._groups.row(divergence.group)
        row = row if divergence.pc is None else row._replace(pc=divergence.pc)
        self._texts.learn([row])
        position = history_number_if_known(divergence.position)
        fields: JsonFields = {"divergence": divergence.number, "group": divergence.group + 1, "hart": self._hart}
        fields |= {"trace-byte": divergence.offset, "position": position}
        if divergence.pc is not None:
            fields |= place(divergence.pc, self._texts.symbol(divergence.pc, row.context), self._parameters.xlen)
            fields["source"] = self._lines.line_at(divergence.pc) or None
        if divergence.instr is not None:
            fields["opcodes"] = f"{divergence.instr.word:0{2 * divergence.instr.length}x}"
            fields["inst"] = self._texts.text_of(row).instruction
        fields |= {"trap": _trap_fields(divergence.trap), "model-trap": _trap_fields(divergence.model_trap)}
        fields["differences"] = [self._difference(one) for one in divergence.differences]
        if divergence.registers:
            fields["registers"] = {
                _register_name(regno): self._value_fields(regno, trace=trace, model=model)
                for regno, trace, model in divergence.registers
            }
        return [json_line(fields)]

    def _difference(self, one: Difference) -> JsonFields:
        fields: JsonFields = {"kind": one.kind.name.lower(), "text": one.note or None}
        if one.kind in _BARE:
            return _present_fields(fields)
        if one.kind in (DifferenceKind.PC, DifferenceKind.INSTRUCTION) or one.size:
            digits = (
                self._parameters.xlen // 4
                if one.kind in (DifferenceKind.PC, DifferenceKind.ADDRESS)
                else 2 * (one.size or 4)
            )
            if one.size and one.kind is not DifferenceKind.ADDRESS:
                fields |= place(one.place, self._texts.symbol(one.place, ProgramContext()), self._parameters.xlen)
                fields["symbol"] = fields.pop("func")
            fields |= {"size": one.size or None, "trace": _hex(one.trace, digits), "model": _hex(one.model, digits)}
            return _present_fields(fields)
        fields["register"] = _register_name(one.place)
        return _present_fields(fields | self._value_fields(one.place, before=one.was, trace=one.trace, model=one.model))

    def _value_fields(self, regno: int, **values: int | None) -> JsonFields:
        """Return values by their names: the privilege mode as a number, registers as text."""
        known = {name: value for name, value in values.items() if value is not None}
        if regno == csrs.PRIVILEGE:
            return known
        if regno == PC:
            return {name: _hex(value, self._parameters.xlen // 4) for name, value in known.items()}
        return {name: value_of(regno, value, self._parameters) for name, value in known.items()}

    def summary(self, verifier: Verifier, stopped: str, shown: int) -> list[str]:
        """What was compared, and with what result."""
        counts = verifier.counts
        fields: JsonFields = {"groups": counts.groups, "instructions": counts.instructions, "traps": counts.traps}
        fields |= {"interrupts": counts.interrupts, "resets": counts.resets, "loose": counts.loose}
        fields |= {"initializations": counts.initializations, "executed": counts.executed}
        fields["compared"] = {"registers": counts.registers, "csrs": counts.csrs, "stores": counts.stores}
        fields |= {"full-comparisons": counts.full, "copied": dict(counts.copied), "masked": counts.masked}
        fields |= {"untold": counts.unreported, "uncomparable": counts.uncomparable, "losses": counts.losses}
        fields["unknown"] = counts.unknown or None
        fields["holes"] = counts.holes
        fields |= {"lost-bytes": counts.lost_bytes, "divergences": counts.divergences}
        fields["differences"] = {kind.name.lower(): count for kind, count in counts.by_kind.items()}
        fields["refused"] = {name_of(regno): hex(bits) for regno, bits in verifier.refused.items()} or None
        fields["stopped"] = stopped or None
        return [json_line(fields)]


def _hex(value: int | None, digits: int) -> str | None:
    return None if value is None else f"0x{value:0{digits}x}"


def _present_fields(fields: dict[str, Any]) -> JsonFields:
    return {name: value for name, value in fields.items() if value is not None}


def _register_name(regno: int) -> str:
    return "pc" if regno == PC else "priv" if regno == csrs.PRIVILEGE else name_of(regno)


def _trap_fields(trap: ModelTrap | None) -> JsonFields | None:
    if trap is None:
        return None
    if trap.cause < 0:  # the trace does not have it
        return {}
    return {"text": trap_text(trap.cause, trap.interrupt), "interrupt": trap.interrupt, "cause": trap.cause}


_TITLES = {DifferenceKind.PC: "next pc", DifferenceKind.ADDRESS: "address", DifferenceKind.INSTRUCTION: "instruction"}


class Sentences:
    """The findings as text. *last*: the number of groups shown before the first divergence."""

    def __init__(self, opened_tandem: OpenedTandem, source: Disassemblers, last: int) -> None:
        self._tandem, self._last = opened_tandem.tandem, last
        self._groups = Groups(opened_tandem.tandem)
        self._parameters = opened_tandem.tandem.trace.parameters
        self._texts = GroupTexts(source, opened_tandem.decoded.program, self._parameters.xlen)
        self._words = GroupWords(self._groups, self._texts)
        self._lines = SourceLines(opened_tandem.decoded.image)
        self._width = self._parameters.xlen // 4

    def beginning(self, configuration: list[str], verifier: Verifier, model: str) -> list[str]:
        """What hart the model is, and what is not compared."""
        lines = [line if at == 0 else f"    {line}" for at, line in enumerate(configuration)]
        lines.append(f"trace: {self._parameters}, {_counted(len(self._tandem.trace), 'group')}")
        lines.append(f"copied from the trace, not compared: {', '.join(COPIED)}")
        masked = ", ".join(verifier.masked)
        if masked:
            lines.append(f"not compared: {masked}")
        absent = ", ".join(ABSENT[name] for name in sorted(verifier.missing))
        if absent:
            lines.append(f"the trace never reports {absent}: not compared")
        return [*_aligned(lines), ""]

    def divergence(self, divergence: Divergence) -> list[str]:
        """Return the lines of a divergence; the first one also has the groups before it."""
        row = self._groups.row(divergence.group)
        if divergence.pc is not None:
            row = row._replace(pc=divergence.pc)
        self._texts.learn([row])
        head = self._words.lines(row)
        place = f"divergence {divergence.number}: group {divergence.group + 1}, trace byte {divergence.offset:#x}"
        number = history_number_if_known(divergence.position)
        lines = [place + ("" if number is None else f", number {number} of the history")]
        if divergence.number == 1 and self._last:
            lines += self._before(divergence.group)
        lines += [f"  {line}" for line in head]
        source = "" if divergence.pc is None else self._lines.line_at(divergence.pc)
        if source:
            lines.append(f"  source: {source}")
        lines += [f"  {line}" for line in self._differences(divergence)]
        lines += [f"  {line}" for line in self._register_sentences(divergence)]
        return [*lines, ""]

    def _before(self, group: int) -> Iterator[str]:
        """Return the lines of the groups before one."""
        rows = list(self._groups.rows(range(max(group - self._last, 0), group)))
        self._texts.learn(rows)
        for row in rows:
            yield from (f"  {line}" for line in self._words.lines(row))

    def _differences(self, divergence: Divergence) -> Iterator[str]:
        for one in divergence.differences:
            yield f"! {self._difference(one, divergence)}"

    def _difference(self, one: Difference, divergence: Divergence) -> str:
        if one.kind is DifferenceKind.ORDER:
            return one.note
        if one.kind is DifferenceKind.TRAP:
            return f"trap: trace {_model_trap_text(divergence.trap)}, model {_model_trap_text(divergence.model_trap)}"
        if one.kind in _TITLES:
            return f"{_TITLES[one.kind]}: trace {self._address_text(one.trace)}, model {self._address_text(one.model)}"
        if one.kind is DifferenceKind.STORE or (one.kind is DifferenceKind.LATER and one.size):
            return self._stored(one)
        return self._register_sentence(one)

    def _stored(self, one: Difference) -> str:
        later = " (when everything was compared)" if one.kind is DifferenceKind.LATER else ""
        values = ["nothing told" if one.trace is None else f"0x{one.trace:0{2 * one.size}x}"]
        values.append("nothing stored" if one.model is None else f"0x{one.model:0{2 * one.size}x}")
        what = f"memory, {one.size} byte{'s' if one.size > 1 else ''} at {self._address_text(one.place)}"
        return f"{what}: trace {values[0]}, model {values[1]}{later}"

    def _register_sentence(self, one: Difference) -> str:
        name = "privilege mode" if one.place == csrs.PRIVILEGE else name_of(one.place)
        trace = (
            "tells no change"
            if one.trace is None and one.kind is not DifferenceKind.LATER
            else self._value_text(one, one.trace)
        )
        model = one.note or self._value_text(one, one.model)
        more = [] if one.bits in (0, ALL) or one.place == csrs.PRIVILEGE else [f"bits 0x{one.bits & _MASK:x}"]
        if one.was is not None:
            more.append(f"before {self._value_text(one, one.was)}")
        if one.kind is DifferenceKind.LATER:
            more.append("when everything was compared")
        return f"{name}: trace {trace}, model {model}" + (f" ({', '.join(more)})" if more else "")

    def _value_text(self, one: Difference, value: int | None) -> str:
        if value is not None and one.place == csrs.PRIVILEGE:
            return MODES.get(value, str(value))
        return "none" if value is None else value_of(one.place, value, self._parameters)

    def _register_sentences(self, divergence: Divergence) -> Iterator[str]:
        """Return all registers of both states."""
        if not divergence.registers:
            return
        yield "registers after it: trace, model"
        for regno, trace, model in divergence.registers:
            name = "pc" if regno == PC else "priv" if regno == csrs.PRIVILEGE else name_of(regno)
            values = ["-" if value is None else f"0x{value:0{self._width}x}" for value in (trace, model)]
            differs = " !" if trace is not None and trace != model else ""
            yield f"  {name:<10} {values[0]:<18} {values[1]}{differs}"

    def _address_text(self, address: int | None) -> str:
        if address is None:
            return "none"
        symbol = self._texts.symbol(address, ProgramContext())
        return f"0x{address:0{self._width}x}" + ("" if symbol is None else f" <{printable(symbol[0])}+{symbol[1]}>")

    def summary(self, verifier: Verifier, stopped: str, shown: int) -> list[str]:
        """What was compared, and with what result."""
        counts = verifier.counts
        lines = [f"verified: {_verified(counts)}" + (f" ({stopped})" if stopped else "")]
        lines.append(
            f"compared: {_counted(counts.registers, 'register')}, {_counted(counts.csrs, 'CSR')},"
            f" {_counted(counts.stores, 'store')}; everything {_counted(counts.full, 'time')}"
        )
        copied = [f"{what} {count}" for what, count in counts.copied.most_common()]
        lines += [f"copied: {', '.join(copied)}"] if copied else []
        others = [
            (counts.masked, "differences in masked bits"),
            (counts.unreported, "changes of what the trace never reports"),
            (counts.unknown, "registers whose new value is not known"),
            (counts.uncomparable, "groups that depend on unknown values"),
        ]
        lines += [f"not compared: {', '.join(f'{text} {count}' for count, text in others if count)}"] * any(
            count for count, _ in others
        )
        if counts.losses:
            lines.append(
                f"lost: {_counted(counts.lost_bytes, 'byte')} in {_counted(counts.losses, 'stretch', 'stretches')}"
            )
        kinds = ", ".join(f"{kind.value} {count}" for kind, count in counts.by_kind.most_common())
        whole = "no divergence in what could be read" if counts.holes else "no divergence"
        none = whole if counts.executed or counts.copied else "nothing could be compared"
        result = f"{_counted(counts.divergences, 'divergence')}: {kinds}" if counts.divergences else none
        hidden = counts.divergences - shown
        return _aligned([*lines, f"result: {result}" + (f"; {hidden} of them not shown" if hidden > 0 else "")])


_MASK = (1 << 64) - 1


def _verified(counts: VerifyCounts) -> str:
    kinds = [
        (counts.instructions, "instruction"), (counts.traps, "trap"), (counts.interrupts, "interrupt"),
        (counts.resets, "reset"), (counts.initializations, "state initialization"),
        (counts.loose, "change outside of groups"),
    ]  # fmt: skip
    plural = {"change outside of groups": "changes outside of groups"}
    parts = [_counted(count, what, plural.get(what)) for count, what in kinds if count]
    return (
        f"{_counted(counts.groups, 'group')}: " + ", ".join(parts)
        if parts
        else _counted(counts.groups, "group")
    )


def _counted(count: int, what: str, several: str | None = None) -> str:
    return f"{count} {what if count == 1 else several or what + 's'}"


def _model_trap_text(trap: ModelTrap | None) -> str:
    return "none" if trap is None else "cause not known" if trap.cause < 0 else trap_text(trap.cause, trap.interrupt)


def _aligned(lines: list[str]) -> list[str]:
    """Align the values of lines `name: value` in a column, where the names are short."""
    width = len("verified: ")
    rows = [(line, *line.partition(": ")) for line in lines]
    return [
        line if len(name) > width - 2 or name[:1] == " " else f"{name + ':':<{width}}{value}"
        for line, name, _, value in rows
    ]

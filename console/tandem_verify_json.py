"""What the tandem verifier found, as JSON objects, a line each (docs/tandem-verifier.md, docs/json.md)."""

from typing import Any

from rvtrace_gdb.console.tandem_show import Found
from rvtrace_gdb.decode.causes import trap_text
from rvtrace_gdb.decode.history import Context
from rvtrace_gdb.decode.source_lines import SourceLines
from rvtrace_gdb.decode.tandem import csrs
from rvtrace_gdb.session.tandem.findings import Difference, Divergence, Kind
from rvtrace_gdb.session.tandem.model import PC, Trap
from rvtrace_gdb.session.tandem.verifier import Verifier
from rvtrace_gdb.views.disassembly import Disassemblers
from rvtrace_gdb.views.json_rows import Fields, line, place
from rvtrace_gdb.views.tandem import name_of, value_of
from rvtrace_gdb.views.tandem_groups import Groups
from rvtrace_gdb.views.tandem_texts import Texts

_BARE = (Kind.ORDER, Kind.TRAP)


class Objects:
    """Numbers of groups and of the history count from 1, as everywhere."""

    def __init__(self, found: Found, source: Disassemblers) -> None:
        self._hart, self._groups = found.hart, Groups(found.tandem)
        self._parameters = found.tandem.trace.parameters
        self._texts = Texts(source, found.decoded.program, self._parameters.xlen)
        self._lines = SourceLines(found.decoded.image.elves)

    def beginning(self, configuration: list[str], verifier: Verifier, model: str) -> list[str]:
        """What hart the model is, and what is not compared."""
        told = (text.partition(":") for text in configuration)
        fields: Fields = {"model": model, "configuration": {name.strip(): value.strip() for name, _, value in told}}
        fields |= {"masked": list(verifier.masked) or None, "absent": sorted(verifier.missing) or None}
        return [line(fields)]

    def divergence(self, found: Divergence) -> list[str]:
        """One divergence."""
        row = self._groups.row(found.group)
        row = row if found.pc is None else row._replace(pc=found.pc)
        self._texts.learn([row])
        position = None if found.position is None else found.position + 1
        fields: Fields = {"divergence": found.number, "group": found.group + 1, "hart": self._hart}
        fields |= {"trace-byte": found.offset, "position": position}
        if found.pc is not None:
            fields |= place(found.pc, self._texts.symbol(found.pc, row.context), self._parameters.xlen)
            fields["source"] = self._lines.at(found.pc) or None
        if found.instr is not None:
            fields["opcodes"] = f"{found.instr.word:0{2 * found.instr.length}x}"
            fields["inst"] = self._texts.of(row).instruction
        fields |= {"trap": _trap(found.trap), "model-trap": _trap(found.model_trap)}
        fields["differences"] = [self._difference(one) for one in found.differences]
        if found.registers:
            fields["registers"] = {
                _name(regno): self._values(regno, trace=trace, model=model) for regno, trace, model in found.registers
            }
        return [line(fields)]

    def _difference(self, one: Difference) -> Fields:
        fields: Fields = {"kind": one.kind.name.lower(), "text": one.note or None}
        if one.kind in _BARE:
            return _known(fields)
        if one.kind in (Kind.PC, Kind.INSTRUCTION) or one.size:
            digits = self._parameters.xlen // 4 if one.kind in (Kind.PC, Kind.ADDRESS) else 2 * (one.size or 4)
            if one.size and one.kind is not Kind.ADDRESS:
                fields |= place(one.place, self._texts.symbol(one.place, Context()), self._parameters.xlen)
                fields["symbol"] = fields.pop("func")
            fields |= {"size": one.size or None, "trace": _hex(one.trace, digits), "model": _hex(one.model, digits)}
            return _known(fields)
        fields["register"] = _name(one.place)
        return _known(fields | self._values(one.place, before=one.was, trace=one.trace, model=one.model))

    def _values(self, regno: int, **values: int | None) -> Fields:
        """The privilege mode as a number, registers as text."""
        known = {name: value for name, value in values.items() if value is not None}
        if regno == csrs.PRIVILEGE:
            return known
        if regno == PC:
            return {name: _hex(value, self._parameters.xlen // 4) for name, value in known.items()}
        return {name: value_of(regno, value, self._parameters) for name, value in known.items()}

    def summary(self, verifier: Verifier, stopped: str, shown: int) -> list[str]:
        """What was compared, and with what result."""
        counts = verifier.counts
        fields: Fields = {"groups": counts.groups, "instructions": counts.instructions, "traps": counts.traps}
        fields |= {"interrupts": counts.interrupts, "resets": counts.resets, "loose": counts.loose}
        fields |= {"initializations": counts.initializations, "executed": counts.executed}
        fields["compared"] = {"registers": counts.registers, "csrs": counts.csrs, "stores": counts.stores}
        fields |= {"full-comparisons": counts.full, "copied": dict(counts.copied), "masked": counts.masked}
        fields |= {"untold": counts.untold, "uncomparable": counts.uncomparable, "losses": counts.losses}
        fields["holes"] = counts.holes
        fields |= {"lost-bytes": counts.lost_bytes, "divergences": counts.divergences}
        fields["differences"] = {kind.name.lower(): count for kind, count in counts.by_kind.items()}
        fields["refused"] = {name_of(regno): hex(bits) for regno, bits in verifier.refused.items()} or None
        fields["stopped"] = stopped or None
        return [line(fields)]


def _hex(value: int | None, digits: int) -> str | None:
    return None if value is None else f"0x{value:0{digits}x}"


def _known(fields: dict[str, Any]) -> Fields:
    return {name: value for name, value in fields.items() if value is not None}


def _name(regno: int) -> str:
    return "pc" if regno == PC else "priv" if regno == csrs.PRIVILEGE else name_of(regno)


def _trap(trap: Trap | None) -> Fields | None:
    if trap is None:
        return None
    if trap.cause < 0:  # what the trace does not tell
        return {}
    return {"text": trap_text(trap.cause, trap.interrupt), "interrupt": trap.interrupt, "cause": trap.cause}

"""Whether a trace was made with the parameters that were said, and what to give if not."""

from collections.abc import Iterator

from rvtrace_gdb.decode.tandem import guess
from rvtrace_gdb.decode.tandem.parameters import Parameters
from rvtrace_gdb.session.captured import CapturedTandem
from rvtrace_gdb.support import lines


def warning(captured: CapturedTandem, *, by_elf: bool) -> list[str]:
    """A line when it was not, or none. *by_elf*: see `advice`."""
    told, name = captured.in_force.parameters, captured.in_force.name
    text = advice(captured.data, told, wrapped=captured.wrapped, by_elf=by_elf)
    return [lines.warning(f"{name}: {text}")] if text else []


def advice(data: bytes, told: Parameters, *, wrapped: bool = False, by_elf: bool = False) -> str:
    """What is wrong with the parameters, and the options that say others; "" if nothing is.

    *by_elf*: XLEN is that of the program, whatever the options say.
    """
    text = guess.advice(data, told, wrapped=wrapped)
    other = guess.looks_like(data, told, wrapped=wrapped) if text else None
    if other is None:
        return text
    options = " ".join(_options(told, other, by_elf))
    return f"{text}: raw bytes want {options}; a capture is made anew, `rvtrace import --tandem ... {options}`"


def _options(told: Parameters, other: Parameters, by_elf: bool) -> Iterator[str]:
    if other.xlen != told.xlen:
        yield f"--elf of an RV{other.xlen} program" if by_elf else f"--xlen {other.xlen}"
    if other.flen != told.flen:
        yield f"--flen {other.flen}"
    if other.mlen_bits != other.xlen or (other.mlen_bits != told.mlen_bits and other.xlen == told.xlen):
        yield f"--mlen {other.mlen_bits}"
    if other.dialect != told.dialect:
        yield f"--dialect {other.dialect.name}"
    if told.eaddr:
        yield "without --eaddr"

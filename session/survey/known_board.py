"""A board that rvtrace knows: which shipped target it is, and that target's description as the one of this board."""

from collections.abc import Iterator, Sequence

from rvtrace_gdb.controlregs.neorv32.procedures import TracerAccess
from rvtrace_gdb.session.description.library import shipped
from rvtrace_gdb.session.description.library.proposal import ChipIdentity, TargetProposal, proposed
from rvtrace_gdb.session.description.library.shipped import ShippedTarget
from rvtrace_gdb.session.description.model import Description
from rvtrace_gdb.session.description.tables import quoted
from rvtrace_gdb.session.survey.openocd_config import ConfiguredServer
from rvtrace_gdb.session.survey.questions import Answered, Ask, Question, Unfit
from rvtrace_gdb.session.target.link import Link
from rvtrace_gdb.support.errors import RvtraceError

NONE = "none"
OPTION = "--known NAME"


def choose(ask: Ask, chip: ChipIdentity) -> Answered[ShippedTarget | None]:
    """Return the shipped target that the user takes for the board, None to look for components instead.

    Only what has addresses of its own can be taken; a template, or a chip that traces by its firmware, is told.
    """
    found = proposed(chip)
    usable = [proposal for proposal in found if _is_usable(proposal.target)]
    for proposal in found:
        more = "" if proposal in usable else f": `rvtrace targets show {proposal.target.name}`"
        ask.tell(f"the chip: {proposal.text}{more}")
    sure = [proposal for proposal in usable if proposal.surely]
    default = sure[0].target.name if sure else NONE
    text = f"Shipped target whose description is taken, {_choices(usable)}or {NONE} to look for components"
    because = f"the chip has {sure[0].because}" if sure else "default"
    question = Question(text, OPTION, _usable_target, default, because, obvious=not usable, optional=True)
    return ask.ask(question)


def _is_usable(target: ShippedTarget) -> bool:
    description = target.description()
    return not target.template and bool(description.encoders or description.tracers)


def _choices(usable: Sequence[TargetProposal]) -> str:
    return "".join(f"{proposal.target.name}, " for proposal in usable)


def _usable_target(text: str) -> ShippedTarget | None:
    if text == NONE:
        return None
    if text not in shipped.target_names():
        raise Unfit(f'there is no shipped target "{text}"; there is {", ".join(shipped.target_names())}')
    target = shipped.shipped(text)
    if not _is_usable(target):
        raise Unfit(f"{text} has no addresses of its own: `rvtrace targets show {text}` says what to do")
    return target


def tracer_lines(link: Link, description: Description) -> Iterator[str]:
    """Yield a line for each TRACER: whether it is built in, which a NEORV32 need not have."""
    for tracer in description.tracers:
        access = TracerAccess(link, tracer.base, tracer.name)
        where = f"{tracer.name} at {tracer.base:#x}"
        try:
            found = access.status()
        except RvtraceError as error:
            yield f"{where}: it does not answer ({error}): is the processor built with IO_TRACER_EN?"
        else:
            is_one = found.plausible
            yield f"{where}: TRACER, {found.depth} entries" if is_one else f"{where}: not a TRACER: {found.ctrl:#x}"


def description_text(target: ShippedTarget, because: str, server: ConfiguredServer, heads: Sequence[str]) -> str:
    """Return the text of a shipped description for a board that OpenOCD reaches at *server*.

    *because*: why this target; *heads*: more lines for its head.
    """
    proved = "; ".join(target.proved)
    head = [
        f"Target description, written by rvtrace init: the shipped target {target.name} ({because}).",
        f"Proved: {proved}. `rvtrace targets show {target.name}` has the source of each fact.",
        *heads,
    ]
    lines = [
        *(f"# {line}" for line in head), "", "[openocd]", f"host = {quoted(server.host)}  # {server.host_source}",
        f"tcl_port = {server.port}  # {server.port_source}", "", target.text().rstrip("\n"),
    ]  # fmt: skip
    return "\n".join(lines) + "\n"

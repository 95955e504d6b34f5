"""CoreSight components behind the bridges of a board: found at addresses that the user allows, and how they are
probably connected.

Each encoder has a bridge of its own, or one bridge is behind the funnel; then CoreSight funnels lead to an ETF, which
passes trace on to an ETR, or stores it itself. Whatever is not so the user is asked, or corrects in the file.
"""

from collections.abc import Iterator, Sequence

from rvtrace_gdb.controlregs.coresight import discovery
from rvtrace_gdb.controlregs.coresight.discovery import FoundCoresight
from rvtrace_gdb.controlregs.coresight.registers import TmcType
from rvtrace_gdb.session.survey import probing
from rvtrace_gdb.session.survey.parts import CHOSEN, SurveyedComponent
from rvtrace_gdb.session.survey.probing import ProbeLost
from rvtrace_gdb.session.survey.questions import Ask, Question
from rvtrace_gdb.session.target.link import Link
from rvtrace_gdb.support.errors import RvtraceError

NONE, OPTION = "none", "--coresight ADDRESS-ADDRESS"
_PREFIXES = {"coresight_funnel": "csfunnel", "coresight_replicator": "replicator"}
_NAMES = {"coresight_funnel": "CoreSight funnel", "coresight_replicator": "CoreSight replicator"}
_RISK = (
    "Only what you name is read, the identification registers at the end of each 4 KiB: take the addresses from the"
    " chip's manual."
)
BUS = ("coresight_funnel", "coresight_replicator", "coresight_tmc")


def find(link: Link, ask: Ask, components: Sequence[SurveyedComponent]) -> list[SurveyedComponent]:
    """Ask where to look for CoreSight components, if there are bridges, and return those that are there."""
    bridges = [part for part in components if part.kind == "atb_bridge"]

    def parse(answer: str) -> list[FoundCoresight]:
        return [] if answer == NONE else list(_coresight_at(link, probing.blocks(answer)))

    text = f"Addresses to look for CoreSight components at, which Arm's trace bus leads to (or {NONE})"
    obvious = not bridges
    question = Question(text, OPTION, parse, NONE, "default", "", _RISK, obvious=obvious, optional=True)
    seen = ask.ask(question).value
    for each in seen:
        ask.tell(f"{each.base:#x}: {_component_text(each)}")
    return list(_surveyed_parts([each for each in seen if each.kind]))


def _coresight_at(link: Link, bases: Sequence[int]) -> Iterator[FoundCoresight]:
    for base in bases:
        try:
            seen = discovery.coresight_at(link, base)
        except RvtraceError as error:
            raise ProbeLost(base, error) from error
        if seen is not None:
            yield seen


def _component_text(seen: FoundCoresight) -> str:
    if not seen.kind:
        return f"a CoreSight component that rvtrace does not know: DEVTYPE reads {seen.devtype:#x}; left out"
    return f"CoreSight TMC, an {seen.built_as.name}" if seen.built_as is not None else _NAMES[seen.kind]


def _surveyed_parts(seen: Sequence[FoundCoresight]) -> Iterator[SurveyedComponent]:
    used: dict[str, int] = {}
    keeps = any(each.built_as in (TmcType.ETR, TmcType.ETB) for each in seen)
    for each in sorted(seen, key=lambda found: found.base):
        prefix = _PREFIXES.get(each.kind) or (each.built_as or TmcType.ETB).name.lower()
        number = used[prefix] = used.get(prefix, -1) + 1
        part = SurveyedComponent(f"{prefix}{number}", each.kind, each.base)
        part.set("name", part.name, CHOSEN)
        part.set("type", part.kind, f"found: DEVTYPE reads {each.devtype:#x}")
        part.set("base", part.base, "found: it answered at this address")
        if each.built_as is TmcType.ETR:
            part.storage = ("SMEM",)
        elif each.built_as is TmcType.ETF and keeps:
            part.set("mode", "FIFO", "assumed: there is another TMC, which stores what this one passes on")
        elif each.built_as is not None:
            part.set("mode", "SRAM", f"found: DEVID says that it is an {each.built_as.name}")
        yield part


def passes_on(part: SurveyedComponent) -> bool:
    """Return whether trace goes through a component of the bus."""
    return part.kind in BUS and (part.kind != "coresight_tmc" or _is_fifo(part))


def _is_fifo(part: SurveyedComponent) -> bool:
    return "mode" in part.settings and part.settings["mode"].value == "FIFO"


def likely(part: SurveyedComponent, possible: Sequence[SurveyedComponent]) -> tuple[list[str], str]:
    """Return what a bridge, or what trace goes through behind it, probably feeds: the next thing on the way to the
    sink. Nothing where that would be a guess.
    """
    ways = (
        [it for it in possible if it.kind == "coresight_funnel" and part.kind == "atb_bridge"],
        [it for it in possible if _is_fifo(it) and not _is_fifo(part)],
        [it for it in possible if it.kind == "coresight_tmc" and not _is_fifo(it)],
    )
    for way in ways:
        if len(way) == 1:
            return [way[0].name], "assumed: the only one that can be next on Arm's trace bus"
        if way:
            return [], ""
    return [], ""


def number_bridges(parts: Sequence[SurveyedComponent]) -> None:
    """Give each bridge that feeds something an ID on the bus, unless it has one."""
    bridges = [part for part in parts if part.kind == "atb_bridge" and "to" in part.settings]
    for number, part in enumerate(bridges, 1):
        if "id" not in part.settings:
            part.set("id", number, CHOSEN)

"""Faults put into the traces of real cores: one thing in one group is changed, and the bytes are made anew."""

from collections.abc import Callable, Iterator
from functools import lru_cache

from rvtrace_gdb.decode.tandem.decoder import DecodedTandem, decode
from rvtrace_gdb.decode.tandem.encoder import encode
from rvtrace_gdb.decode.tandem.protocol import AdditionalState, Element, FullRegister, Group, Instr, StateId
from rvtrace_gdb.session.verify.masks import masks_of
from rvtrace_gdb.session.verify.model import Divergence
from rvtrace_gdb.session.verify.verifier import Verifier, VerifyOptions
from tests.decode.tandem.corpus import decoded, parameters_of, program_of
from tests.session.verify.logged_model import Replay

DATA = (StateId.STORE_DATA_8, StateId.STORE_DATA_16, StateId.STORE_DATA_32, StateId.STORE_DATA_64)
Change = Callable[[Element], Element | None]
"""An element with the fault in it; None: it is not one that can have it."""


@lru_cache(maxsize=4)
def groups_of(name: str) -> tuple[Group, ...]:
    return tuple(decoded(name).trace.groups())


def entry_of(name: str) -> int:
    """The first group of the program: what is before belongs to a boot ROM that no log has."""
    index, entry = decoded(name).index, program_of(name).entry
    return next(group for group, retired in enumerate(index.retired) if retired and index.origin(group) == entry)


def with_groups(name: str, groups: tuple[Group, ...]) -> DecodedTandem:
    """A trace of these groups."""
    parameters = parameters_of(name)
    return decode(encode(groups, parameters), program_of(name), parameters)


def divergences(name: str, tandem: DecodedTandem, stop: int, masks: tuple[str, ...] = ()) -> Iterator[Divergence]:
    """Held against Spike's log, up to some group."""
    return Verifier(tandem, Replay(name), VerifyOptions(masks_of(masks), stop=stop), program_of(name)).run()


def first(name: str, groups: tuple[Group, ...], at: int, masks: tuple[str, ...] = ()) -> Divergence | None:
    """The first divergence of a trace of these groups, looked for until a few groups behind *at*: what comes after
    them is left out.
    """
    return next(divergences(name, with_groups(name, groups[: at + 20]), at + 4, masks), None)


def changed(group: Group, change: Change) -> Group | None:
    """A group with a fault in the first element that can have it; None: none can."""
    for at, element in enumerate(group.elements):
        found = change(element)
        if found is not None:
            return group._replace(elements=(*group.elements[:at], found, *group.elements[at + 1 :]))
    return None


def flip(numbers: range | frozenset[int], bit: int) -> Change:
    """A register with one of these numbers has another bit."""
    return lambda e: (
        e._replace(value=e.value ^ 1 << bit) if isinstance(e, FullRegister) and e.regno in numbers else None
    )


def flip_state(identifiers: tuple[StateId, ...], bits: int) -> Change:
    """An additional state has other bits."""

    def change(element: Element) -> Element | None:
        is_it = isinstance(element, AdditionalState) and element.identifier in identifiers
        return element._replace(value=element.value ^ bits) if is_it else None  # type: ignore[call-arg, union-attr]

    return change


def without(group: Group, identifiers: tuple[StateId, ...] = (), numbers: range = range(0)) -> Group | None:
    """A group that does not tell something; None: it did not."""
    kept = tuple(
        element
        for element in group.elements
        if not (isinstance(element, AdditionalState) and element.identifier in identifiers)
        and not (isinstance(element, FullRegister) and element.regno in numbers)
    )
    return group._replace(elements=kept) if len(kept) < len(group.elements) else None


def other_instruction(element: Element) -> Element | None:
    """Bits 10 and 11, which belong to rd or to an immediate, are others."""
    return element._replace(word=element.word ^ 0xC00) if isinstance(element, Instr) and element.length == 4 else None

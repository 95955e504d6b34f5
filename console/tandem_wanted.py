"""Which groups of a tandem trace are asked for: those that write a register, touch memory, or run in a function."""

import argparse
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from rvtrace_gdb.console import addresses
from rvtrace_gdb.decode import elf_symbols
from rvtrace_gdb.decode.access_wording import touches
from rvtrace_gdb.decode.image import Image
from rvtrace_gdb.decode.tandem.decoder import Tandem
from rvtrace_gdb.decode.tandem.register_names import number_of
from rvtrace_gdb.support.errors import RvtraceError
from rvtrace_gdb.support.progress import Progress
from rvtrace_gdb.views.tandem_groups import Groups

_EVERY = 1 << 12  # groups between two signs of life


class WantedError(RvtraceError):
    """There is no such register, place or function."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options that choose groups. Of several kinds, groups are shown that fit all; of one, that fit one."""
    parser.add_argument(
        "--register", action="append", default=[], metavar="NAME",
        help="only groups that write it: a0, x10, fa0, mstatus, priv, a CSR's number; may be given more than once",
    )  # fmt: skip
    parser.add_argument(
        "--address", metavar="PLACE",
        help="only groups that load or store there: ADDRESS (one byte), ADDRESS,SIZE or a symbol of the program",
    )  # fmt: skip
    parser.add_argument("--function", metavar="NAME", help="only groups whose instruction is in this function")
    parser.add_argument("--traps", action="store_true", help="only traps, resets and what is missing")


@dataclass(frozen=True)
class Wanted:
    """What is asked for; None: anything."""

    registers: frozenset[int] = frozenset()
    place: tuple[int, int] | None = None
    function: str | None = None
    traps: bool = False
    text: str = ""
    image: Image | None = None

    @staticmethod
    def named(args: argparse.Namespace) -> bool:
        """Whether anything was asked for."""
        return bool(args.register or args.address is not None or args.function is not None or args.traps)

    @classmethod
    def of(cls, args: argparse.Namespace, tandem: Tandem, image: Image) -> "Wanted":
        """What the command line says. Raises WantedError."""
        registers = frozenset(_register(name) for name in args.register)
        place = None if args.address is None else place_of(args.address, image)
        if args.function is not None and not any(symbol == args.function for symbol in _symbols(image)):
            why = f"{image.path} has no such function" if image.path else "no program is given (--elf)"
            raise WantedError(f"--function {args.function}: {why}")
        said = [f"writes {' or '.join(args.register)}"] if args.register else []
        said += [f"loads or stores at {args.address}"] if place else []
        said += [f"is in {args.function}"] if args.function is not None else []
        said += ["is a trap or a reset"] if args.traps else []
        return cls(registers, place, args.function, args.traps, " and ".join(said), image)

    def __bool__(self) -> bool:
        return bool(self.registers or self.place or self.function is not None or self.traps)

    def __str__(self) -> str:
        return self.text or "is there"

    def groups(self, selected: range, groups: Groups, progress: Progress) -> Iterator[int]:
        """Those of *selected*, counted from 0, that are wanted."""
        candidates = self._candidates(selected, groups)
        for count, group in enumerate(candidates):
            if count % _EVERY == 0:
                progress("looking (groups)", group, len(groups))
            if self._fits(group, groups):
                yield group

    def _candidates(self, selected: range, groups: Groups) -> Iterable[int]:
        """As few as can be known without looking at them."""
        found: set[int] | None = None
        if self.registers:
            columns = groups.index.registers.columns
            found = {group for regno in self.registers if regno in columns for group in columns[regno].groups}
        if self.traps:
            marked = {trap.group for trap in groups.index.traps} | {*groups.index.resets, *groups.breaks}
            found = marked if found is None else found & marked
        return selected if found is None else sorted(group for group in found if group in selected)

    def _fits(self, group: int, groups: Groups) -> bool:
        if self.function is not None:
            origin = groups.origin(group)
            symbol = None if origin is None or self.image is None else self.image.symbol(origin)
            if symbol is None or symbol[0] != self.function:
                return False
        return self.place is None or _touches(groups, group, *self.place)


def _touches(groups: Groups, group: int, begin: int, size: int) -> bool:
    access = groups.access(group)
    if access is not None and touches(access, begin, size):
        return True
    stores = (store for _, store in groups.tandem.stored(group))
    return any(store.address < begin + size and begin < store.address + store.size for store in stores)


def _register(name: str) -> int:
    number = number_of(name)
    if number is None:
        raise WantedError(f"--register {name}: there is no such register; a CSR may be named by its number")
    return number


def place_of(text: str, image: Image) -> tuple[int, int]:
    """(first byte, how many). Raises WantedError."""
    address, comma, size = text.partition(",")
    try:
        place = addresses.address(address), int(size, 0) if comma else 1
        if place[1] > 0:
            return place
    except addresses.Unclear as error:
        raise WantedError(f"--address {error}") from None
    except ValueError:
        found = elf_symbols.symbols(image.path).get(text) if image.path else None
        if found is not None:
            return found.address, max(found.size, 1)
    where = f"a symbol of {image.path}" if image.path else "a symbol (no program is given: --elf)"
    raise WantedError(f"--address {text}: neither ADDRESS, nor ADDRESS,SIZE, nor {where}")


def _symbols(image: Image) -> Iterator[str]:
    return (symbol.name for elf, _ in image.elves for section in elf.sections for symbol in section.symbols)

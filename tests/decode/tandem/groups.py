"""Traces put together by hand."""

from collections.abc import Sequence

from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.tandem.decoder import DecodedTandem, decode
from rvtrace_gdb.decode.tandem.encoder import encode
from rvtrace_gdb.decode.tandem.protocol import (
    FPR,
    GPR,
    AdditionalState,
    Element,
    Ending,
    FullRegister,
    Group,
    HartReset,
    Instr,
    StateId,
    StateInitialization,
    TandemParameters,
)

RV64 = TandemParameters(64, 64)
RV32 = TandemParameters(32, 64)

NOP, C_NOP = Instr(0x0000_0013, 4), Instr(0x0001, 2)
MRET, SRET, ECALL = Instr(0x3020_0073, 4), Instr(0x1020_0073, 4), Instr(0x0000_0073, 4)
RESET, INIT = HartReset(), StateInitialization()


def pc(value: int) -> AdditionalState:
    return AdditionalState(StateId.PC, value)


def priv(mode: int) -> AdditionalState:
    return AdditionalState(StateId.PRIVILEGE_MODE, mode)


def x(number: int, value: int) -> FullRegister:
    return FullRegister(GPR + number, value)


def f(number: int, value: int) -> FullRegister:
    return FullRegister(FPR + number, value)


def csr(number: int, value: int) -> FullRegister:
    return FullRegister(number, value)


def store(address: int, size: int, value: int, *, physical: bool = False) -> tuple[AdditionalState, AdditionalState]:
    data = {1: StateId.STORE_DATA_8, 2: StateId.STORE_DATA_16, 4: StateId.STORE_DATA_32, 8: StateId.STORE_DATA_64}[size]
    place = StateId.PHYSICAL_ADDRESS if physical else StateId.EFFECTIVE_ADDRESS
    return AdditionalState(data, value), AdditionalState(place, address)


def sw(rs2: int = 5, rs1: int = 6) -> Instr:
    return Instr(0x0000_2023 | rs2 << 20 | rs1 << 15, 4)


def group(*elements: Element | Sequence[Element], ending: Ending = Ending.EXPLICIT) -> Group:
    flat: list[Element] = []
    for element in elements:
        flat += element if type(element) is tuple and element and isinstance(element[0], tuple) else [element]  # type: ignore[list-item]
    return Group(tuple(flat), ending)


def loose(element: Element) -> Group:
    return Group((element,), Ending.LOOSE)


class Line:
    """Groups one behind the other, each instruction four bytes further."""

    def __init__(self, start: int = 0x8000_0000) -> None:
        self.pc = start
        self.groups: list[Group] = []

    def __call__(self, *elements: Element | Sequence[Element], instr: Instr = NOP, to: int | None = None) -> int:
        """One more instruction; the number of its group."""
        self.pc = self.pc + instr.length if to is None else to
        self.groups.append(group(pc(self.pc), instr, *elements))
        return len(self.groups) - 1

    def add(self, *elements: Element | Sequence[Element]) -> int:
        """One more group as it is."""
        self.groups.append(group(*elements))
        return len(self.groups) - 1

    def decoded(self, parameters: TandemParameters = RV64) -> DecodedTandem:
        return tandem(self.groups, parameters)


def tandem(groups: Sequence[Group], parameters: TandemParameters = RV64) -> DecodedTandem:
    return decode(encode(groups, parameters), Image(parameters.xlen), parameters)

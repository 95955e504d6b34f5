"""The worked examples of E-Trace 2.0, chapter "Example code and packets", each as packets and as an execution.

Each trace starts at the instruction the example's address difference counts from, and ends where the example does.
"""

from tests.decode.etrace.worked_examples import ENDED_NTR, ENDED_REP, Example, address, branches, code, start, support

# Addresses and opcodes as listed there; where it has dots, c.nop.
EXAMPLE = Example(
    code(
        64,
        """
        800010b6 0001
        800010da 4781
        800010dc 00a05863
        800010ec 60e2
        800010ee 6442
        800010f0 64a2
        800010f2 853e
        800010f4 6105
        800010f6 8082
        800010f8 1579
        800010fa 00153513
        800010fe 8082
        80001100 1101
        80001102 e822
        80001104 e426
        80001106 ec06
        80001108 842a
        8000110a 84ae
        8000110c fedff0ef
        80001110 c115
        80001112 c080
        80001114 4785
        80001116 02f40463
        8000111a c81d
        8000111c 4709
        8000111e 04e40063
        8000115e 60e2
        80001160 6442
        80001162 c09c
        80001164 64a2
        80001166 6105
        80001168 8082
        80001178 7139
        80001188 6121
        8000118a 8082
        8000121c 441c
        8000121e c795
        8000124a 44c8
        8000124c 4799
        8000124e 00c40593
        80001252 c81c
        80001254 eadff0ef
        80001258 00093783
        80001a80 f6d42423
        80001a84 ef4ff0ef
        80001a88 00000597
        80001a8c 65058593
        80001b8a f4442603
        """,
        plain=[(0x8000117A, 0x80001188), (0x8000125C, 0x80001260)],
    )
)
BEGIN = support(EXAMPLE.modes)
END = support(EXAMPLE.modes, ENDED_REP, enabled=False)
END_AT_TARGET = support(EXAMPLE.modes, ENDED_NTR, enabled=False)
DEBUG_PRINTF = [0x80001178, *range(0x8000117A, 0x8000118A, 2), 0x8000118A]
PROC_6 = [0x80001112, 0x80001114, 0x80001116, 0x8000111A, 0x8000111C, 0x8000111E, *range(0x8000115E, 0x8000116A, 2)]


def test_call_to_debug_printf() -> None:
    """The target of the jal is inferable: no packet; only the end of the trace reports it."""
    pcs = [0x80001A80, 0x80001A84, 0x80001178]
    packets = [BEGIN, start(0x80001A80), address(0x80001178 - 0x80001A80), END]
    EXAMPLE.decodes(packets, pcs)
    EXAMPLE.encodes(pcs, packets)


def test_return_from_debug_printf() -> None:
    """format=2, address=0x80001a88, updiscon=0; the difference is to the start of this trace."""
    pcs = [*DEBUG_PRINTF, 0x80001A88, 0x80001A8C]
    packets = [BEGIN, start(0x80001178), address(0x80001A88 - 0x80001178), address(4), END]
    EXAMPLE.decodes(packets, pcs)
    EXAMPLE.encodes(pcs, packets)


def test_exiting_from_func_2_with_a_final_taken_branch_followed_by_a_ret() -> None:
    """format=1, branches=1, branch_map=0, address=0x80001b8a (difference 0xab0), updiscon=0."""
    pcs = [0x800010DA, 0x800010DC, *range(0x800010EC, 0x800010F8, 2), 0x80001B8A]
    packets = [BEGIN, start(0x800010DA), branches(0, to=0xAB0), END_AT_TARGET]
    EXAMPLE.decodes(packets, pcs)
    EXAMPLE.encodes(pcs, packets)


def test_3_branches_then_a_function_return_back_to_proc_1() -> None:
    """format=1, branches=3, branch_map=3, address=0x80001258 (difference 0x148), updiscon=0."""
    pcs = [0x80001110, *PROC_6, 0x80001258]
    packets = [BEGIN, start(0x80001110), branches(1, 1, 0, to=0x148), END_AT_TARGET]
    EXAMPLE.decodes(packets, pcs)
    EXAMPLE.encodes(pcs, packets)


COMPLEX = [
    *(0x8000121C, 0x8000121E, 0x8000124A, 0x8000124C, 0x8000124E, 0x80001252, 0x80001254),
    *(*range(0x80001100, 0x8000110E, 2), 0x800010F8, 0x800010FA, 0x800010FE, 0x80001110),
]


def test_a_complex_example_with_2_branches_2_jal_and_a_ret() -> None:
    """format=1, branches=2, branch_map=2, address=0x80001110 (difference 0xfffffffffffffef4), updiscon=1: so a
    format 3 packet is for the next instruction.
    """
    packets = [BEGIN, start(0x8000121C), branches(0, 1, to=0xFFFFFFFFFFFFFEF4, updiscon=1), start(0x80001112)]
    EXAMPLE.decodes([*packets, address(2), END], [*COMPLEX, 0x80001112, 0x80001114])


def test_a_complex_example_that_goes_on() -> None:
    """The same code without the synchronization, into the example before it: updiscon is 0 then."""
    pcs = [*COMPLEX, *PROC_6, 0x80001258]
    packets = [BEGIN, start(0x8000121C), branches(0, 1, to=-0x10C), branches(1, 1, 0, to=0x148), END_AT_TARGET]
    EXAMPLE.decodes(packets, pcs)
    EXAMPLE.encodes(pcs, packets)

"""Division by zero, and its overflow: the table of The RISC-V Instruction Set Manual, Volume I, 13.2."""

import pytest

from tests.transport.simulated.hart.encoded_code import SPIN, hart_with
from tests.transport.simulated.hart.random_code import register_operation

DIV, DIVU, REM, REMU = 4, 5, 6, 7
WORD = 0x3B
_NUMBER = 0x8000_1234
LEAST = 1 << 70  # stands for the least number of the operation's width

# (operation, dividend, divisor, result), signed, of operands of `bits`
TABLE = [
    *((name, _NUMBER, 0, result) for name, result in ((DIV, -1), (DIVU, -1), (REM, _NUMBER), (REMU, _NUMBER))),
    (DIV, LEAST, -1, LEAST),
    (REM, LEAST, -1, 0),
]


@pytest.mark.parametrize("stepped", [False, True])
@pytest.mark.parametrize(("xlen", "opcode", "bits"), [(32, 0x33, 32), (64, 0x33, 64), (64, WORD, 32)])
def test_division(xlen: int, opcode: int, bits: int, stepped: bool) -> None:
    for operation, dividend, divisor, result in TABLE:
        hart = hart_with(register_operation(1, operation, 5, 6, 7, opcode), SPIN, xlen=xlen)
        least, mask = -1 << bits - 1, (1 << xlen) - 1
        hart.x[6], hart.x[7] = (least if value == LEAST else value for value in (dividend, divisor))
        hart.x[6], hart.x[7] = hart.x[6] & (1 << bits) - 1, hart.x[7] & (1 << bits) - 1
        if stepped:
            hart.step()
        else:
            hart.run(1)
        expected = least if result == LEAST else result
        extended = (expected & (1 << bits) - 1 ^ 1 << bits - 1) - (1 << bits - 1)  # a word's result is sign-extended
        assert hart.x[5] == extended & mask, (operation, dividend, divisor)

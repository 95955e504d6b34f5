"""Positions and numbers of instructions.

A history counts what ran from 0: positions. People, gdb, rows and JSON count from 1: numbers. Where one becomes the
other, one of these says so. The loops that make rows count by themselves.
"""


def history_number(position: int) -> int:
    """Return the number of the instruction at a position."""
    return position + 1


def history_number_if_known(position: int | None) -> int | None:
    """Return the number of the instruction at a position, None if the position is not known."""
    return None if position is None else position + 1


def history_position(number: int) -> int:
    """Return the position of the instruction with a number."""
    return number - 1

"""A dictionary of what a function returns."""

from rvtrace_gdb.decode.computed import Computed


def test_each_value_is_computed_once() -> None:
    calls: list[int] = []

    def square(n: int) -> int:
        calls.append(n)
        return n * n

    squares = Computed(square)
    assert [squares[3], squares[4], squares[3]] == [9, 16, 9]
    assert calls == [3, 4]


def test_at_the_limit_all_are_dropped() -> None:
    squares = Computed[int, int](lambda n: n * n, 3)
    assert [squares[n] for n in range(5)] == [0, 1, 4, 9, 16]
    assert dict(squares) == {3: 9, 4: 16}


def test_without_a_limit_none_is() -> None:
    squares = Computed[int, int](lambda n: n * n, 0)
    assert sum(squares[n] for n in range(100_000)) == sum(n * n for n in range(100_000))
    assert len(squares) == 100_000

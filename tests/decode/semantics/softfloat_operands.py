"""Seeded operands for `test_softfloat`: what random bits alone would hardly ever hit.

Significands with few or with long runs of bits make halfway cases; exponents are drawn so that results land near the
least and the greatest finite number, cancel, or lose bits. Nothing here knows what a result should be.
"""

from random import Random

from rvtrace_gdb.decode.semantics.softfloat import F32, F64, FloatFormat

Triple = tuple[int, int, int]
"""operands a, b, c of one operation; the ones it does not have are 0"""

_CONVERSION_BOUNDS = [1 << k for k in (0, 1, 8, 23, 24, 25, 30, 31, 32, 33, 52, 53, 54, 62, 63, 64)]


def special(fmt: FloatFormat) -> list[int]:
    """Of both signs: zero, the ends of the subnormals and normals, one, infinity, a quiet and a signaling NaN."""
    one = fmt.infinity >> 1 & fmt.infinity
    positive = [0, 1, fmt.hidden_bit - 1, fmt.hidden_bit, one, fmt.max_finite, fmt.infinity]
    positive += [fmt.infinity | fmt.quiet_bit | 5, fmt.infinity | 1]
    return positive + [fmt.sign_bit | a for a in positive]


class Operands:
    """Operands in one format for each kind of operation; the same seed gives the same operands."""

    def __init__(self, fmt: FloatFormat, seed: int) -> None:
        self.fmt = fmt
        self.bias = fmt.exponent_mask >> 1
        self.random = Random(seed)

    def mantissa(self) -> int:
        """A mantissa field: uniform, few bits, or a run of ones from the top, perhaps slightly disturbed."""
        rng, width = self.random, self.fmt.mantissa_bits
        kind = rng.randrange(4)
        if kind == 0:
            return rng.getrandbits(width)
        if kind == 1:
            return sum({1 << rng.randrange(width) for _ in range(rng.randrange(4))})
        run = self.fmt.mantissa_mask & ~((1 << rng.randrange(width + 1)) - 1)
        return run if kind == 2 else run ^ 1 << rng.randrange(width)

    def number(self, exponent: int | None = None) -> int:
        """A finite number of either sign, with this exponent field (moved into range) or any."""
        top = self.fmt.exponent_mask - 1
        field = self.random.randint(0, top) if exponent is None else min(max(exponent, 0), top)
        sign = self.fmt.sign_bit if self.random.getrandbits(1) else 0
        return sign | field << self.fmt.mantissa_bits | self.mantissa()

    def exponent(self, a: int) -> int:
        return a >> self.fmt.mantissa_bits & self.fmt.exponent_mask

    def target(self) -> int:
        """An exponent field a product or quotient should about have: at either end of the range, or anywhere."""
        precision, top = self.fmt.precision, self.fmt.exponent_mask
        return self.random.choice(
            [self.random.randint(-precision - 2, 2), self.random.randint(top - 3, top + 2), self.random.randrange(top)]
        )

    def neighbour(self, a: int) -> int:
        """A number a few units in the last place from `a`, of the opposite sign."""
        magnitude = (a & ~self.fmt.sign_bit) + self.random.randint(-3, 3)
        return (a ^ self.fmt.sign_bit) & self.fmt.sign_bit | min(max(magnitude, 0), self.fmt.max_finite)

    def sums(self, count: int) -> list[Triple]:
        """Pairs to add, subtract or compare: within reach of each other, nearly equal, or any."""
        pairs: list[Triple] = [(a, b, 0) for a in special(self.fmt) for b in special(self.fmt)]
        reach = self.fmt.precision + 3
        for _ in range(count):
            a = self.number()
            near = self.number(self.exponent(a) + self.random.randint(-reach, reach))
            b = self.random.choice([near, near, self.neighbour(a), a, self.number()])
            pairs.append((a, b, 0))
        return pairs

    def factors(self, target: int) -> tuple[int, int]:
        """Two numbers with a product of about this exponent; sometimes just below a power of two."""
        fmt = self.fmt
        low, high = max(1, target + self.bias - fmt.exponent_mask + 2), min(fmt.exponent_mask - 2, target + self.bias)
        a = self.number(self.random.randint(low, high) if low <= high else None)
        b = self.number(target + self.bias - self.exponent(a))
        if self.random.randrange(5) == 0:
            significand = a & fmt.mantissa_mask | fmt.hidden_bit | 1
            reciprocal = (1 << 2 * fmt.precision - 1) // significand
            a |= 1
            b = b & ~fmt.mantissa_mask | reciprocal & fmt.mantissa_mask
        return a, b

    def products(self, count: int) -> list[Triple]:
        """Pairs to multiply."""
        pairs: list[Triple] = [(a, b, 0) for a in special(self.fmt) for b in special(self.fmt)]
        # a product just below the least normal number, where tininess before and after rounding differ
        pairs += [(*self.factors(0), 0) for _ in range(count // 5)]
        return pairs + [(*self.factors(self.target()), 0) for _ in range(count)]

    def quotients(self, count: int) -> list[Triple]:
        """Pairs to divide."""
        pairs: list[Triple] = [(a, b, 0) for a in special(self.fmt) for b in special(self.fmt)]
        for _ in range(count):
            a = self.number()
            pairs.append((a, self.number(self.exponent(a) + self.bias - self.target()), 0))
        return pairs

    def multiply_adds(self, count: int) -> list[Triple]:
        """Triples for a * b + c: c within reach of the product, cancelling it, or at the least normal number."""
        fmt = self.fmt
        triples = [(a, b, c) for a in special(fmt) for b in special(fmt) for c in special(fmt)]
        reach = fmt.precision + 4
        for _ in range(count):
            target = self.target()
            a, b = self.factors(target)
            c = self.random.choice(
                [
                    self.number(target + self.random.randint(-reach, reach)),
                    self.number(target + self.random.randint(-2 * reach, 2 * reach)),
                    self.neighbour(self.truncated_product(a, b)),
                    self.neighbour(fmt.hidden_bit | self.random.getrandbits(1) * fmt.sign_bit),
                ]
            )
            triples.append((a, b, c))
        return triples

    def truncated_product(self, a: int, b: int) -> int:
        """About a * b: its sign and leading bits, when its exponent is in range."""
        fmt = self.fmt
        product = (a & fmt.mantissa_mask | fmt.hidden_bit) * (b & fmt.mantissa_mask | fmt.hidden_bit)
        drop = product.bit_length() - fmt.precision
        exponent = self.exponent(a) + self.exponent(b) - self.bias + drop - fmt.mantissa_bits
        field = min(max(exponent, 0), fmt.exponent_mask - 1) << fmt.mantissa_bits
        return (a ^ b) & fmt.sign_bit | field | product >> drop & fmt.mantissa_mask

    def singles(self, count: int) -> list[Triple]:
        """Operands of a classification or a widening conversion."""
        numbers = [self.number(self.random.choice([None, None, 0, 1])) for _ in range(count)]
        return [(a, 0, 0) for a in special(self.fmt) + numbers]

    def squares(self, count: int) -> list[Triple]:
        """Operands of a square root, among them all whose root exceeds a representable number by next to nothing."""
        return self.singles(count) + [(a, 0, 0) for less in range(7, 2000, 8) for a in self.just_above_squares(less)]

    def just_above_squares(self, less: int) -> list[int]:
        """Numbers x**2 + less, in units far below their last place, of representable x; `less` is 7 modulo 8.

        Only such operands tell an inexact root from an exact one by its remainder alone. x**2 = -less modulo a power of
        two has four solutions, found bit by bit.
        """
        precision, numbers = self.fmt.precision, []
        for dropped in (precision - 1, precision):
            root = 1
            for bit in range(3, dropped):
                root += ((root * root + less) >> bit & 1) << bit - 1
            for x in {(sign * root + half) % (1 << dropped) for sign in (1, -1) for half in (0, 1 << dropped - 1)}:
                square = (x | 1 << precision - 1) ** 2 + less
                # x in the upper half only, and the square must fit the precision
                if square & (1 << dropped) - 1 or square.bit_length() != dropped + precision:
                    continue
                # An even exponent overall: the unit of the last place is 2**(dropped + an even number).
                exponent = 2 * self.random.randrange(1, self.bias - 1)
                exponent += (exponent + self.fmt.lsb_exponent - 1 - dropped) & 1
                significand = square >> dropped & self.fmt.mantissa_mask
                numbers.append(exponent << self.fmt.mantissa_bits | significand)
        return numbers

    def near_integers(self, count: int) -> list[Triple]:
        """Numbers to convert to integers: around the limits of the integer types, halves, fractions."""
        fmt = self.fmt
        numbers = special(fmt)
        for _ in range(count):
            exponent = self.bias + self.random.randint(-3, 66)
            at_limit = self.number(exponent) & ~fmt.mantissa_mask
            numbers += [self.number(exponent), at_limit, self.neighbour(at_limit)]
        return [(a, 0, 0) for a in numbers]

    def narrowed(self, count: int) -> list[Triple]:
        """binary64 numbers to convert to binary32: around the ends of its range, halfway cases, any."""
        numbers = special(F64)
        for _ in range(count):
            low = self.bias + self.random.randint(-151, -124)
            high = self.bias + self.random.randint(125, 129)
            numbers += [self.number(low), self.number(high), self.number(self.bias + self.random.randint(-200, 200))]
        # the last bits kept and dropped when a result is just below the least normal binary32
        least_normal = self.bias - (F32.exponent_mask >> 1) + 1 << F64.mantissa_bits
        numbers += [least_normal - (k << 26) - j for k in range(-8, 9) for j in (-1, 0, 1)]
        return [(a, 0, 0) for a in numbers]


def integers(count: int, seed: int) -> list[Triple]:
    """64-bit patterns to convert from integers of 32 or 64 bits."""
    rng = Random(seed)
    values = [sign * (bound + near) for bound in _CONVERSION_BOUNDS for near in (-2, -1, 0, 1, 2) for sign in (1, -1)]
    for _ in range(count):
        length = rng.randint(1, 64)
        sparse = 1 << length - 1 | sum({1 << rng.randrange(length) for _ in range(rng.randrange(4))})
        values += [rng.getrandbits(length), -rng.getrandbits(length), sparse, -sparse, sparse - 1]
    return [(value & (1 << 64) - 1, 0, 0) for value in values]

"""te_data payloads made by hand: fields as (width, value), in the order of the specification's tables."""


def payload(*fields: tuple[int, int]) -> bytes:
    """The bytes of these fields, the first one in the low bits, without the bytes that only repeat the last bit.

    E-Trace 2.0, "Instruction Trace Encoder Output Packets": "sign-based compression".
    """
    bits = "".join(format(value & (1 << width) - 1, f"0{width}b")[::-1] for width, value in fields if width)
    bits += bits[-1] * (-len(bits) % 8)
    while len(bits) > 8 and set(bits[-8:]) == {bits[-9]}:
        bits = bits[:-8]
    return bytes(int(bits[i : i + 8][::-1], 2) for i in range(0, len(bits), 8))

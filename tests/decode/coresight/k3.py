"""The messages in SpacemiT's trace guide (docs-tool, en/user_guide/trace_user_guide.md) as bytes, alone and in frames.

The guide prints fields, widths and byte offsets; the bytes follow from these. SRC has 12 bits and is 5, TSTAMP ends
each message, the program has 64-bit addresses. F-ADDR is printed without its two bits above 63: ones are assumed. The
frames have ATB ID 0x10; OpenCSD's packet lister 1.3.3 takes the same bytes out of them.
"""

MESSAGES = (
    "2414001568f0c45800fcfcfcfcfcfdc0847cb0bc33",
    "0814001d03",
    "08140098683503",
    "ff",
    "1014006005145c0d0f",
    "10140070051c4d03",
    "101400e13c787903",
    "0c14004107",
    "1014007009780503",
    "101400f15460804917",
    "101400500948b03c6503",
    "0c14002503",
    "0c14004907",
    "0c1400180503",
    "101400113c4c386503",
    "0c14000d03",
)

FRAMES = """
21 24 14 00 14 68 f0 c4 58 00 fc fc fc fc fc 04
fc c0 84 7c b0 bc 32 08 14 00 1c 03 08 14 00 29
98 68 34 03 fe 10 14 00 60 05 14 5c 0c 0f 10 46
14 00 70 05 1c 4d 02 10 14 00 e0 3c 78 79 02 a8
0c 14 00 41 06 10 14 00 70 09 78 05 02 10 14 44
00 f1 54 60 80 49 16 10 14 00 50 09 48 b0 3c 08
64 03 0c 14 00 25 02 0c 14 00 48 07 0c 14 00 29
18 05 02 10 14 00 10 3c 4c 38 64 03 0c 14 00 2a
0c 03 01 00 00 00 00 00 00 00 00 00 00 00 00 01
"""

ATB_ID, SRC, SRC_BITS = 0x10, 5, 12

"""The numbers of perf.data: types of records, bits of attributes, features.

Source: Linux, include/uapi/linux/perf_event.h (records below 64, `perf_event_attr`),
tools/lib/perf/include/perf/event.h (records from 64 on), tools/perf/util/header.h (features).
"""

from enum import IntEnum, IntFlag


class RecordType(IntEnum):
    """`perf_event_type`, and perf's own types from 64 on."""

    MMAP = 1
    LOST = 2
    COMM = 3
    EXIT = 4
    FORK = 7
    SAMPLE = 9
    MMAP2 = 10
    AUX = 11
    ITRACE_START = 12
    LOST_SAMPLES = 13
    SWITCH = 14
    SWITCH_CPU_WIDE = 15
    KSYMBOL = 17
    TEXT_POKE = 20
    AUX_OUTPUT_HW_ID = 21
    HEADER_ATTR = 64
    HEADER_BUILD_ID = 67
    FINISHED_ROUND = 68
    ID_INDEX = 69
    AUXTRACE_INFO = 70
    AUXTRACE = 71
    AUXTRACE_ERROR = 72
    TIME_CONV = 79
    HEADER_FEATURE = 80
    COMPRESSED = 81
    COMPRESSED2 = 83


FIRST_OF_PERF = 64
"""Records from this type on are written by perf itself, and have no `sample_id`."""


class SampleType(IntFlag):
    """`perf_event_sample_format`: what a sample has."""

    IP = 1 << 0
    TID = 1 << 1
    TIME = 1 << 2
    ADDR = 1 << 3
    READ = 1 << 4
    CALLCHAIN = 1 << 5
    ID = 1 << 6
    CPU = 1 << 7
    PERIOD = 1 << 8
    STREAM_ID = 1 << 9
    RAW = 1 << 10
    BRANCH_STACK = 1 << 11
    IDENTIFIER = 1 << 16


class ReadFormat(IntFlag):
    """`perf_event_read_format`: what the counts of a sample are."""

    TOTAL_TIME_ENABLED = 1 << 0
    TOTAL_TIME_RUNNING = 1 << 1
    ID = 1 << 2
    GROUP = 1 << 3
    LOST = 1 << 4


class AttrFlag(IntFlag):
    """Bits of `perf_event_attr` after `read_format`."""

    EXCLUDE_USER = 1 << 4
    EXCLUDE_KERNEL = 1 << 5
    MMAP = 1 << 8
    COMM = 1 << 9
    SAMPLE_ID_ALL = 1 << 18
    EXCLUDE_GUEST = 1 << 20
    MMAP2 = 1 << 23


class AuxFlag(IntFlag):
    """Flags of an AUX record. Each of the first four but OVERWRITE says that trace was lost before this piece."""

    TRUNCATED = 0x01
    OVERWRITE = 0x02
    PARTIAL = 0x04
    COLLISION = 0x08
    RAW_FORMAT = 0x100


class MiscBit(IntFlag):
    """Bits of the field `misc` of a record's header; the lowest three are a number, `MODE`."""

    MODE = 7
    COMM_EXEC = 1 << 13
    SWITCH_OUT = 1 << 13
    BUILD_ID_SIZE = 1 << 14


KERNEL_MODE = 1
"""`MiscBit.MODE` of a record about the kernel."""


class HeaderFeature(IntEnum):
    """Bits of the header for the sections behind the data."""

    BUILD_ID = 2
    HOSTNAME = 3
    OSRELEASE = 4
    ARCH = 6
    CMDLINE = 11
    EVENT_DESC = 12
    PMU_MAPPINGS = 16
    AUXTRACE = 18
    COMPRESSED = 27
    CLOCK_DATA = 29


BRANCH_HW_INDEX = 1 << 17
"""Bit of `branch_sample_type`: a branch stack begins with the index of its newest entry in the hardware."""

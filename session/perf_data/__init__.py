"""perf.data, the file of Linux perf: the trace in it, and what ran where while it was made.

Each module is one step of the way from the file to a capture:

layout         numbers of the file format: record types, bits of attributes
file           the header, the attributes of the events, and the features, of files and of pipes
records        the records, decompressed, with who and when of each
auxtrace       which driver made the trace, and the pieces of each buffer with their losses
processes      which files were where in the memory of which process, and when
program_files  those files on this machine, by their build-ids
importing      the capture

Sources: Linux, tools/perf/Documentation/perf.data-file-format.txt, tools/lib/perf/include/perf/event.h,
include/uapi/linux/perf_event.h. All numbers have the byte order of the machine that recorded.
"""

"""perf.data, the file of Linux perf: the trace in it, and what ran where while it was made.

Each module is one step of the way from the file to a capture:

layout         numbers of the file format: record types, bits of attributes
file           the header, the attributes of the events, and the features, of files and of pipes
records        the records, decompressed, with who and when of each
aux_bytes      the bytes of AUX buffers, which are read when they are needed
auxtrace       which driver made the trace, and the pieces of each buffer with their losses
processes      which files were where in the memory of which process, and when
clocks         how timestamps of the trace become times of perf, and these dates
message_times  where in a piece of trace a time is
scheduling     which thread ran on which CPU, and when
kernel_changes what the kernel changed of its own code, and when
branch_samples the branch stacks of samples, as Control Transfer Records
recording      all of that, from one reading of the file
program_files  the files that ran, on this machine, by their build-ids
images         the code of the kernel, and of each process
code_epochs    which code was in memory while a piece of trace was recorded
cpu_traces     the trace of each CPU, with what is known of its pieces
framed_trace   the same, of the series that has frames
importing      the capture

Sources: Linux, tools/perf/Documentation/perf.data-file-format.txt, tools/lib/perf/include/perf/event.h,
include/uapi/linux/perf_event.h. All numbers have the byte order of the machine that recorded.
"""

"""What runs inside gdb, for the benchmarks beside this folder."""

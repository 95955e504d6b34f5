"""What Linux perf and the readers of its output take: perf.data, the text of `perf script`, and the events of both."""

"""A report as one page of HTML that needs nothing else: timeline, flame graph, source, tables."""

"""What ran, whatever the trace format: histories, the events in them, and what can be looked up in a history alone."""

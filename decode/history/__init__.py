"""What ran, whatever the trace format: histories, their events, and queries that need nothing but a history."""

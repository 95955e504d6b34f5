"""What rvtrace costs, measured: each file is a program that prints its figures."""

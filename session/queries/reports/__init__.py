"""Reports of where instructions and time went: of a trace, of its pieces, while it runs, and as a page of HTML."""

"""Coverage as one HTML page with the source: what people look at, in any browser, without a network."""

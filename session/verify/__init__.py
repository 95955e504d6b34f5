"""The tandem verifier: a model runs in step with a tandem trace, and both are compared."""

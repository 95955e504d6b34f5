"""The simulated hart's Control Transfer Records: the recorder and its CSRs, written from the documents."""

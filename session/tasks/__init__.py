"""The systems that switch tasks, real-time systems and Linux (`systems/`), and which task of them ran where."""

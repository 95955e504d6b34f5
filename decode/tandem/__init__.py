"""The tandem trace protocol: every state change of every instruction (Trace Protocol Specification 2018-11-20)."""

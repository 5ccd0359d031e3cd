"""The group coordinator as a state machine: no I/O, no clock, no chance, no logging."""

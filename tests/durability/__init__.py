"""The broker and its clients are killed at random moments under load. Failing disks and clocks, on virtual time, are
under `simulation/shells`.
"""

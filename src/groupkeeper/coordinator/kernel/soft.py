"""State that is not in the log and does not survive a restart."""


class SoftChange:
    """A change of it, applied by `Coordinator.apply` only. Each room has its own."""

    __slots__ = ()

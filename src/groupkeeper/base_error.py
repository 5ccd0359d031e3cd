"""The base of the errors that programs meet. It belongs to no layer; `groupkeeper.errors` has those of calls."""


class GroupkeeperError(Exception):
    """An error of `Admin`, plans, pipelines or the settings of `Broker`. Some are a ``ValueError`` as well."""

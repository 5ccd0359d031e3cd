"""The base of the errors that programs meet. It belongs to no layer; `groupkeeper.errors` has those of calls."""


class GroupkeeperError(Exception):
    """An error of `Admin`, plans, pipelines or the settings of `Broker`. Some are a `ValueError` as well."""


class InvalidSetting(GroupkeeperError, ValueError):
    """A setting that cannot be used; the text has its name and the allowed values."""

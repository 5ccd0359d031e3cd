"""What is wrong with stores and login texts, as the client's errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from groupkeeper.client.errors import IllegalArgument, UnsupportedSecurity
from groupkeeper.security.errors import BadCredentials, UnsupportedCredentials


@contextmanager
def reads_credentials() -> Iterator[None]:
    """Raises IllegalArgument or UnsupportedSecurity for what is wrong with credentials; decorates functions too."""
    try:
        yield
    except UnsupportedCredentials as error:
        raise UnsupportedSecurity(str(error)) from None
    except BadCredentials as error:
        raise IllegalArgument(str(error)) from None

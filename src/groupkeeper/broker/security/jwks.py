"""The public keys of token issuers: a JSON Web Key Set (RFC 7517) in a file, or at an address over HTTP."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections import OrderedDict
from collections.abc import Mapping
from http.client import HTTPException
from logging import getLogger
from pathlib import Path
from typing import Any, NamedTuple
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import HTTPSHandler, Request, build_opener, url2pathname

from groupkeeper.base_error import InvalidSetting

Key = Mapping[str, Any]

_log = getLogger("groupkeeper.broker")

_MAX_BYTES = 1 << 20
_MISSING_PAUSE_S = 60.0
_REMEMBERED_MISSING = 16
_LONGEST_KEY_ID = 1000


class KeysUnavailable(Exception):
    """The keys cannot be read; the text has the reason."""


class Intervals(NamedTuple):
    """When keys are read again, in seconds.

    Attributes:
        refresh: after a success.
        backoff, max_backoff: after the first failure, and at most.
        timeout: of a request to the server.
    """

    refresh: float
    backoff: float
    max_backoff: float
    timeout: float = 10.0


class KeySource:
    """The keys at one URL. A file is read at once, and again when a token names a key that it lacks. Other URLs are
    read when the first token comes, then by `Intervals`.

    Known keys stay in use while the URL cannot be read.
    """

    def __init__(self, url: str, intervals: Intervals, context: ssl.SSLContext | None = None) -> None:
        """`context` is for HTTPS. Raises `InvalidSetting`."""
        parts = urlsplit(url)
        if parts.scheme not in ("file", "http", "https"):
            raise InvalidSetting("expected the URL of a key set: file:///…, http://… or https://…")
        self._url = url
        self._path = url2pathname(parts.path) if parts.scheme == "file" else None
        self._intervals = intervals
        self._opener = build_opener() if context is None else build_opener(HTTPSHandler(context=context))
        self._keys: tuple[Key, ...] = ()
        self._is_known = False
        self._next_read_s = 0.0
        self._backoff_s = intervals.backoff
        self._missing: OrderedDict[str, float] = OrderedDict()
        self._reading: asyncio.Task[None] | None = None
        if self._path is not None:
            try:
                self._keys = self._load()
            except KeysUnavailable as error:
                raise InvalidSetting(str(error)) from None
            self._is_known = True
            self._next_read_s = float("inf")  # a file is read again only for a key that it lacks

    async def keys(self) -> tuple[Key, ...]:
        """The known keys; if none were read yet, they are read first. Empty if the URL cannot be read."""
        if asyncio.get_running_loop().time() >= self._next_read_s:
            reading = self._read_soon()
            if not self._is_known:
                await asyncio.shield(reading)
        return self._keys

    async def keys_again(self, key_id: str) -> tuple[Key, ...]:
        """Reads the keys again because a key is missing: at most once a minute for each missing key."""
        now_s = asyncio.get_running_loop().time()
        if len(key_id) > _LONGEST_KEY_ID or now_s - self._missing.get(key_id, -_MISSING_PAUSE_S) < _MISSING_PAUSE_S:
            return self._keys
        self._missing[key_id] = now_s
        self._missing.move_to_end(key_id)
        if len(self._missing) > _REMEMBERED_MISSING:
            self._missing.popitem(last=False)
        await asyncio.shield(self._read_soon())
        return self._keys

    def _read_soon(self) -> asyncio.Task[None]:
        if self._reading is None or self._reading.done():
            self._reading = asyncio.get_running_loop().create_task(self._read())
        return self._reading

    async def _read(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            keys = await asyncio.to_thread(self._load)
        except KeysUnavailable as error:
            _log.warning("cannot read the keys for tokens%s: %s", " again" if self._is_known else "", error)
            if self._path is None:
                self._next_read_s = loop.time() + self._backoff_s
                self._backoff_s = min(2 * self._backoff_s, self._intervals.max_backoff)
            return
        self._keys, self._is_known = keys, True
        self._backoff_s = self._intervals.backoff
        if self._path is None:
            self._next_read_s = loop.time() + self._intervals.refresh

    def _load(self) -> tuple[Key, ...]:
        try:
            body = self._download() if self._path is None else Path(self._path).read_bytes()
            keys = json.loads(body)["keys"]
        except HTTPError as error:
            with error:
                raise KeysUnavailable(f"{self._url} answers {error.code} {error.reason}") from None
        except (OSError, HTTPException) as error:
            reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or error
            raise KeysUnavailable(f"{self._url}: {reason}") from None
        except (ValueError, KeyError, TypeError, RecursionError):
            keys = None
        if not isinstance(keys, list) or not all(isinstance(key, dict) for key in keys):
            raise KeysUnavailable(f'{self._url} has no key set (JSON with "keys")')
        return tuple(keys)

    def _download(self) -> bytes:
        request = Request(self._url, headers={"Accept": "application/json"})
        with self._opener.open(request, timeout=self._intervals.timeout) as response:
            body: bytes = response.read(_MAX_BYTES + 1)
        if len(body) > _MAX_BYTES:
            raise KeysUnavailable(f"{self._url} has more than {_MAX_BYTES} bytes")
        return body

"""The log of long-running commands: rows of text, or of JSON for log collectors, on standard error."""

from __future__ import annotations

import json
import logging
import sys
import time
from argparse import Namespace, _ActionsContainer

from groupkeeper.operations.times import utc_text
from groupkeeper.rules.words import printable

_JSON = "json"


def add_log_format(command: _ActionsContainer) -> None:
    """Adds the argument for `log_to_stderr`."""
    command.add_argument(
        "--log-format",
        choices=["text", _JSON],
        default="text",
        help="rows of the log on standard error as text, or each as an object of JSON; default: text",
    )


def log_to_stderr(options: Namespace, text_form: str, time_form: str | None = None) -> None:
    """Writes every row of the level INFO and above from now on. `text_form`: the format of text rows, for
    `logging`; `time_form`: the format of times in UTC, None: as `logging` has them.
    """
    handler = logging.StreamHandler(sys.stderr)
    form = _JsonRows() if options.log_format == _JSON else _TextRows(text_form, time_form)
    if time_form is not None:
        form.converter = time.gmtime
    handler.setFormatter(form)
    # A client warns of each refused login; its callers get the same text, and say it once.
    handler.addFilter(lambda row: row.name != "groupkeeper.client")
    logging.basicConfig(handlers=[handler], level=logging.INFO)
    logging.raiseExceptions = False  # without standard error, rows are dropped


class _TextRows(logging.Formatter):
    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802
        # Names come from clients: a line break in one would forge a row, and escapes would reach the terminal.
        record.message = printable(record.message)
        return super().formatMessage(record)


class _JsonRows(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        row = {
            "time": utc_text(int(record.created * 1000)),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            row["traceback"] = self.formatException(record.exc_info)
        return json.dumps(row)

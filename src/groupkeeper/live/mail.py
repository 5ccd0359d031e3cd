"""Sending a message to a mail server."""

from __future__ import annotations

import contextlib
import smtplib
import ssl
from collections.abc import Mapping
from email.errors import MessageError
from email.message import EmailMessage
from urllib.parse import unquote, urlsplit

from groupkeeper.live.outbox import NotSent

TIMEOUT_S = 5.0


def send_mail(url: str, message: EmailMessage) -> NotSent | None:
    """Sends the message by the server of `smtp://[USER:PASSWORD@]HOST[:PORT]`. None: the server took it.

    `smtps` begins with TLS, `smtp` switches to it if the server offers it. A password is sent by TLS only.
    """
    try:
        parts = urlsplit(url)
        host, port, user, password = parts.hostname or "", parts.port, parts.username, parts.password
    except ValueError:
        return NotSent("bad address", "the url of the mail server is no address", is_final=True)
    is_sent = False
    try:
        server = _connected(host, port, is_safe=parts.scheme == "smtps")
        try:
            if user is not None:
                if not isinstance(server.sock, ssl.SSLSocket):
                    return NotSent("no TLS", "the mail server offers no TLS for the password", is_final=True)
                server.login(unquote(user), unquote(password or ""))
            is_sent = True
            refused = server.send_message(message)
        finally:
            with contextlib.suppress(smtplib.SMTPException, OSError):
                server.quit()
    except smtplib.SMTPRecipientsRefused as error:
        return _refused(error.recipients)
    except smtplib.SMTPResponseException as error:
        return _of_status(error.smtp_code)
    except ValueError as error:  # a host, a password or an address that SMTP cannot carry
        return NotSent("bad address", f"it cannot be sent by SMTP: {type(error).__name__}", is_final=True)
    except (smtplib.SMTPException, MessageError, OSError) as error:
        text = error.strerror if isinstance(error, OSError) and error.strerror else type(error).__name__
        return NotSent("not reached", f"not reached: {text}", may_be_taken=is_sent)
    if refused:  # some of the recipients: the others would get it twice
        return _refused(refused)._replace(is_final=True, may_be_taken=True)
    return None


def _connected(host: str, port: int | None, *, is_safe: bool) -> smtplib.SMTP:
    trusted = ssl.create_default_context()
    if is_safe:
        return smtplib.SMTP_SSL(host, port or 465, timeout=TIMEOUT_S, context=trusted)
    server = smtplib.SMTP(host, port or 25, timeout=TIMEOUT_S)
    try:
        server.ehlo()
        if server.has_extn("starttls"):
            server.starttls(context=trusted)
    except BaseException:
        server.close()
        raise
    return server


def _refused(recipients: Mapping[str, tuple[int, bytes]]) -> NotSent:
    return _of_status(max(code for code, _ in recipients.values()))


def _of_status(code: int) -> NotSent:
    text = f"SMTP status {code}"
    return NotSent(text, text, is_final=code >= 500)

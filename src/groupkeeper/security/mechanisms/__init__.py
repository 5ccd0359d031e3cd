"""The SASL mechanisms of the client and of the broker: one module each, with the conversations of both ends.

`mechanism.py` has their interface, and the inputs from each end. Nothing here opens connections or files.
"""

from __future__ import annotations

from groupkeeper.security.mechanisms import oauthbearer, plain, scram
from groupkeeper.security.mechanisms.mechanism import Mechanism

_USER = ("username", "password")

MECHANISMS = {
    each.name: each
    for each in (
        Mechanism("PLAIN", "plain.PlainLoginModule", _USER, plain.client, plain.server),
        *(
            Mechanism(name, "scram.ScramLoginModule", _USER, scram.client, scram.server, ("tokenauth",), family="SCRAM")
            for name in scram.HASH_BY_MECHANISM
        ),
        Mechanism(
            "OAUTHBEARER", "oauthbearer.OAuthBearerLoginModule", (), oauthbearer.client, oauthbearer.server,
            ("clientId", "clientSecret", "scope", "unsecuredLoginStringClaim_sub"), check="the token",
        ),
    )
}  # fmt: skip
"""All mechanisms by name, in the order in which texts list them."""

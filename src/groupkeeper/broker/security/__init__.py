"""Authentication of the peer of a connection: TLS, SASL, credentials, tokens. What they may do is the authorizer's."""

"""Who is at the other end of a connection: TLS, SASL, credentials, tokens. What they may do is the authorizer's."""

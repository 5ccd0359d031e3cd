"""Authentication and authorization of clients: TLS, SASL, credentials, tokens, ACLs, the audit log.

APIs use the interface `groupkeeper.broker.authorizer`; the requests that change ACLs and credentials are in `apis`.
"""

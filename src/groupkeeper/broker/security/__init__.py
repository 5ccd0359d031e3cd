"""Who is at the other end, and what they may do: TLS, SASL, credentials, tokens, ACLs, the audit log.

The interface that APIs ask is `groupkeeper.broker.authorizer`; the requests that change ACLs and credentials are in
`apis`.
"""

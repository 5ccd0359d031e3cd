"""Security code of both ends of a connection: key stores, JAAS texts, TLS settings by Java's names, SASL mechanisms.

No connection is opened here: the client's end is `groupkeeper.client.security`, the broker's
`groupkeeper.broker.security`.
"""

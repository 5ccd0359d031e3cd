"""What both ends of a secured connection read: key stores, JAAS texts, TLS settings by Java's names, and SCRAM's keys.

No connection is opened here: the client's end is `groupkeeper.client.security`, the broker's
`groupkeeper.broker.security`.
"""

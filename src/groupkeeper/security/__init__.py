"""What both ends of a secured connection read: key stores, JAAS texts, TLS settings by Java's names. No network."""

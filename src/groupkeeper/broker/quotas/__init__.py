"""Client quotas: the rates at which clients may send and receive. What is measured for people is `observing`'s."""

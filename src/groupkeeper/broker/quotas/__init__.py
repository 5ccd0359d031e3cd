"""Client quotas: who may send and get how much per second. What is measured for people is `observing`'s."""

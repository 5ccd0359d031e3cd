"""Tokens, ACLs, SCRAM users and quotas on both brokers. How one client library logs in is under `conformance`."""

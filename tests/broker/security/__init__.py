"""Who may connect and who may do what: TLS, SASL, tokens, ACLs, quotas. The client's side of security is under
`unit/client/security`.
"""

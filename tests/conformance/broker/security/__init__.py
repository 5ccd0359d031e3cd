"""Clients of other languages log in to our broker in every way. Which rights they then have is compared under
`differential/security`.
"""

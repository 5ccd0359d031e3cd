"""Random bytes: nothing but a clear refusal may come of them. Random but valid requests are under `property` and
`differential`.
"""

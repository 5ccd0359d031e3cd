"""What programs import as `groupkeeper`: the form that blocks, lag, tables. The calls of the asyncio client are under
`unit/client/admin`.
"""

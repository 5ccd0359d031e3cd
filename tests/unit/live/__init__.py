"""Rules, alerts, history and limits of `groupkeeper serve` on given snapshots. Collectors on a broker are under
`tests/live`.
"""

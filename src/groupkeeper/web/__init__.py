"""Snapshots over HTTP: metrics, pages, and changes from pages.

Clusters are polled in `groupkeeper.live`; a page that is viewed sends them no request. Rules of plans are in
`groupkeeper.operations.plans`.
"""

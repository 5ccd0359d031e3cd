"""Coordinators as pure functions: state, request, result. One module for each protocol or subject, whatever room of
`src` it is in.

Long random histories are under `simulation`, conversations under `scenarios`.
"""

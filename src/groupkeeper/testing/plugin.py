"""pytest plugin shipped with the package: fixtures over an embedded broker.

Imports nothing heavy until a fixture is used.
"""

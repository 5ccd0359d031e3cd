"""The documentation: examples run, commands exist, links lead somewhere, generated pages are up to date. What the
commands do is tested elsewhere.
"""

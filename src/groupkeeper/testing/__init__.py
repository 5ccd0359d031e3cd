"""What users' tests need: an embedded broker, as a context manager and as a pytest fixture.

Nothing of it is needed at run time.
"""

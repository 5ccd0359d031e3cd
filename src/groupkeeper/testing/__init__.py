"""An embedded broker for users' tests, as a context manager and as a pytest fixture. No other folder imports it."""

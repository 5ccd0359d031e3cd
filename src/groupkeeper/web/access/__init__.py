"""The users of requests, and their rights."""

"""Members of the consumer protocol beside classic ones. It extends the world and the checkers of `classic`."""

"""Judges, of answers that are made up."""

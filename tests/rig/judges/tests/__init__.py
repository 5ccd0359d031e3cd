"""Judges, of answers that are made up: right ones pass, wrong ones are found. No cluster takes part."""

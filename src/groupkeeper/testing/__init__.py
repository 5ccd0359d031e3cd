"""What users' tests need: an embedded broker as a pytest fixture."""

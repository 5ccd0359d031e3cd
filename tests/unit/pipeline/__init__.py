"""The pipeline without Spark, in rooms like those of `src/groupkeeper/pipeline`. Everything with Spark is under
`tests/spark`.
"""

"""The pipeline on a real Spark and the embedded broker, in rooms like those of `src/groupkeeper/pipeline`. What needs
no Spark is under `unit/pipeline`.
"""

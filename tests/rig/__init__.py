"""Traffic whose truth is known, and commands, `Admin` and the pipeline judged by it. Here are stories and how they are
played; who acts is under `actors`, who judges under `judges`.
"""

"""From the facts in Apache Kafka's jars, `schemas.txt` and `errors.txt`, to the committed modules of
`groupkeeper.protocol`. `extract` writes schemas.txt, `generate` the modules.

What no schema says (primitives, record batches, framing) is written by hand in `groupkeeper.protocol`.
"""

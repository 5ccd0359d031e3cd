"""Adds up the amounts of orders by customer: an example of an application that reads Kafka."""

from collections import Counter

from confluent_kafka import Consumer


def add_up(servers: str, *, until: int, group: str = "billing", patience_s: float = 20) -> Counter[str]:
    """The sums of the next `until` orders, committed when they are added up."""
    consumer = Consumer(
        {"bootstrap.servers": servers, "group.id": group, "auto.offset.reset": "earliest", "enable.auto.commit": False}
    )
    consumer.subscribe(["orders"])
    sums: Counter[str] = Counter()
    try:
        for _ in range(until):
            order = consumer.poll(patience_s)
            if order is None:
                raise TimeoutError("no further order came")
            if order.error():
                raise RuntimeError(order.error().str())
            sums[order.key().decode()] += int(order.value())
        consumer.commit(asynchronous=False)
    finally:
        consumer.close()
    return sums

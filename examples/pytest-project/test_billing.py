from billing import add_up
from confluent_kafka import Producer

from groupkeeper import NewTopic, SyncAdmin

ORDERS = [("ann", 5), ("bob", 7), ("ann", 1)]


def send(servers, orders):
    """Make the topic if it isn't there, and send orders to it."""
    with SyncAdmin(servers) as admin:
        admin.create_topics([NewTopic("orders", num_partitions=1)], if_missing=True).all()
    producer = Producer({"bootstrap.servers": servers, "enable.idempotence": True})
    for customer, amount in orders:
        producer.produce("orders", key=customer, value=str(amount))
    assert producer.flush(10) == 0


def lag(servers):
    with SyncAdmin(servers) as admin:
        return admin.lag(["billing"]).all()["billing"].total


def test_orders_are_added_up(groupkeeper_broker):
    send(groupkeeper_broker.bootstrap_servers, ORDERS)
    assert add_up(groupkeeper_broker.bootstrap_servers, until=3) == {"ann": 6, "bob": 7}


def test_it_goes_on_where_it_was(groupkeeper_broker):
    servers = groupkeeper_broker.bootstrap_servers
    send(servers, ORDERS)
    assert add_up(servers, until=2) == {"ann": 5, "bob": 7}
    assert lag(servers) == 1
    assert add_up(servers, until=1) == {"ann": 1}
    assert lag(servers) == 0


def test_a_lost_answer_is_no_second_order(groupkeeper_broker):
    """The broker has the orders, but its answer is lost: the producer sends them again, and nothing counts twice."""
    servers = groupkeeper_broker.bootstrap_servers
    with groupkeeper_broker.faults.disconnect("Produce", executes=True, nth=1) as fault:
        send(servers, ORDERS)
    assert fault.hits == 1
    assert add_up(servers, until=3) == {"ann": 6, "bob": 7}
    assert lag(servers) == 0

"""Plans by time on Apache Kafka, where its lookups by time lead to markers, or miss records."""

import pytest
from tests.times_and_transactions import check_a_cut_segment, check_clones, check_resets, check_what_is_too_far
from tools.apache_kafka import ApacheKafka

pytestmark = [pytest.mark.conformance, pytest.mark.timeout(300)]


async def test_resets_lead_to_records_not_to_markers(apache_kafka: ApacheKafka) -> None:
    await check_resets(apache_kafka.bootstrap_servers)


async def test_clones_to_copies_of_committed_records_are_exact(apache_kafka: ApacheKafka) -> None:
    await check_clones(apache_kafka.bootstrap_servers, (0, 4, 5, 16, 17, 18, 20, 23, 24, 59, 64, 66, 71, 72))


async def test_a_record_that_the_brokers_lookup_misses_is_found(apache_kafka: ApacheKafka) -> None:
    await check_a_cut_segment(apache_kafka.bootstrap_servers)


async def test_what_is_too_far_is_said(apache_kafka: ApacheKafka) -> None:
    await check_what_is_too_far(apache_kafka.bootstrap_servers)

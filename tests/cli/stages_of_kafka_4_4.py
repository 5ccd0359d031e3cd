"""Stages of which the tools of Kafka 4.4 print something else than those of 4.3, or that only they can show."""

from tests.cli.stages import SHARE
from tests.cli.streams_stages import STREAMS

SHARE_4_4 = SHARE._replace(
    name="share-4.4",
    release="4.4.0",
    files={
        "one.csv": "orders,0,2\norders,1,8\npayments,1,3\n",
        "groups.csv": "set,orders,0,2\nother,orders,1,8\n",
        "outside.csv": "orders,0,99999\norders,1,0\n",
        "below.csv": "orders,0,-1\n",
        "words.csv": "orders,zero,1\n",
        "short.csv": "orders,0\n",
    },
)

STREAMS_4_4 = STREAMS._replace(name="streams-4.4", release="4.4.0")

"""A Spark with the lake format that there is for its version: `make lake` runs these tests with each."""

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession

from groupkeeper.pipeline.errors import SourceError
from groupkeeper.pipeline.runtime.lake import lake_settings
from groupkeeper.pipeline.session import start_session
from groupkeeper.testing.background import BackgroundBroker

MOTO = Path(__file__).parents[2] / "build" / "moto"
SIGNED = {"Authorization": "AWS4-HMAC-SHA256 Credential=key/20260101/us-east-1/s3/aws4_request"}
"""Which service is meant; the server looks no further."""


HADOOP_AWS = {"3.4": ("3.4.2", "2.29.52"), "3.5": ("3.5.0", "2.35.4")}
"""Hadoop's way to S3, and the SDK that it goes with, by the Hadoop that Spark brings."""

OF_THE_SDK = ("s3", "s3-transfer-manager", "sts")
"""Of the whole, 640 MB, what is needed."""


def _lake() -> tuple[str, dict[str, str]] | None:
    for name in ("delta", "iceberg"):
        try:
            return name, lake_settings(name, {})
        except SourceError:
            continue
    return None


def _s3_packages() -> list[str]:
    jars = Path(pyspark.__file__).parent / "jars"
    (version,) = (path.stem.rpartition("-")[2] for path in jars.glob("hadoop-client-api-*.jar"))
    aws, sdk = HADOOP_AWS[version.rpartition(".")[0]]
    return [f"org.apache.hadoop:hadoop-aws:{aws}", *(f"software.amazon.awssdk:{name}:{sdk}" for name in OF_THE_SDK)]


@pytest.fixture(scope="session")
def lake_format() -> str:
    if (found := _lake()) is None:
        pytest.skip(f"no lake format is known for Spark {pyspark.__version__}: make lake")
    return found[0]


@pytest.fixture(scope="session")
def s3() -> Iterator[str]:
    """The address of an S3 server with the bucket `fleet`."""
    if not MOTO.is_dir():
        pytest.skip("no S3 server is installed: make lake")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    environment = {**os.environ, "PYTHONPATH": str(MOTO)}
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        address = f"http://127.0.0.1:{port}"
        deadline = time.monotonic() + 60
        while True:
            try:
                request = urllib.request.Request(f"{address}/fleet", method="PUT", headers=SIGNED)
                urllib.request.urlopen(request, timeout=5).close()
                break
            except OSError:
                assert time.monotonic() < deadline, "the S3 server does not start"
                time.sleep(0.2)
        yield address
        server.terminate()


@pytest.fixture(scope="session")
def spark(lake_format: str, s3: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    found = _lake()
    assert found is not None
    settings = found[1] | {
        "spark.sql.shuffle.partitions": "2",
        "spark.jars.packages": ",".join([found[1]["spark.jars.packages"], *_s3_packages()]),
        "spark.jars.excludes": "software.amazon.awssdk:bundle,org.wildfly.openssl:wildfly-openssl",
        "spark.hadoop.fs.s3a.endpoint": s3,
        "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
        "spark.hadoop.fs.s3a.path.style.access": "true",
        "spark.hadoop.fs.s3a.access.key": "key",
        "spark.hadoop.fs.s3a.secret.key": "secret",
    }
    log = tmp_path_factory.mktemp("spark") / "spark.log"
    session = start_session("tests", master="local[2]", log=log, settings=settings, is_short=True)
    yield session
    session.stop()


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    properties = {"group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "3"}
    with BackgroundBroker(properties=properties) as broker:
        yield broker.bootstrap_servers

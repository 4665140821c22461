"""Spark's own Kafka connector at work; run by spark.py, in an environment that has pyspark.

    spark_work.py ADDRESS PREFIX FOLDER JAR,JAR,... [ROWS]

A line for each scenario: its name, then "passed", how long it took and what it measured, or "failed" and why.
"""

import json
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f


class Work:
    def __init__(self, spark: SparkSession, address: str, prefix: str, folder: Path, rows: int) -> None:
        self.spark = spark
        self.address = address
        self.prefix = prefix
        self.folder = folder
        self.rows = rows

    # -- scenarios: what they return is shown

    def batch_write_and_read(self) -> str:
        topic = self.name("orders")
        rows = [(f"key-{n % 7}", f"value-{n}", [("n", str(n).encode())] if n % 3 == 0 else None) for n in range(1_000)]
        frame = self.spark.createDataFrame(
            rows, "key string, value string, headers array<struct<key:string,value:binary>>"
        )
        self.write(frame, topic, includeHeaders="true")
        found = self.read(topic, includeHeaders="true").collect()
        values = {bytes(row.value).decode(): row for row in found}
        assert set(values) == {f"value-{n}" for n in range(1_000)}, f"{len(values)} came"
        assert bytes(values["value-8"].key) == b"key-1" and values["value-8"].headers is None
        assert [(one.key, bytes(one.value)) for one in values["value-9"].headers] == [("n", b"9")]
        assert sorted(row.offset for row in found) == list(range(1_000))
        assert {row.timestampType for row in found} == {0}
        return "1000 rows there and back"

    def null_keys_and_tombstones(self) -> str:
        topic = self.name("odd")
        frame = self.spark.createDataFrame([(None, "v"), ("k", None)], "key string, value string")
        self.write(frame, topic)
        found = {(row.key and bytes(row.key), row.value and bytes(row.value)) for row in self.read(topic).collect()}
        assert found == {(None, b"v"), (b"k", None)}, found
        return ""

    def offsets_that_are_given(self) -> str:
        topic = self.name("log")
        self.write(self.numbers(100), topic)
        some = self.read(
            topic,
            startingOffsets=json.dumps({topic: {"0": 10}}),
            endingOffsets=json.dumps({topic: {"0": 30}}),
        )
        assert sorted(row.offset for row in some.collect()) == list(range(10, 30))
        assert self.read(topic, startingOffsets="earliest", endingOffsets="latest").count() == 100
        return ""

    def times_that_are_given(self) -> str:
        topic = self.name("log")
        self.write(self.numbers(50), topic)
        time.sleep(0.05)  # the connector writes no times: they are those of writing, and must differ
        between_ms = int(time.time() * 1_000)
        time.sleep(0.05)
        self.write(self.numbers(70), topic)
        later = self.read(topic, startingTimestamp=str(between_ms))
        assert later.count() == 70
        earlier = self.read(topic, endingTimestamp=str(between_ms))
        assert earlier.count() == 50
        by_partition = json.dumps({topic: {"0": between_ms}})
        assert self.read(topic, startingOffsetsByTimestamp=by_partition).count() == 70
        return ""

    def topics_by_a_pattern(self) -> str:
        for which in ("a", "b"):
            self.write(self.numbers(10), self.name(f"many-{which}"))
        found = self.read("", subscribePattern=self.name("many-.*"))
        assert found.groupBy("topic").count().count() == 2 and found.count() == 20
        return ""

    def a_stream_that_takes_what_there_is(self) -> str:
        """availableNow, three times over, with more to take each time: each row is taken once."""
        source, target = self.name("source"), self.name("target")
        checkpoint = str(self.folder / "checkpoint")
        total = 0
        batches = 0
        for turn in range(3):
            self.write(self.numbers(200, first=turn * 200), source)
            total += 200
            stream = (
                self.spark.readStream.format("kafka")
                .option("kafka.bootstrap.servers", self.address)
                .option("subscribe", source)
                .option("startingOffsets", "earliest")
                .option("maxOffsetsPerTrigger", 75)
                .load()
                .selectExpr("key", "cast(cast(cast(value as string) as int) * 2 as string) as value")
            )
            query = (
                stream.writeStream.format("kafka")
                .option("kafka.bootstrap.servers", self.address)
                .option("topic", target)
                .option("checkpointLocation", checkpoint)
                .trigger(availableNow=True)
                .start()
            )
            assert query.awaitTermination(120), "it ends by itself"
            assert query.exception() is None
            batches += len(query.recentProgress)
            found = sorted(int(bytes(row.value)) for row in self.read(target).collect())
            assert found == [n * 2 for n in range(total)], f"{len(found)} of {total}"
        return f"{total} rows in {batches} batches"

    def a_stream_with_groups_and_state(self) -> str:
        source = self.name("events")
        self.write(
            self.spark.range(1_000).selectExpr("cast(id % 10 as string) as key", "cast(id as string) as value"), source
        )
        stream = (
            self.spark.readStream.format("kafka")
            .option("kafka.bootstrap.servers", self.address)
            .option("subscribe", source)
            .option("startingOffsets", "earliest")
            .load()
            .groupBy("key")
            .count()
        )
        query = (
            stream.writeStream.format("memory")
            .queryName("counted")
            .outputMode("complete")
            .option("checkpointLocation", str(self.folder / "counted"))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(120), "it ends by itself"
        counted = {bytes(row.key): row["count"] for row in self.spark.table("counted").collect()}
        assert counted == {b"%d" % n: 100 for n in range(10)}, counted
        return ""

    def how_fast(self) -> str:
        topic = self.name("speed")
        frame = self.spark.range(self.rows, numPartitions=2).select(
            f.col("id").cast("string").alias("key"), f.rpad(f.col("id").cast("string"), 100, "x").alias("value")
        )
        began = time.monotonic()
        self.write(frame, topic)
        wrote = time.monotonic() - began
        began = time.monotonic()
        sizes = self.read(topic, minPartitions="2").select(
            f.sum(f.length("value")).alias("bytes"), f.count("*").alias("n")
        )
        row = sizes.first()
        assert row is not None and (row.n, row.bytes) == (self.rows, self.rows * 100)
        took = time.monotonic() - began
        return f"{self.rows} rows of 100 B: written {self.rows / wrote:,.0f}/s, read {self.rows / took:,.0f}/s"

    # -- in few words

    def name(self, of: str) -> str:
        return f"{self.prefix}-{of}"

    def numbers(self, count: int, first: int = 0) -> DataFrame:
        return self.spark.range(first, first + count, numPartitions=1).selectExpr("cast(id as string) as value")

    def write(self, frame: DataFrame, topic: str, **options: str) -> None:
        frame.write.format("kafka").option("kafka.bootstrap.servers", self.address).option("topic", topic).options(
            **options
        ).save()

    def read(self, topic: str, **options: str) -> DataFrame:
        reader = self.spark.read.format("kafka").option("kafka.bootstrap.servers", self.address)
        if topic:
            reader = reader.option("subscribe", topic)
        return reader.options(**options).load()


def main() -> int:
    address, prefix, folder, jars, *more = sys.argv[1:]
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.jars", jars)
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    failed = 0
    for name, scenario in vars(Work).items():
        if name.startswith("_") or name in ("name", "numbers", "write", "read"):
            continue
        work = Work(spark, address, f"{prefix}-{name}", Path(folder) / name, int(more[0]) if more else 200_000)
        failed += not ran(name, scenario, work)
    spark.stop()
    return 1 if failed else 0


def ran(name: str, scenario: Callable[[Work], Any], work: Work) -> bool:
    began = time.monotonic()
    try:
        told = scenario(work)
    except Exception as error:
        traceback.print_exc()
        print(f"{name} failed {type(error).__name__}: {str(error)[:300]!r}", flush=True)
        return False
    print(f"{name} passed {time.monotonic() - began:.1f} s {told}", flush=True)
    return True


if __name__ == "__main__":
    sys.exit(main())

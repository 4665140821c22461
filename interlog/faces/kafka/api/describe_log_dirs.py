"""DescribeLogDirs: the data folder, the only one, and how much is in it of each partition."""

from collections.abc import Iterator

from interlog.faces.kafka.errors import ErrorCode
from interlog.faces.kafka.operations import CLUSTER
from interlog.faces.kafka.request import Request
from interlog.faces.kafka.schema.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from interlog.faces.kafka.views import View


def handle(request: Request, body: DescribeLogDirsRequest) -> DescribeLogDirsResponse:
    if not request.may("describe", CLUSTER, "cluster"):
        return DescribeLogDirsResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    core = request.core
    topics = [
        DescribeLogDirsTopic(view.name, [_partition(view, index) for index in indexes])
        for view, indexes in _wanted(request, body)
        if indexes
    ]
    folder = DescribeLogDirsResult(ErrorCode.NONE, str(core.folder), topics, core.total_bytes, core.free_bytes)
    return DescribeLogDirsResponse(results=[folder])


def _wanted(request: Request, body: DescribeLogDirsRequest) -> Iterator[tuple[View, list[int]]]:
    """What is not there is left out, as Kafka does."""
    views = request.service.views
    if body.topics is None:
        for view in views.all(request.namespace):
            yield view, list(range(len(view.partitions)))
        return
    asked: dict[str, dict[int, None]] = {}
    for topic in body.topics:
        asked.setdefault(topic.topic, {}).update(dict.fromkeys(topic.partitions))
    for name, indexes in asked.items():
        found = views.find(request.namespace, name)
        if found is not None:
            yield found, [index for index in indexes if found.partition(index) is not None]


def _partition(view: View, index: int) -> DescribeLogDirsPartition:
    return DescribeLogDirsPartition(index, view.partitions[index].stored_bytes())

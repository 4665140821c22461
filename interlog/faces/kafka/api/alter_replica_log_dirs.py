"""AlterReplicaLogDirs: all partitions are in the data folder, the only one; there they may stay."""

from interlog.faces.kafka.errors import ErrorCode
from interlog.faces.kafka.operations import CLUSTER
from interlog.faces.kafka.request import Request
from interlog.faces.kafka.schema.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)


def handle(request: Request, body: AlterReplicaLogDirsRequest) -> AlterReplicaLogDirsResponse:
    allowed = request.may("alter", CLUSTER, "cluster")
    folder = str(request.core.folder)
    results = []
    for wanted in body.dirs:
        for topic in wanted.topics:
            view = request.service.views.find(request.namespace, topic.name) if allowed else None
            partitions = []
            for index in topic.partitions:
                code = ErrorCode.NONE
                if not allowed:
                    code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
                elif view is None or view.partition(index) is None:
                    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                elif wanted.path != folder:
                    code = ErrorCode.LOG_DIR_NOT_FOUND
                partitions.append(AlterReplicaLogDirPartitionResult(index, code))
            results.append(AlterReplicaLogDirTopicResult(topic.name, partitions))
    return AlterReplicaLogDirsResponse(results=results)

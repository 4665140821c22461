"""Members of groups in a crash test: classic ones that share partitions among themselves, and one that is balanced.

In come connections in each life; out go joins, syncs, heartbeats, leaves, and cursors that are set as a member. After
a restart nobody is a member of anything, and who comes with a generation or an epoch of before is refused.
"""

from typing import Any

from interlog.faces.kafka.errors import ErrorCode
from interlog.faces.kafka.schema.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from interlog.faces.kafka.schema.heartbeat import HeartbeatRequest
from interlog.faces.kafka.schema.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from interlog.faces.kafka.schema.leave_group import LeaveGroupRequest, MemberIdentity
from interlog.faces.kafka.schema.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from interlog.faces.kafka.schema.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.crash.kafka_client import Client
from tests.crash.kafka_model import INPUT, PLACES, Claim, Place
from tests.crash.kafka_tools import Tools
from tests.crash.model import Wrong

CLASSIC, BALANCED, ALONE = "classic", "balanced", "alone"  # groups; nobody is a member of the last
_SESSION_MS = 600_000


def commit_request(
    group: str, place: Place, claim: Claim, member: str = "", generation: int = -1
) -> OffsetCommitRequest:
    one = OffsetCommitRequestPartition(place[1], claim.offset, committed_metadata=claim.note)
    return OffsetCommitRequest(group, generation, member, topics=[OffsetCommitRequestTopic(place[0], partitions=[one])])


def error_of(answer: Any) -> int:
    code: int = answer.topics[0].partitions[0].error_code
    return code


class Member:
    """One of a group, as it goes on with what it knows after a restart."""

    group = ""

    def __init__(self, tools: Tools) -> None:
        self.tools = tools
        self.client: Client
        self.name = ""
        self.generation = -1

    def connect(self, client: Client) -> None:
        self.client = client
        if self.generation >= 0:
            self._come_too_late()
        self.name, self.generation = "", -1

    def _come_too_late(self) -> None:
        claim = Claim(77, "too late")
        answer = self.client.call(commit_request(self.group, PLACES[0], claim, self.name, self.generation), 9)
        if error_of(answer) != ErrorCode.UNKNOWN_MEMBER_ID:
            raise Wrong(f"a member of before the restart sets a cursor of {self.group}: {error_of(answer)}")

    def set_cursor(self) -> None:
        place = self.tools.rng.choice(PLACES)
        claim = self.tools.model.claim((self.group, place), self.tools.rng.randrange(1 << 40))
        answer = self.client.call(commit_request(self.group, place, claim, self.name, self.generation), 9)
        self.tools.check(error_of(answer), f"a cursor of {self.group}")
        claim.lasts = True


class ClassicMember(Member):
    group = CLASSIC

    def __init__(self, tools: Tools) -> None:
        super().__init__(tools)
        self.joined: Any = None

    def ask_to_join(self) -> None:
        self.joined = None
        protocols = [JoinGroupRequestProtocol("range", b"")]
        request = JoinGroupRequest(self.group, _SESSION_MS, _SESSION_MS, self.name, None, "consumer", protocols)
        self.client.send(request, 7, self._answered)

    def _answered(self, answer: Any) -> None:
        self.joined = answer
        self.name = answer.member_id
        if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self.ask_to_join()

    def synced(self, answer: Any) -> None:
        self.tools.check(answer.error_code, "syncing")
        if answer.assignment != self.name.encode():
            raise Wrong(f"{self.name} was given {answer.assignment!r}")

    def leave(self) -> None:
        answer = self.client.call(LeaveGroupRequest(self.group, members=[MemberIdentity(self.name)]), 4)
        self.tools.check(answer.error_code or answer.members[0].error_code, "leaving")
        self.name, self.generation = "", -1


class Classic:
    """A group of up to two members."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._members = [ClassicMember(tools) for _ in range(2)]

    def connect(self, *clients: Client) -> None:
        for member, client in zip(self._members, clients, strict=True):
            member.connect(client)

    def step(self) -> None:
        rng = self._tools.rng
        there = [member for member in self._members if member.generation >= 0]
        if not there or rng.random() < 0.15:
            self._share(rng.sample(self._members, rng.choice((1, 2))))
        elif rng.random() < 0.3:
            member = rng.choice(there)
            answer = member.client.call(HeartbeatRequest(CLASSIC, member.generation, member.name), 4)
            self._tools.check(answer.error_code, "a heartbeat")
        else:
            rng.choice(there).set_cursor()

    def _share(self, members: list[ClassicMember]) -> None:
        """The group is of these, one after the other; the leader assigns."""
        for member in self._members:
            if member.generation >= 0:
                member.leave()
        first, *others = members
        first.ask_to_join()
        first.client.flush()
        first.generation = first.joined.generation_id
        for other in others:
            other.ask_to_join()
            while not self._is_to_join_again(first):
                other.client.turn()
            first.ask_to_join()
            first.client.flush()
            other.client.flush()
        for member in members:
            self._tools.check(member.joined.error_code, "joining")
            member.generation = member.joined.generation_id
        for member in members:
            leads = member.joined.leader == member.name
            parts = [SyncGroupRequestAssignment(one.name, one.name.encode()) for one in members] if leads else []
            request = SyncGroupRequest(CLASSIC, member.generation, member.name, None, "consumer", "range", parts)
            member.client.send(request, 5, member.synced)
        for member in members:
            member.client.flush()

    def _is_to_join_again(self, member: ClassicMember) -> bool:
        code = member.client.call(HeartbeatRequest(CLASSIC, member.generation, member.name), 4).error_code
        if code not in (0, ErrorCode.REBALANCE_IN_PROGRESS):
            raise Wrong(f"a heartbeat while another joins is answered with {code}")
        return bool(code)


class BalancedMember(Member):
    group = BALANCED

    def step(self) -> None:
        rng = self.tools.rng
        if self.generation < 0:
            self.name = f"member-{rng.randrange(1 << 30)}"
            self._beat(0, subscribed_topic_names=[INPUT], rebalance_timeout_ms=_SESSION_MS, topic_partitions=[])
        elif rng.random() < 0.2:
            self._beat(-1)
            self.generation = -1
        elif rng.random() < 0.4:
            self._beat(self.generation)
        else:
            self.set_cursor()

    def _beat(self, epoch: int, **more: Any) -> None:
        answer = self.client.call(ConsumerGroupHeartbeatRequest(self.group, self.name, epoch, **more), 1)
        self.tools.check(answer.error_code, f"a heartbeat of {self.group}")
        self.generation = answer.member_epoch

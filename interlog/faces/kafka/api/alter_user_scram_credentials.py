"""AlterUserScramCredentials: passwords of users, made by the client and for one mechanism each, set or removed.

They are the users of all protocols: one that is not there is made, without permissions; one whose last password is
removed stays.
"""

from collections import Counter

from interlog.base.errors import InvalidError, LimitError, NotFoundError
from interlog.core.access_secrets import LEAST_ITERATIONS, MOST_ITERATIONS, from_salted
from interlog.faces.kafka.acls import CLUSTER_NAME
from interlog.faces.kafka.errors import ErrorCode, KafkaError
from interlog.faces.kafka.request import Request
from interlog.faces.kafka.sasl import SCRAM, SCRAM_NUMBERS
from interlog.faces.kafka.schema.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)

_MOST_BYTES = 1_024  # of a salt, and of a salted password


def handle(request: Request, body: AlterUserScramCredentialsRequest) -> AlterUserScramCredentialsResponse | None:
    changes: list[ScramCredentialDeletion | ScramCredentialUpsertion] = [*body.deletions, *body.upsertions]
    times = Counter(change.name for change in changes)
    if not request.may("alter", CLUSTER_NAME, "cluster"):
        refused = (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed.")
        return AlterUserScramCredentialsResponse(
            results=[AlterUserScramCredentialsResult(name, *refused) for name in times]
        )
    response = AlterUserScramCredentialsResponse()
    done = set()
    for change in changes:
        if change.name in done:
            continue
        done.add(change.name)
        result = AlterUserScramCredentialsResult(change.name, error_message=None)
        try:
            if times[change.name] > 1:
                why = "A user credential cannot be altered twice in the same request"
                raise KafkaError(ErrorCode.DUPLICATE_RESOURCE, why)
            _change(request, change)
        except KafkaError as error:
            result.error_code, result.error_message = error.code, error.message
        response.results.append(result)
    request.answer_when_durable(response)
    return None


def _change(request: Request, change: ScramCredentialDeletion | ScramCredentialUpsertion) -> None:
    access = request.core.access
    if not change.name:
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    mechanism = SCRAM_NUMBERS.get(change.mechanism)
    if mechanism is None:
        raise KafkaError(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
    hash = SCRAM[mechanism]
    if isinstance(change, ScramCredentialDeletion):
        try:
            access.clear_secret(change.name, hash)
        except NotFoundError:
            why = "Attempt to delete a user credential that does not exist"
            raise KafkaError(ErrorCode.RESOURCE_NOT_FOUND, why) from None
        return
    if change.iterations < LEAST_ITERATIONS:
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
    if change.iterations > MOST_ITERATIONS:
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")
    salt, salted = bytes(change.salt), bytes(change.salted_password)
    if not (1 <= len(salt) <= _MOST_BYTES and 1 <= len(salted) <= _MOST_BYTES):
        why = f"The salt and the salted password take 1 to {_MOST_BYTES} bytes each"
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, why)
    try:
        access.set_secret(change.name, from_salted(hash, salted, salt, change.iterations))
    except (InvalidError, LimitError) as error:
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, str(error)) from None

"""A Python client, generated from the document by openapi-python-client: signs in, lists, approves, meets an expired token."""
import os
import sys
import time
import uuid

sys.path.insert(0, os.environ["CLIENT_DIR"])

from signalbox_client import AuthenticatedClient, Client
from signalbox_client.api.gates import approve_gate, get_gate, list_waiting_gates
from signalbox_client.api.tokens import create_token, end_session
from signalbox_client.api.users import get_current_user
from signalbox_client.models import ApproveBody, CurrentUser, Gate, GateReply, Inbox, TokenReply, UnauthorizedProblem
from signalbox_client.models.create_token_body import CreateTokenBody

URL = os.environ["SIGNALBOX_URL"]
OPERATION = uuid.UUID(os.environ["OPERATION_ID"])


def sign_in() -> str:
    body = CreateTokenBody(username="zoe", password=os.environ["PASSWORD"])
    reply = create_token.sync(client=Client(base_url=URL), body=body)
    assert isinstance(reply, TokenReply), reply
    return reply.access_token


def gate_of_the_operation(client: AuthenticatedClient) -> str:
    for _ in range(120):
        inbox = list_waiting_gates.sync(client=client)
        assert isinstance(inbox, Inbox), inbox
        for gate in inbox.items:
            if gate.operation_id == str(OPERATION):
                return gate.gate_id
        time.sleep(0.25)
    raise AssertionError("the gate is not in the inbox")


token = sign_in()
client = AuthenticatedClient(base_url=URL, token=token)
gate_id = gate_of_the_operation(client)
gate = get_gate.sync(OPERATION, gate_id, client=client)
assert isinstance(gate, Gate), gate
decided = approve_gate.sync(
    OPERATION,
    gate_id,
    client=client,
    body=ApproveBody(reviewed_digest=gate.digest, round_=gate.round_),
    idempotency_key=str(uuid.uuid4()),
)
assert isinstance(decided, GateReply) and decided.status == "approved", decided

end_session.sync_detailed(client=client)
refused = get_current_user.sync(client=client)
assert isinstance(refused, UnauthorizedProblem), refused
assert (refused.category, refused.code) == ("invalid_token", "invalid_token"), refused
again = get_current_user.sync(client=AuthenticatedClient(base_url=URL, token=sign_in()))
assert isinstance(again, CurrentUser) and again.username == "zoe", again
print("the Python client signed in, listed, approved and met a token that was ended")

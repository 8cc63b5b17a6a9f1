"""Walks through every operation of the authorization server with the official Python client of stack 2.0.

    python3 walk_auth_v2.py http://127.0.0.1:8080 TOKEN

Needs the package `formance-sdk-python==2.4.1`. The server has to have no client yet, and to take the token.
"""
import sys

from sdk import SDK
from sdk.models import errors, operations as o, shared

client = SDK(f"Bearer {sys.argv[2]}", server_url=sys.argv[1]).auth
walked = set()


def call(name, *request, status=200):
    walked.add(name)
    answer = getattr(client, name)(*request)
    assert answer.status_code == status, f"{name}: {answer.status_code}"
    return answer


def refused(status, name, *request):
    walked.add(name)
    try:
        getattr(client, name)(*request)
    except errors.SDKError as error:
        assert error.status_code == status, error
        return
    raise AssertionError(f"{name} is not refused")


def same(have, want):
    assert have == want, f"\n  have {have!r}\n  want {want!r}"


same(call("list_clients").list_clients_response.data, [])
made = call("create_client", shared.CreateClientRequest(
    name="shop", metadata={"deep": {"n": [1, None]}}, trusted=True, redirect_uris=["https://a/cb"],
    scopes=["openid", "ledger:read"]), status=201).create_client_response.data
same((made.name, made.trusted, made.scopes, made.secrets), ("shop", True, ["openid", "ledger:read"], []))
same(made.metadata, {"deep": {"n": [1, None]}})
same(call("read_client", o.ReadClientRequest(client_id=made.id)).read_client_response.data, made)
secret = call("create_secret", o.CreateSecretRequest(
    client_id=made.id, create_secret_request=shared.CreateSecretRequest(name="ci"))).create_secret_response.data
same((secret.name, secret.last_digits), ("ci", secret.clear[-4:]))
updated = call("update_client", o.UpdateClientRequest(
    client_id=made.id, update_client_request=shared.UpdateClientRequest(name="desk"))).update_client_response.data
same((updated.name, updated.trusted, updated.scopes, len(updated.secrets)), ("desk", False, [], 1))
same([one.id for one in call("list_clients").list_clients_response.data], [made.id])
same(call("list_users").list_users_response.data, [])
refused(404, "read_user", o.ReadUserRequest(user_id="nosuch"))
call("delete_secret", o.DeleteSecretRequest(client_id=made.id, secret_id=secret.id), status=204)
call("delete_client", o.DeleteClientRequest(client_id=made.id), status=204)
refused(404, "read_client", o.ReadClientRequest(client_id=made.id))

every = {name for name in dir(client) if not name.startswith("_") and callable(getattr(client, name))}
same(walked, every)
print(f"{len(walked)} operations walked")

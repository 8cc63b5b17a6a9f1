"""Walks through every operation of the authorization server with the official Python client of stack 1.10.

    python3 walk_auth_v1.py http://127.0.0.1:8080 TOKEN

Needs the package `formance-sdk-python==1.0.20230915`. The server has to have no client yet, and to take the token.
"""
import sys

from sdk import SDK
from sdk.models import operations as o, shared

client = SDK(shared.Security(authorization=f"Bearer {sys.argv[2]}"), server_url=sys.argv[1]).auth
walked = set()


def call(name, *request, status=200):
    walked.add(name)
    answer = getattr(client, name)(*request)
    assert answer.status_code == status, f"{name}: {answer.raw_response.status_code} {answer.raw_response.text}"
    return answer


def same(have, want):
    assert have == want, f"\n  have {have!r}\n  want {want!r}"


assert call("get_server_info").server_info.version
same(call("list_clients").list_clients_response.data, [])
made = call("create_client", shared.CreateClientRequest(
    name="shop", description="d", metadata={"deep": {"n": [1, None]}}, public=False, trusted=True,
    redirect_uris=["https://a/cb"], post_logout_redirect_uris=["https://a/bye"]), status=201).create_client_response.data
same((made.name, made.description, made.trusted, made.scopes, made.secrets), ("shop", "d", True, [], []))
same((made.metadata, made.redirect_uris), ({"deep": {"n": [1, None]}}, ["https://a/cb"]))
same(call("read_client", o.ReadClientRequest(client_id=made.id)).read_client_response.data, made)

secret = call("create_secret", o.CreateSecretRequest(
    client_id=made.id, create_secret_request=shared.CreateSecretRequest(name="ci", metadata={"k": "v"})))
secret = secret.create_secret_response.data
same((secret.name, secret.last_digits, secret.metadata), ("ci", secret.clear[-4:], {"k": "v"}))
[shown] = call("read_client", o.ReadClientRequest(client_id=made.id)).read_client_response.data.secrets
same((shown.id, shown.name, shown.last_digits), (secret.id, "ci", secret.last_digits))

scope = lambda label: call("create_scope", shared.CreateScopeRequest(label=label, metadata={"l": label}),
                           status=201).create_scope_response.data
a, b = scope("a"), scope("b")
same((a.label, a.metadata, a.transient), ("a", {"l": "a"}, []))
call("add_transient_scope", o.AddTransientScopeRequest(scope_id=a.id, transient_scope_id=b.id), status=204)
same(call("read_scope", o.ReadScopeRequest(scope_id=a.id)).read_scope_response.data.transient, [b.id])
changed = call("update_scope", o.UpdateScopeRequest(
    scope_id=a.id, update_scope_request=shared.UpdateScopeRequest(label="c"))).update_scope_response.data
same((changed.id, changed.label, changed.transient), (a.id, "c", [b.id]))
same([one.label for one in call("list_scopes").list_scopes_response.data], ["c", "b"])
link = dict(client_id=made.id, scope_id=a.id)
call("add_scope_to_client", o.AddScopeToClientRequest(**link), status=204)
same(call("list_clients").list_clients_response.data[0].scopes, [a.id])
updated = call("update_client", o.UpdateClientRequest(
    client_id=made.id, update_client_request=shared.UpdateClientRequest(name="desk"))).update_client_response.data
same((updated.name, updated.description, updated.trusted, updated.scopes), ("desk", "", False, [a.id]))
call("delete_scope_from_client", o.DeleteScopeFromClientRequest(**link), status=204)
call("delete_transient_scope", o.DeleteTransientScopeRequest(scope_id=a.id, transient_scope_id=b.id), status=204)
call("delete_scope", o.DeleteScopeRequest(scope_id=a.id), status=204)
call("read_scope", o.ReadScopeRequest(scope_id=a.id), status=404)

same(call("list_users").list_users_response.data, [])
call("read_user", o.ReadUserRequest(user_id="nosuch"), status=404)
call("delete_secret", o.DeleteSecretRequest(client_id=made.id, secret_id=secret.id), status=204)
call("delete_client", o.DeleteClientRequest(client_id=made.id), status=204)
call("read_client", o.ReadClientRequest(client_id=made.id), status=404)

every = {name for name in dir(client) if not name.startswith("_") and callable(getattr(client, name))}
same(walked, every)
print(f"{len(walked)} operations walked")

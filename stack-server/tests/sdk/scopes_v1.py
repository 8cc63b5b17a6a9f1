"""Reads and writes with the official Python client of stack 1.10 and a token that only reads.

    python3 scopes_v1.py http://127.0.0.1:8080 READER WRITER

READER is a token with the scopes SERVICE:read, WRITER one with SERVICE:write. Needs the package
`formance-sdk-python==1.0.20230915` and an empty server that checks scopes. This client reads an error from the body, and
a 401 has none: the status is taken from the connection.
"""
import sys

import requests
from sdk import SDK
from sdk.models import operations as o, shared

LEDGER = "scopes"
walked = set()


def client_of(token):
    statuses, session = [], requests.Session()
    session.hooks["response"].append(lambda answer, *_, **__: statuses.append(answer.status_code))
    return SDK(shared.Security(authorization=f"Bearer {token}"), server_url=sys.argv[1], client=session), statuses


def call(of, service, operation, *request, status):
    client, statuses = of
    walked.add(operation)
    before = len(statuses)
    try:
        answer = getattr(getattr(client, service), operation)(*request)
    except Exception:
        # An empty body is no error to this client.
        answer = None
        assert status == 401
    assert statuses[before:] == [status], f"{operation}: {statuses[before:]}"
    return answer


reader, writer = map(client_of, sys.argv[2:4])
posting = shared.Posting(source="world", destination="shop", amount=7, asset="EUR/2")
transaction = o.CreateTransactionRequest(ledger=LEDGER, post_transaction=shared.PostTransaction(postings=[posting]))
stripe = shared.StripeConfig(api_key="sk_test_scopes", page_size=10, polling_period="1h")
writes = [
    ("ledger", "create_transaction", transaction, 200),
    ("auth", "create_client", shared.CreateClientRequest(name="shop"), 201),
    ("payments", "install_connector", o.InstallConnectorRequest(connector=shared.Connector.STRIPE, request_body=stripe), 204),
]
for service, operation, request, _ in writes:
    call(reader, service, operation, request, status=401)
listed = o.ListTransactionsRequest(ledger=LEDGER)
for count in (0, 1):
    rows = call(reader, "ledger", "list_transactions", listed, status=200).transactions_cursor_response.cursor.data
    assert len(rows) == count, rows
    rows = call(reader, "auth", "list_clients", status=200).list_clients_response.data
    assert len(rows) == count, rows
    rows = call(reader, "payments", "list_all_connectors", status=200).connectors_response.data
    assert len(rows) == count, rows
    for service, operation, request, status in writes if count == 0 else []:
        call(writer, service, operation, request, status=status)
print(f"{len(walked)} operations walked")

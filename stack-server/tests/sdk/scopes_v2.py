"""Reads and writes with the official Python client of stack 2.0 and a token that only reads.

    python3 scopes_v2.py http://127.0.0.1:8080 READER WRITER

READER is a token with the scopes SERVICE:read, WRITER one with SERVICE:write. Needs the package
`formance-sdk-python==2.4.1` and an empty server that checks scopes. This client reads an error from the body, and a 401
has none: the status is taken from the connection.
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
    return SDK(f"Bearer {token}", server_url=sys.argv[1], client=session), statuses


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
posting = shared.V2Posting(source="world", destination="shop", amount=7, asset="EUR/2")
transaction = o.V2CreateTransactionRequest(
    ledger=LEDGER, v2_post_transaction=shared.V2PostTransaction(metadata={}, postings=[posting]))
bank = shared.BankAccountRequest(connector_id="", country="FR", name="Payroll", iban="FR7630006000011234567890189")
writes = [
    ("ledger", "v2_create_ledger", o.V2CreateLedgerRequest(
        ledger=LEDGER, v2_create_ledger_request=shared.V2CreateLedgerRequest()), 204),
    ("ledger", "v2_create_transaction", transaction, 200),
    ("auth", "create_client", shared.CreateClientRequest(name="shop"), 201),
    ("payments", "create_bank_account", bank, 200),
]
for service, operation, request, _ in writes:
    call(reader, service, operation, request, status=401)
for count in (0, 1):
    rows = call(reader, "ledger", "v2_list_ledgers", o.V2ListLedgersRequest(), status=200)
    assert len(rows.v2_ledger_list_response.cursor.data) == count, rows
    rows = call(reader, "auth", "list_clients", status=200).list_clients_response.data
    assert len(rows) == count, rows
    rows = call(reader, "payments", "list_bank_accounts", o.ListBankAccountsRequest(), status=200)
    assert len(rows.bank_accounts_cursor.cursor.data) == count, rows
    for service, operation, request, status in writes if count == 0 else []:
        call(writer, service, operation, request, status=status)
print(f"{len(walked)} operations walked")

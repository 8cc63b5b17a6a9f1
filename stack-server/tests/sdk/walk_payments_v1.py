"""Walks through every operation of the payments API of release 1.10 with the official Python client.

    python3 walk_payments_v1.py http://127.0.0.1:8080 [TOKEN]

Needs the package `formance-sdk-python==1.0.20230915` and an empty server. The server reaches a provider in the place of
STRIPE that accepts transfers. The client names its release in its requests, so the answers are those of 1.10: an
installation is 204, and accounts are SOURCE or TARGET. It refuses every catalogue of configurations without a connector
named `connector`: the walk calls that operation and expects the refusal.
"""
import sys
import tempfile
import time

from sdk import SDK
from sdk.models import operations as o, shared
from sdk.models.shared import Connector

walked = set()
token = f"Bearer {sys.argv[2]}" if len(sys.argv) > 2 else "token"
client = SDK(security=shared.Security(authorization=token), server_url=sys.argv[1]).payments


def same(have, want, what):
    assert have == want, f"{what}: {have!r} is not {want!r}"


def call(operation, *arguments, status=200):
    walked.add(operation)
    answer = getattr(client, operation)(*arguments)
    same(answer.status_code, status, f"{operation} {answer.raw_response.text}")
    return answer


def until(what, attempt):
    """Repeats until something is there; a connector works meanwhile."""
    deadline = time.monotonic() + 30
    while not (found := attempt()):
        assert time.monotonic() < deadline, what
        time.sleep(0.05)
    return found


same(bool(call("paymentsget_server_info").server_info.version), True, "version")
try:
    call("list_configs_available_connectors")
except Exception:  # The client has no type for its own failure.
    pass

with tempfile.TemporaryDirectory() as directory:
    config = shared.DummyPayConfig(directory=directory, file_polling_period="1s", file_generation_period="1s")
    call("install_connector", o.InstallConnectorRequest(connector=Connector.DUMMY_PAY, request_body=config), status=204)
    found = call("list_all_connectors").connectors_response.data
    same([(one.provider, one.enabled) for one in found], [(Connector.DUMMY_PAY, True)], "connectors")
    read = call("read_connector_config", o.ReadConnectorConfigRequest(connector=Connector.DUMMY_PAY))
    assert read.connector_config_response is not None, read
    request = o.ListConnectorTasksRequest(connector=Connector.DUMMY_PAY, page_size=10)
    tasks = call("list_connector_tasks", request).tasks_cursor.cursor.data
    task_id = tasks[0]["id"] if isinstance(tasks[0], dict) else tasks[0].id
    request = o.GetConnectorTaskRequest(connector=Connector.DUMMY_PAY, task_id=task_id)
    assert call("get_connector_task", request).task_response is not None
    listed = o.ListPaymentsRequest(page_size=5, sort=["date:desc"])
    payments = until("generated payments", lambda: call("list_payments", listed).payments_cursor.cursor.data)
    first = payments[0]
    same((first.provider, first.asset, first.initial_amount >= 0), (Connector.DUMMY_PAY, "DUMMYCOIN", True), "payment")
    metadata = shared.PaymentMetadata(key="77")
    call("update_metadata", o.UpdateMetadataRequest(payment_id=first.id, payment_metadata=metadata), status=204)
    read = call("get_payment", o.GetPaymentRequest(payment_id=first.id)).payment_response.data
    same((read.id, read.reference, read.metadata.key), (first.id, first.reference, "77"), "payment")
    call("reset_connector", o.ResetConnectorRequest(connector=Connector.DUMMY_PAY), status=204)
    call("uninstall_connector", o.UninstallConnectorRequest(connector=Connector.DUMMY_PAY), status=204)

config = shared.StripeConfig(api_key="sk_test_walk", page_size=10, polling_period="1s")
call("install_connector", o.InstallConnectorRequest(connector=Connector.STRIPE, request_body=config), status=204)
accounts = o.PaymentslistAccountsRequest(page_size=10)
found = until("the account", lambda: call("paymentslist_accounts", accounts).accounts_cursor.cursor.data)
same([(one.reference, one.type.value) for one in found], [("root", "SOURCE")], "accounts")
transfer = shared.TransferRequest(amount=100, asset="EUR/2", destination="acct_shop")
request = o.ConnectorsTransferRequest(connector=Connector.STRIPE, transfer_request=transfer)
made = call("connectors_transfer", request).transfer_response.id
listed = o.ListConnectorsTransfersRequest(connector=Connector.STRIPE)


def transferred():
    rows = call("list_connectors_transfers", listed).transfers_response.data
    return [row for row in rows if row.status == "SUCCEEDED"]


done = until("the transfer is made", transferred)
same([(row.id, row.amount, row.destination) for row in done], [(made, 100, "acct_shop")], "transfers")
request = shared.StripeTransferRequest(amount=100, asset="USD/2", destination="acct_shop", metadata={"order_id": "6735"})
same(bool(call("connectors_stripe_transfer", request).stripe_transfer_response), True, "transfer at the provider")

known = {name for name in dir(type(client)) if not name.startswith("_") and callable(getattr(type(client), name))}
same(known - walked, set(), "operations that are left")
print(f"{len(walked)} operations walked")

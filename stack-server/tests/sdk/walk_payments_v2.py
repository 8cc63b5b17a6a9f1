"""Walks through every operation of the payments API with the official SDK for Python, and compares what it reads.

Usage: walk_payments_v2.py ADDRESS [TOKEN], with formance-sdk-python==2.4.1 installed and an empty store behind the
address. The server reaches a provider in the place of STRIPE that accepts transfers and payouts.

Two operations are beyond this client. It refuses every catalogue of configurations without a connector named
`connector`, and every task in a state other than those of payments. The walk calls the first and expects that refusal;
tasks it asks for where there are none.
"""

import sys
import tempfile
import time
import uuid
from datetime import datetime, timezone

from sdk import SDK
from sdk.models import errors, operations as o, shared
from sdk.models.shared import Connector

DATE = datetime(2024, 5, 1, 10, 0, 0, 120000, tzinfo=timezone.utc)
NEVER = datetime(1, 1, 1, tzinfo=timezone.utc)
LARGE = 10**30

walked = set()
token = f"Bearer {sys.argv[2]}" if len(sys.argv) > 2 else "token"
client = SDK(token, server_url=sys.argv[1]).payments


def same(have, want, what):
    assert have == want, f"{what}: {have!r} is not {want!r}"


def call(operation, *arguments, status=200):
    """Calls an operation of the SDK; anything but this status is a failure."""
    walked.add(operation)
    answer = getattr(client, operation)(*arguments)
    same(answer.status_code, status, operation)
    return answer


def refused(operation, request, code):
    """Calls an operation that is refused with a typed error."""
    walked.add(operation)
    try:
        getattr(client, operation)(request)
    except errors.PaymentsErrorResponse as error:
        same(error.error_code.value, code, operation)
    else:
        raise AssertionError(f"{operation} is not refused")


def until(what, condition):
    """Repeats until a condition holds; a connector works meanwhile."""
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


same(bool(call("paymentsget_server_info").server_info.version), True, "version")
try:
    call("list_configs_available_connectors")
except Exception:  # The client has no type for its own failure.
    pass

# Connectors.
config = shared.GenericConfig(api_key="", endpoint="", name="manual", polling_period="120s")
install = o.InstallConnectorRequest(connector_config=config, connector=Connector.GENERIC)
manual = call("install_connector", install, status=201).connector_response.data.connector_id
refused("install_connector", install, "VALIDATION")
found = call("list_all_connectors").connectors_response.data
same([(one.connector_id, one.name, one.provider) for one in found], [(manual, "manual", Connector.GENERIC)], "connectors")
read = call("read_connector_config", o.ReadConnectorConfigRequest(connector=Connector.GENERIC))
same(read.connector_config_response.data.name, "manual", "configuration")
config = shared.GenericConfig(api_key="", endpoint="", name="by hand", polling_period="60s")
request = o.UpdateConnectorConfigV1Request(connector_config=config, connector=Connector.GENERIC, connector_id=manual)
call("update_connector_config_v1", request, status=204)
request = o.ReadConnectorConfigV1Request(connector=Connector.GENERIC, connector_id=manual)
same(call("read_connector_config_v1", request).connector_config_response.data.polling_period, "1m0s", "configuration")
request = o.ListConnectorTasksRequest(connector=Connector.GENERIC, page_size=10)
same(call("list_connector_tasks", request).tasks_cursor.cursor.data, [], "tasks")
request = o.ListConnectorTasksV1Request(connector=Connector.GENERIC, connector_id=manual, page_size=10)
same(call("list_connector_tasks_v1", request).tasks_cursor.cursor.has_more, False, "tasks")
nobody = str(uuid.uuid4())
refused("get_connector_task", o.GetConnectorTaskRequest(connector=Connector.GENERIC, task_id=nobody), "NOT_FOUND")
request = o.GetConnectorTaskV1Request(connector=Connector.GENERIC, connector_id=manual, task_id=nobody)
refused("get_connector_task_v1", request, "NOT_FOUND")

# Accounts and payments by hand.


def account(connector, reference, kind):
    request = shared.AccountRequest(
        connector_id=connector,
        created_at=DATE,
        reference=reference,
        type=kind,
        account_name=f"the {reference}",
        default_asset="EUR/2",
        metadata={"k": "v"},
    )
    return call("create_account", request).payments_account_response.data


till = account(manual, "till", shared.AccountType.INTERNAL)
customer = account(manual, "customer", shared.AccountType.EXTERNAL)
same((till.reference, till.account_name, till.default_asset), ("till", "the till", "EUR/2"), "account")
request = o.PaymentslistAccountsRequest(page_size=1, sort=["reference:asc"])
page = call("paymentslist_accounts", request).accounts_cursor.cursor
same(([one.reference for one in page.data], page.has_more), (["customer"], True), "accounts")
request = o.PaymentslistAccountsRequest(cursor=page.next)
page = call("paymentslist_accounts", request).accounts_cursor.cursor
same([one.id for one in page.data], [till.id], "accounts")
read = call("paymentsget_account", o.PaymentsgetAccountRequest(account_id=till.id)).payments_account_response.data
same((read.id, read.created_at, read.metadata), (till.id, DATE, {"k": "v"}), "account")
request = o.GetAccountBalancesRequest(account_id=till.id, limit=1)
same(call("get_account_balances", request).balances_cursor.cursor.data, [], "balances")


def payment(reference, amount):
    return shared.PaymentRequest(
        amount=amount,
        asset="EUR/2",
        connector_id=manual,
        created_at=DATE,
        reference=reference,
        scheme=shared.PaymentScheme.VISA,
        status=shared.PaymentStatus.SUCCEEDED,
        type=shared.PaymentType.PAY_IN,
        source_account_id=customer.id,
        destination_account_id=till.id,
    )


made = call("create_payment", payment("sale-1", LARGE)).payment_response.data
same((made.reference, made.amount, made.initial_amount), ("sale-1", LARGE, LARGE), "payment")
call("create_payment", payment("sale-2", 7))
request = o.UpdateMetadataRequest(payment_id=made.id, request_body={"order": "77"})
call("update_metadata", request, status=204)
read = call("get_payment", o.GetPaymentRequest(payment_id=made.id)).payment_response.data
same((read.metadata, read.adjustments, read.created_at), ({"order": "77"}, [], DATE), "payment")
same((read.source_account_id, read.destination_account_id), (customer.id, till.id), "payment")
request = o.ListPaymentsRequest(query='{"$gte": {"amount": 8}}', sort=["amount:desc"])
page = call("list_payments", request).payments_cursor.cursor
same([one.id for one in page.data], [made.id], "payments")
refused("list_payments", o.ListPaymentsRequest(sort=["nothing:asc"]), "VALIDATION")

# Pools.
request = shared.PoolRequest(account_i_ds=[till.id], name="treasury")
pool = call("create_pool", request).pool_response.data
added = shared.AddAccountToPoolRequest(account_id=customer.id)
call("add_account_to_pool", o.AddAccountToPoolRequest(added, pool_id=pool.id), status=204)
read = call("get_pool", o.GetPoolRequest(pool_id=pool.id)).pool_response.data
same((read.name, sorted(read.accounts)), ("treasury", sorted([till.id, customer.id])), "pool")
request = o.RemoveAccountFromPoolRequest(account_id=customer.id, pool_id=pool.id)
call("remove_account_from_pool", request, status=204)
page = call("list_pools", o.ListPoolsRequest(page_size=10)).pools_cursor.cursor
same([one.accounts for one in page.data], [[till.id]], "pools")
request = o.GetPoolBalancesRequest(at=DATE, pool_id=pool.id)
same(call("get_pool_balances", request).pool_balances_response.data.balances, [], "balances of a pool")
call("delete_pool", o.DeletePoolRequest(pool_id=pool.id), status=204)

# Bank accounts.
request = shared.BankAccountRequest(
    connector_id="", country="FR", name="Payroll", iban="FR7630006000011234567890189", account_number="12345789"
)
bank = call("create_bank_account", request).bank_account_response.data
same((bank.name, bank.iban, bank.account_number), ("Payroll", None, None), "bank account")
patch = shared.UpdateBankAccountMetadataRequest(metadata={"owner": "ops"})
call("update_bank_account_metadata", o.UpdateBankAccountMetadataRequest(patch, bank_account_id=bank.id), status=204)
read = call("get_bank_account", o.GetBankAccountRequest(bank_account_id=bank.id)).bank_account_response.data
same((read.iban[:4], read.account_number, read.metadata), ("FR76", "12***789", {"owner": "ops"}), "bank account")
page = call("list_bank_accounts", o.ListBankAccountsRequest(page_size=10)).bank_accounts_cursor.cursor
same([one.id for one in page.data], [bank.id], "bank accounts")
forward = shared.ForwardBankAccountRequest(connector_id=manual)
refused("forward_bank_account", o.ForwardBankAccountRequest(forward, bank_account_id=bank.id), "VALIDATION")

# Money that is moved.
config = shared.StripeConfig(api_key="sk_test_walk", name="stripe", polling_period="1s", page_size=10)
install = o.InstallConnectorRequest(connector_config=config, connector=Connector.STRIPE)
stripe = call("install_connector", install, status=201).connector_response.data.connector_id
shop = account(stripe, "acct_shop", shared.AccountType.INTERNAL)


def initiation(reference, is_validated):
    request = shared.TransferInitiationRequest(
        amount=500,
        asset="EUR/2",
        description="rent",
        destination_account_id=shop.id,
        reference=reference,
        scheduled_at=NEVER,
        source_account_id="",
        type=shared.TransferInitiationRequestType.TRANSFER,
        validated=is_validated,
        connector_id=stripe,
        metadata={"k": "v"},
    )
    return call("create_transfer_initiation", request).transfer_initiation_response.data


def status(initiation):
    request = o.GetTransferInitiationRequest(transfer_id=initiation.id)
    return call("get_transfer_initiation", request).transfer_initiation_response.data.status.value


first, second, third = (initiation(f"ti-{number}", False) for number in range(3))
same(status(first), "WAITING_FOR_VALIDATION", "status")
validated = shared.UpdateTransferInitiationStatusRequest(status=shared.Status.VALIDATED)
request = o.UdpateTransferInitiationStatusRequest(validated, transfer_id=first.id)
call("udpate_transfer_initiation_status", request, status=204)
until("the transfer is made", lambda: status(first) == "PROCESSED")
reversal = shared.ReverseTransferInitiationRequest(
    amount=200, asset="EUR/2", description="too much", metadata={}, reference="re-1"
)
request = o.ReverseTransferInitiationRequest(reversal, transfer_id=first.id)
call("reverse_transfer_initiation", request, status=204)
until("the transfer is reversed in part", lambda: status(first) == "PARTIALLY_REVERSED")
rejected = shared.UpdateTransferInitiationStatusRequest(status=shared.Status.REJECTED)
request = o.UdpateTransferInitiationStatusRequest(rejected, transfer_id=second.id)
call("udpate_transfer_initiation_status", request, status=204)
refused("retry_transfer_initiation", o.RetryTransferInitiationRequest(transfer_id=second.id), "VALIDATION")
call("delete_transfer_initiation", o.DeleteTransferInitiationRequest(transfer_id=third.id), status=204)
page = call("list_transfer_initiations", o.ListTransferInitiationsRequest(page_size=10, sort=["reference:asc"]))
listed = page.transfer_initiations_cursor.cursor.data
same([(one.reference, one.amount) for one in listed], [("ti-0", 300), ("ti-1", 500)], "transfer initiations")
transfer = shared.TransferRequest(amount=100, asset="EUR/2", destination="acct_shop")
request = o.ConnectorsTransferRequest(transfer_request=transfer, connector=Connector.STRIPE)
same(bool(call("connectors_transfer", request).transfer_response.id), True, "transfer")

# Files, and the end.
with tempfile.TemporaryDirectory() as directory:
    config = shared.DummyPayConfig(
        directory=directory, name="files", file_polling_period="1s", number_of_payments_pre_generated=3
    )
    install = o.InstallConnectorRequest(connector_config=config, connector=Connector.DUMMY_PAY)
    files = call("install_connector", install, status=201).connector_response.data.connector_id
    mine = o.ListPaymentsRequest(query='{"$match": {"connectorID": "%s"}}' % files)
    until("generated payments", lambda: len(call("list_payments", mine).payments_cursor.cursor.data) == 3)
    request = o.ResetConnectorV1Request(connector=Connector.DUMMY_PAY, connector_id=files)
    call("reset_connector_v1", request, status=204)
    same(call("list_payments", mine).payments_cursor.cursor.data, [], "payments before the reset")
    call("reset_connector", o.ResetConnectorRequest(connector=Connector.DUMMY_PAY), status=204)
    call("uninstall_connector", o.UninstallConnectorRequest(connector=Connector.DUMMY_PAY), status=204)
request = o.UninstallConnectorV1Request(connector=Connector.STRIPE, connector_id=stripe)
call("uninstall_connector_v1", request, status=204)
refused("uninstall_connector_v1", request, "VALIDATION")

known = {name for name in dir(type(client)) if not name.startswith("_") and callable(getattr(type(client), name))}
same(known - walked, set(), "operations that are left")
print(f"{len(walked)} operations walked")

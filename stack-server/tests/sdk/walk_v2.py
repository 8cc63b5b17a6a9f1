"""Walks through every operation of API v2 with the official SDK for Python, and compares what it reads.

Usage: walk_v2.py ADDRESS, with formance-sdk-python==2.4.1 installed and an empty store behind the address.
"""

import sys
from datetime import datetime, timezone

from sdk import SDK
from sdk.models import errors, operations, shared

LEDGER = "walk"
DATE = datetime(2024, 5, 1, 10, 0, 0, 120000, tzinfo=timezone.utc)
LARGE = 10**30

walked = set()
# A second argument is a token, for a server that asks for one.
token = f"Bearer {sys.argv[2]}" if len(sys.argv) > 2 else "token"
client = SDK(token, server_url=sys.argv[1])


def call(operation, *arguments, status=200):
    """Calls an operation of the SDK; anything but this status is a failure."""
    walked.add(operation)
    answer = getattr(client.ledger, operation)(*arguments)
    same(answer.status_code, status, operation)
    return answer


def same(have, want, what):
    assert have == want, f"{what}: {have!r} is not {want!r}"


def refused(operation, request, status, code):
    """Calls an operation that is refused with a typed error."""
    try:
        getattr(client.ledger, operation)(request)
    except errors.V2ErrorResponse as error:
        same((error.raw_response.status_code if hasattr(error, "raw_response") else status), status, operation)
        same(error.error_code.value, code, operation)
    else:
        raise AssertionError(f"{operation} is not refused")


def posting(source, destination, amount, asset="USD/2"):
    return shared.V2Posting(amount=amount, asset=asset, destination=destination, source=source)


def create(**arguments):
    transaction = shared.V2PostTransaction(**{"metadata": {}, **arguments})
    request = operations.V2CreateTransactionRequest(v2_post_transaction=transaction, ledger=LEDGER)
    return request


info = call("v2_get_info").v2_config_info_response
same((info.server, info.version), ("ledger", "v2.0.0"), "info")

request = operations.V2CreateLedgerRequest(
    ledger=LEDGER, v2_create_ledger_request=shared.V2CreateLedgerRequest(bucket="eu", metadata={"env": "test"})
)
call("v2_create_ledger", request, status=204)
refused("v2_create_ledger", request, 400, "VALIDATION")
ledgers = call("v2_list_ledgers", operations.V2ListLedgersRequest(page_size=10)).v2_ledger_list_response
same([ledger.name for ledger in ledgers.cursor.data], [LEDGER], "ledgers")
same(ledgers.cursor.has_more, False, "ledgers")
request = operations.V2UpdateLedgerMetadataRequest(ledger=LEDGER, request_body={"owner": "me", "env": "walk"})
call("v2_update_ledger_metadata", request, status=204)
ledger = call("v2_get_ledger", operations.V2GetLedgerRequest(ledger=LEDGER)).v2_get_ledger_response.data
same((ledger.name, ledger.bucket, ledger.metadata), (LEDGER, "eu", {"env": "walk", "owner": "me"}), "ledger")
call("v2_delete_ledger_metadata", operations.V2DeleteLedgerMetadataRequest(key="owner", ledger=LEDGER), status=204)
ledger = call("v2_get_ledger", operations.V2GetLedgerRequest(ledger=LEDGER)).v2_get_ledger_response.data
same(ledger.metadata, {"env": "walk"}, "ledger")
info = call("v2_get_ledger_info", operations.V2GetLedgerInfoRequest(ledger=LEDGER)).v2_ledger_info_response.data
same((info.name, info.storage.migrations), (LEDGER, []), "ledger info")

request = create(
    postings=[posting("world", "users:001", 10000), posting("world", "bank", LARGE, "COIN")],
    reference="topup-1",
    metadata={"kind": "topup"},
    timestamp=DATE,
)
made = call("v2_create_transaction", request).v2_create_transaction_response.data
same((made.id, made.reference, made.reverted, made.timestamp), (0, "topup-1", False, DATE), "create")
same([(one.source, one.destination, one.amount, one.asset) for one in made.postings],
     [("world", "users:001", 10000, "USD/2"), ("world", "bank", LARGE, "COIN")], "create")
refused("v2_create_transaction", request, 400, "CONFLICT")
refused("v2_create_transaction", create(postings=[posting("users:001", "bank", 10001)]), 400, "INSUFFICIENT_FUND")
refused("v2_create_transaction", create(postings=[]), 400, "NO_POSTINGS")
script = shared.V2PostTransactionScript(
    plain="vars { account $to  monetary $sum }\nsend $sum (source = @users:001 destination = $to)",
    vars={"to": "shops:1", "sum": {"asset": "USD/2", "amount": 2500}},
)
request = create(script=script)
request.dry_run = True
dry = call("v2_create_transaction", request).v2_create_transaction_response.data
request.dry_run, request.idempotency_key = False, "once"
made = call("v2_create_transaction", request).v2_create_transaction_response.data
same((dry.id, made.id, made.postings[0].amount), (1, 1, 2500), "script")
again = call("v2_create_transaction", request)
same(again.v2_create_transaction_response.data.id, 1, "the same key")
same(again.raw_response.headers["Idempotency-Hit"], "true", "the same key")
bad = shared.V2PostTransactionScript(plain="send nothing")
refused("v2_create_transaction", create(script=bad), 400, "COMPILATION_FAILED")

call("v2_add_metadata_to_account", operations.V2AddMetadataToAccountRequest(
    request_body={"tier": "gold", "note": "<&>"}, address="users:001", ledger=LEDGER), status=204)
call("v2_add_metadata_on_transaction", operations.V2AddMetadataOnTransactionRequest(
    id=0, ledger=LEDGER, request_body={"checked": "yes"}), status=204)
one = call("v2_get_transaction", operations.V2GetTransactionRequest(id=0, ledger=LEDGER, expand="volumes"))
one = one.v2_get_transaction_response.data
same(one.metadata, {"checked": "yes", "kind": "topup"}, "transaction")
same(one.post_commit_volumes["bank"]["COIN"].balance, LARGE, "transaction")
refused("v2_get_transaction", operations.V2GetTransactionRequest(id=99, ledger=LEDGER), 404, "NOT_FOUND")
refused("v2_get_transaction", operations.V2GetTransactionRequest(id=0, ledger="nosuch"), 404, "LEDGER_NOT_FOUND")

account = call("v2_get_account", operations.V2GetAccountRequest(address="users:001", ledger=LEDGER, expand="volumes"))
account = account.v2_account_response.data
same((account.address, account.metadata), ("users:001", {"note": "<&>", "tier": "gold"}), "account")
volumes = account.volumes["USD/2"]
same((volumes.input, volumes.output, volumes.balance), (10000, 2500, 7500), "account")
filtered = operations.V2ListAccountsRequest(ledger=LEDGER, request_body={"$match": {"address": "users:"}})
accounts = call("v2_list_accounts", filtered).v2_accounts_cursor_response.cursor
same([one.address for one in accounts.data], ["users:001"], "accounts by a filter")
pages, cursor = [], None
while True:
    page = call("v2_list_accounts", operations.V2ListAccountsRequest(ledger=LEDGER, page_size=1, cursor=cursor))
    page = page.v2_accounts_cursor_response.cursor
    pages += [one.address for one in page.data]
    if not page.has_more:
        break
    cursor = page.next
same(pages, ["bank", "shops:1", "users:001", "world"], "accounts by pages")
bad = operations.V2ListAccountsRequest(ledger=LEDGER, cursor="nonsense")
refused("v2_list_accounts", bad, 400, "VALIDATION")
counted = call("v2_count_accounts", operations.V2CountAccountsRequest(ledger=LEDGER, request_body={}), status=204)
same(counted.headers["Count"], "4", "count of accounts")
counted = operations.V2CountTransactionsRequest(ledger=LEDGER, request_body={"$match": {"metadata[kind]": "topup"}})
same(call("v2_count_transactions", counted, status=204).headers["Count"], "1", "count of transactions")

listed = operations.V2ListTransactionsRequest(ledger=LEDGER, request_body={"$match": {"account": "shops:1"}})
listed = call("v2_list_transactions", listed).v2_transactions_cursor_response.cursor
same([one.id for one in listed.data], [1], "transactions")
past = operations.V2ListTransactionsRequest(ledger=LEDGER, pit=DATE)
past = call("v2_list_transactions", past).v2_transactions_cursor_response.cursor
same([one.id for one in past.data], [0], "transactions at a date")

sums = operations.V2GetBalancesAggregatedRequest(ledger=LEDGER, request_body={"$match": {"address": "users:"}})
same(call("v2_get_balances_aggregated", sums).v2_aggregate_balances_response.data, {"USD/2": 7500}, "balances")
rows = operations.V2GetVolumesWithBalancesRequest(ledger=LEDGER, group_by=1)
rows = call("v2_get_volumes_with_balances", rows).v2_volumes_with_balance_cursor_response.cursor
same(sorted((row.account, row.asset, row.input, row.output, row.balance) for row in rows.data), [
    ("bank", "COIN", LARGE, 0, LARGE), ("shops", "USD/2", 2500, 0, 2500), ("users", "USD/2", 10000, 2500, 7500),
    ("world", "COIN", 0, LARGE, -LARGE), ("world", "USD/2", 0, 10000, -10000)], "volumes")

reverted = operations.V2RevertTransactionRequest(id=1, ledger=LEDGER, at_effective_date=False, force=False)
made = call("v2_revert_transaction", reverted, status=201).v2_revert_transaction_response.data
same((made.id, made.metadata), (2, {"com.formance.spec/state/reverts": "1"}), "revert")
refused("v2_revert_transaction", reverted, 400, "ALREADY_REVERT")

bulk = [
    shared.V2BulkElementCreateTransaction(action="CREATE_TRANSACTION", ik="b-1", data=shared.V2PostTransaction(
        metadata={}, postings=[posting("world", "users:002", 1)])),
    shared.V2BulkElementAddMetadata(action="ADD_METADATA", data=shared.V2BulkElementAddMetadataData(
        metadata={"a": "b"}, target_id="users:002", target_type=shared.V2TargetType.ACCOUNT)),
    shared.V2BulkElementAddMetadata(action="ADD_METADATA", data=shared.V2BulkElementAddMetadataData(
        metadata={"a": "b"}, target_id=3, target_type=shared.V2TargetType.TRANSACTION)),
    shared.V2BulkElementRevertTransaction(
        action="REVERT_TRANSACTION", data=shared.V2BulkElementRevertTransactionData(id=3)),
]
results = call("v2_create_bulk", operations.V2CreateBulkRequest(ledger=LEDGER, request_body=bulk))
results = results.v2_bulk_response.data
same([one.response_type for one in results],
     ["CREATE_TRANSACTION", "ADD_METADATA", "ADD_METADATA", "REVERT_TRANSACTION"], "bulk")
same((results[0].data.id, results[3].data.id), (3, 4), "bulk")
failing = [bulk[3]]
results = call("v2_create_bulk", operations.V2CreateBulkRequest(ledger=LEDGER, request_body=failing), status=400)
same([one.response_type for one in results.v2_bulk_response.data], ["ERROR"], "a failing bulk")
# This client takes every result without data for one of the kind that has only a type.
same(results.raw_response.json()["data"][0]["errorCode"], "ALREADY_REVERT", "a failing bulk")

# The enumeration of this client lacks DELETE_METADATA, so the list is read before there is one.
logs = call("v2_list_logs", operations.V2ListLogsRequest(ledger=LEDGER, page_size=100)).v2_logs_cursor_response.cursor
same([log.id for log in logs.data], list(range(len(logs.data) - 1, -1, -1)), "logs")
same(logs.data[-1].type, shared.V2LogType.NEW_TRANSACTION, "logs")
assert all(log.hash for log in logs.data)

call("v2_delete_account_metadata", operations.V2DeleteAccountMetadataRequest(
    address="users:001", key="tier", ledger=LEDGER), status=204)
call("v2_delete_transaction_metadata", operations.V2DeleteTransactionMetadataRequest(
    id=0, key="kind", ledger=LEDGER), status=204)
account = call("v2_get_account", operations.V2GetAccountRequest(address="users:001", ledger=LEDGER))
same(account.v2_account_response.data.metadata, {"note": "<&>"}, "account without a key")
stats = call("v2_read_stats", operations.V2ReadStatsRequest(ledger=LEDGER)).v2_stats_response.data
same((stats.transactions, stats.accounts), (5, 5), "stats")

every = {name for name in dir(client.ledger) if name.startswith("v2_")}
same(walked, every, "operations")
print(f"{len(walked)} operations walked")

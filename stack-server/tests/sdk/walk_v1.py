"""Walks through every operation of API v1 with the official Python client.

    python3 walk_v1.py http://127.0.0.1:8080

Needs the package `formance-sdk-python==1.0.20230915`, whose models are strict: an unknown word in an enumeration, a
status that is not in its document or a value of another type is an error there. Every operation must be called, and
what is compared are the client's typed results. An unknown transaction is not asked for: its 404 says `NOT_FOUND`, as
servers of that time did, which this client does not know. The server has to be empty.
"""
import sys
from datetime import datetime, timedelta, timezone

from sdk import SDK
from sdk.models import operations, shared

LEDGER = "walk"
DAY = datetime(2022, 5, 17, 6, 7, 8, tzinfo=timezone.utc)
BIG = 30 * 10**40 + 1
OPERATIONS = {
    "add_metadata_on_transaction", "add_metadata_to_account", "count_accounts", "count_transactions",
    "create_transaction", "create_transactions", "get_account", "get_balances", "get_balances_aggregated", "get_info",
    "get_ledger_info", "get_mapping", "get_transaction", "list_accounts", "list_logs", "list_transactions",
    "read_stats", "revert_transaction", "run_script", "update_mapping",
}


class Recorder:
    """The client's ledger operations, remembering which were called."""

    def __init__(self, ledger):
        self.ledger, self.called = ledger, set()

    def __getattr__(self, name):
        self.called.add(name)
        return getattr(self.ledger, name)


def same(have, want):
    assert have == want, f"\n  have {have!r}\n  want {want!r}"


def posting(source, destination, amount, asset="PLN/2"):
    return shared.Posting(source=source, destination=destination, amount=amount, asset=asset)


def volume(inputs, outputs):
    return shared.Volume(input=inputs, output=outputs, balance=inputs - outputs)


def ok(response, status, field):
    same(response.status_code, status)
    value = getattr(response, field)
    assert value is not None, response
    return value


def refused(response, status, code):
    same((response.status_code, response.error_response.error_code), (status, code))
    assert response.error_response.error_message
    return response.error_response


def walk(client):
    create = lambda **body: client.create_transaction(
        operations.CreateTransactionRequest(
            ledger=LEDGER, post_transaction=shared.PostTransaction(**body)))
    account = lambda address: ok(
        client.get_account(operations.GetAccountRequest(ledger=LEDGER, address=address)), 200, "account_response").data
    stats = lambda: ok(
        client.read_stats(operations.ReadStatsRequest(ledger=LEDGER)), 200, "stats_response").data
    transaction = lambda txid: client.get_transaction(operations.GetTransactionRequest(ledger=LEDGER, txid=txid))

    # The server, and a ledger that is not there yet.
    info = ok(client.get_info(), 200, "config_info_response").data
    assert info.version and info.server and isinstance(info.config.storage.ledgers, list), info
    same(stats(), shared.Stats(accounts=0, transactions=0))
    missing = ok(client.get_ledger_info(operations.GetLedgerInfoRequest(ledger=LEDGER)), 200, "ledger_info_response")
    same(missing.data.name, LEDGER)

    # A preview, and then the real one.
    wanted = {
        "postings": [posting("world", "users:ola", BIG), posting("users:ola", "fees:main", 25)],
        "reference": "first", "timestamp": DAY, "metadata": {"kind": "top-up", "n": {"deep": [1, None, True]}},
    }
    preview = client.create_transaction(operations.CreateTransactionRequest(
        ledger=LEDGER, post_transaction=shared.PostTransaction(**wanted), preview=True))
    previewed = ok(preview, 200, "transactions_response").data[0]
    same(stats(), shared.Stats(accounts=0, transactions=0))
    [first] = ok(create(**wanted), 200, "transactions_response").data
    same(first, previewed)
    same(first.txid, 0)
    same(first.postings, wanted["postings"])
    same((first.reference, first.timestamp, first.metadata), ("first", DAY, wanted["metadata"]))
    same(first.pre_commit_volumes["users:ola"], {"PLN/2": volume(0, 0)})
    same(first.post_commit_volumes["users:ola"], {"PLN/2": volume(BIG, 25)})
    same(first.post_commit_volumes["world"], {"PLN/2": volume(0, BIG)})
    same(ok(transaction(0), 200, "transaction_response").data, first)
    refused(create(**wanted), 409, shared.ErrorsEnum.CONFLICT)
    refused(create(postings=[posting("poor", "x", 1)]), 400, shared.ErrorsEnum.INSUFFICIENT_FUND)
    refused(create(postings=[posting("a b", "x", 1)]), 400, shared.ErrorsEnum.VALIDATION)

    # Scripts: in a create, and on their own route.
    plain = "vars { account $who monetary $sum portion $cut number $n }\n" \
        "send $sum (source = @world destination = { $cut to @fees:main remaining to $who })\nset_tx_meta(\"n\", $n)"
    values = {"who": "users:jan", "sum": {"asset": "PLN/2", "amount": 400}, "cut": "1/8", "n": 3}
    [second] = ok(create(script=shared.PostTransactionScript(plain=plain, vars=values), timestamp=DAY),
                  200, "transactions_response").data
    same(second.postings, [posting("world", "fees:main", 50), posting("world", "users:jan", 350)])
    same(second.metadata, {"n": "3"})
    fault = refused(create(script=shared.PostTransactionScript(plain="send [PLN/2 1")), 400,
                    shared.ErrorsEnum.COMPILATION_FAILED)
    assert fault.details.startswith("https://") and fault.error_message.startswith("[COMPILATION_FAILED] "), fault
    run = lambda **script: ok(client.run_script(operations.RunScriptRequest(
        ledger=LEDGER, script=shared.Script(**script))), 200, "script_response")
    third = run(plain=plain, vars={**values, "n": 4}, reference="script", metadata={"own": [1.5]})
    same((third.error_code, third.transaction.txid, third.transaction.reference), (None, 2, "script"))
    same(third.transaction.metadata, {"n": "4", "own": [1.5]})
    poor = run(plain="send [PLN/2 9] (source = @poor destination = @x)")
    same((poor.error_code, poor.error_message), (shared.ErrorsEnum.INSUFFICIENT_FUND, "account had insufficient funds"))
    same((poor.transaction.txid, poor.transaction.postings, poor.transaction.metadata), (0, [], {}))
    same(run(plain="").error_code, shared.ErrorsEnum.NO_SCRIPT)

    # A batch is one step.
    batch = lambda *bodies: client.create_transactions(operations.CreateTransactionsRequest(
        ledger=LEDGER, transactions=shared.Transactions(transactions=list(bodies))))
    element = lambda *postings, **others: shared.TransactionData(postings=list(postings), **others)
    both = ok(batch(element(posting("world", "pool", 7, "BTC"), reference="b1"),
                    element(posting("pool", "users:ola", 7, "BTC"), metadata={"a": 1})), 200, "transactions_response")
    same([one.txid for one in both.data], [3, 4])
    same(both.data[1].pre_commit_volumes["pool"], {"BTC": volume(7, 0)})
    refused(batch(element(posting("world", "pool", 1, "BTC")), element(posting("poor", "x", 1))), 400,
            shared.ErrorsEnum.INSUFFICIENT_FUND)
    same(stats(), shared.Stats(accounts=5, transactions=5))

    # Metadata.
    note = {"vip": True, "limits": {"day": 12, "names": ["é", "<b>"]}, "none": None}
    same(client.add_metadata_to_account(operations.AddMetadataToAccountRequest(
        ledger=LEDGER, address="users:ola", request_body=note)).status_code, 204)
    same(client.add_metadata_on_transaction(operations.AddMetadataOnTransactionRequest(
        ledger=LEDGER, txid=1, request_body={"checked": {"by": "ola"}})).status_code, 204)
    same(ok(transaction(1), 200, "transaction_response").data.metadata, {"n": "3", "checked": {"by": "ola"}})
    same(account("users:ola"), shared.AccountWithVolumesAndBalances(
        address="users:ola", metadata=note, balances={"BTC": 7, "PLN/2": BIG - 25},
        volumes={"BTC": {"input": 7, "output": 0, "balance": 7},
                 "PLN/2": {"input": BIG, "output": 25, "balance": BIG - 25}}))
    same(account("nobody"), shared.AccountWithVolumesAndBalances(
        address="nobody", metadata={}, balances={}, volumes={}))

    # The mapping: an account may go below zero.
    contract = shared.Contract(account="credit:*", expr={"$gte": ["$balance", -40]})
    free = shared.Contract(account="free", expr={})
    mapped = ok(client.update_mapping(operations.UpdateMappingRequest(
        ledger=LEDGER, mapping=shared.Mapping(contracts=[contract, free]))), 200, "mapping_response").data
    same(mapped.contracts, [contract, free])
    same(ok(client.get_mapping(operations.GetMappingRequest(ledger=LEDGER)), 200, "mapping_response").data, mapped)
    ok(create(postings=[posting("credit:1", "shop", 40)]), 200, "transactions_response")
    refused(create(postings=[posting("credit:1", "shop", 1)]), 400, shared.ErrorsEnum.INSUFFICIENT_FUND)

    # Reverts.
    revert = lambda txid, **others: client.revert_transaction(
        operations.RevertTransactionRequest(ledger=LEDGER, txid=txid, **others))
    reverse = ok(revert(2), 200, "transaction_response").data
    same(reverse.postings, [posting("users:jan", "world", 350), posting("fees:main", "world", 50)])
    same((reverse.reference, reverse.metadata["com.numary.spec/state/reverts"]), ("revert_script", "2"))
    marks = ok(transaction(2), 200, "transaction_response").data.metadata
    same(marks["com.numary.spec/state/reverted"], {"by": str(reverse.txid)})
    refused(revert(2), 400, shared.ErrorsEnum.VALIDATION)
    refused(revert(3), 400, shared.ErrorsEnum.INSUFFICIENT_FUND)
    same(ok(revert(3, disable_checks=True), 200, "transaction_response").data.post_commit_volumes["pool"],
         {"BTC": volume(7, 14)})

    # Lists: every page in both directions, filters, and the counts of the same filters.
    def pages(call, request, field, key):
        whole = [key(item) for item in ok(call(request(page_size=1000)), 200, field).cursor.data]
        page = ok(call(request(page_size=2)), 200, field).cursor
        assert page.previous is None
        seen, turns = [key(item) for item in page.data], 0
        while page.has_more:
            page = ok(call(request(cursor=page.next)), 200, field).cursor
            same(page.page_size, 2)
            seen += [key(item) for item in page.data]
            turns += 1
        assert page.next is None
        same(seen, whole)
        while page.previous:
            page = ok(call(request(cursor=page.previous)), 200, field).cursor
            turns -= 1
            same([key(item) for item in page.data], whole[2 * turns:2 * turns + 2])
        same(turns, 0)
        return whole

    accounts = lambda **query: operations.ListAccountsRequest(ledger=LEDGER, **query)
    names = pages(client.list_accounts, accounts, "accounts_cursor_response", lambda item: item.address)
    same(names, ["world", "users:ola", "users:jan", "shop", "pool", "fees:main", "credit:1"])
    listed = lambda **query: [item.address for item in ok(
        client.list_accounts(accounts(**query)), 200, "accounts_cursor_response").cursor.data]
    operator = operations.ListAccountsBalanceOperator
    same(listed(address="users:.*"), ["users:ola", "users:jan"])
    same(listed(metadata={"vip": "true"}), ["users:ola"])
    same(listed(balance=-40, balance_operator=operator.LTE), ["world", "credit:1"])
    same(listed(balance=40, balance_operator=operator.E), ["shop"])
    same(listed(after="shop", page_size=2), ["pool", "fees:main"])
    counted = client.count_accounts(operations.CountAccountsRequest(ledger=LEDGER, address="users:.*"))
    same((counted.status_code, counted.headers["Count"]), (200, "2"))
    refused(client.list_accounts(accounts(cursor="?")), 400, shared.ErrorsEnum.VALIDATION)

    transactions = lambda **query: operations.ListTransactionsRequest(ledger=LEDGER, **query)
    ids = pages(client.list_transactions, transactions, "transactions_cursor_response", lambda item: item.txid)
    same(ids, list(range(7, -1, -1)))
    found = lambda **query: [item.txid for item in ok(
        client.list_transactions(transactions(**query)), 200, "transactions_cursor_response").cursor.data]
    same(found(reference="b1"), [3])
    same(found(account="users:jan"), [6, 2, 1])
    same(found(source="world", destination="pool"), [3])
    same(found(start_time=DAY, end_time=DAY + timedelta(seconds=1)), [1, 0])
    same(found(metadata={"kind": "top-up"}), [0])
    counted = client.count_transactions(operations.CountTransactionsRequest(ledger=LEDGER, account="users:jan"))
    same((counted.status_code, counted.headers["Count"]), (200, "3"))

    logs = lambda **query: operations.ListLogsRequest(ledger=LEDGER, **query)
    entries = pages(client.list_logs, logs, "logs_cursor_response", lambda item: item.id)
    same(entries, list(range(9, -1, -1)))
    newest = ok(client.list_logs(logs(page_size=1000)), 200, "logs_cursor_response").cursor.data
    same({entry.type for entry in newest}, {shared.LogType.NEW_TRANSACTION, shared.LogType.SET_METADATA})
    assert all(len(entry.hash) == 64 for entry in newest) and len({entry.hash for entry in newest}) == 10
    same(newest[-1].data["reference"], "first")

    # Balances.
    balances = lambda **query: operations.GetBalancesRequest(ledger=LEDGER, **query)
    held = ok(client.get_balances(balances(address="users:.*")), 200, "balances_cursor_response").cursor
    same(held.data, [{"users:ola": {"BTC": 7, "PLN/2": BIG - 25}}, {"users:jan": {"PLN/2": 350}}])
    same(held.has_more, False)
    total = client.get_balances_aggregated(operations.GetBalancesAggregatedRequest(ledger=LEDGER))
    same(ok(total, 200, "aggregate_balances_response").data, {"BTC": 0, "PLN/2": 0})
    some = client.get_balances_aggregated(operations.GetBalancesAggregatedRequest(ledger=LEDGER, address="fees:.*"))
    same(ok(some, 200, "aggregate_balances_response").data, {"PLN/2": 75})

    # The ledger, now that it is there.
    ledger = ok(client.get_ledger_info(operations.GetLedgerInfoRequest(ledger=LEDGER)), 200, "ledger_info_response")
    [migration] = ledger.data.storage.migrations
    same((migration.version, migration.state), (1, shared.MigrationInfoState.DONE))
    assert abs(datetime.now(timezone.utc) - migration.date_) < timedelta(hours=1), migration
    assert LEDGER in ok(client.get_info(), 200, "config_info_response").data.config.storage.ledgers


def main():
    # A second argument is a token, for a server that asks for one.
    security = shared.Security(authorization=f"Bearer {sys.argv[2]}") if len(sys.argv) > 2 else None
    client = Recorder(SDK(security, server_url=sys.argv[1]).ledger)
    walk(client)
    same(client.called, OPERATIONS)
    print(f"{len(client.called)} operations walked")


main()

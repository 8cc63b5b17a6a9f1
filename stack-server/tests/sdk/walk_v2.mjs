// Walks through every operation of API v2 with the official SDK for TypeScript, and compares what it
// reads.
//
//     NODE_PATH=…/node_modules node walk_v2.mjs http://127.0.0.1:8080
//
// Needs the package `@formance/formance-sdk@2.7.0`. The server has to be empty.

import assert from "node:assert/strict";
import {createRequire} from "node:module";

// Modules of NODE_PATH are found by `require` alone.
const {SDK} = createRequire(import.meta.url)("@formance/formance-sdk");

const ledger = "walk";
const date = new Date("2024-05-01T10:00:00.120Z");
const walked = new Set();
// More arguments are a client and its secret, for a server that asks for tokens, and the address for tokens.
const [serverURL, clientID, clientSecret, tokenURL = "/api/auth/oauth/token"] = process.argv.slice(2);
const security = clientID ? {clientID, clientSecret, tokenURL} : undefined;
const client = new SDK({serverURL, security});

async function call(operation, request, status = 200) {
  walked.add(operation);
  const answer = request === undefined ? await client.ledger[operation]() : await client.ledger[operation](request);
  assert.equal(answer.statusCode, status, operation);
  return answer;
}

async function refused(operation, request, code) {
  await assert.rejects(client.ledger[operation](request), error => {
    assert.equal(error.errorCode, code, `${operation}: ${error}`);
    return true;
  });
}

const posting = (source, destination, amount, asset = "USD/2") => ({source, destination, amount, asset});
const create = transaction => ({ledger, v2PostTransaction: {metadata: {}, ...transaction}});

const info = (await call("v2GetInfo")).v2ConfigInfoResponse;
assert.deepEqual([info.server, info.version], ["ledger", "v2.0.0"]);

const made0 = {ledger, v2CreateLedgerRequest: {bucket: "eu", metadata: {env: "test"}}};
await call("v2CreateLedger", made0, 204);
await refused("v2CreateLedger", made0, "VALIDATION");
const ledgers = (await call("v2ListLedgers", {pageSize: 10})).v2LedgerListResponse.cursor;
assert.deepEqual(ledgers.data.map(one => one.name), [ledger]);
await call("v2UpdateLedgerMetadata", {ledger, requestBody: {owner: "me", env: "walk"}}, 204);
await call("v2DeleteLedgerMetadata", {ledger, key: "owner"}, 204);
const read = (await call("v2GetLedger", {ledger})).v2GetLedgerResponse.data;
assert.deepEqual([read.name, read.bucket, read.metadata], [ledger, "eu", {env: "walk"}]);
const ledgerInfo = (await call("v2GetLedgerInfo", {ledger})).v2LedgerInfoResponse.data;
assert.deepEqual([ledgerInfo.name, ledgerInfo.storage.migrations], [ledger, []]);

const topup = create({
  postings: [posting("world", "users:001", 10000n), posting("world", "bank", 9007199254740991n, "COIN")],
  reference: "topup-1", metadata: {kind: "topup"}, timestamp: date,
});
let made = (await call("v2CreateTransaction", topup)).v2CreateTransactionResponse.data;
assert.deepEqual([made.id, made.reference, made.reverted, made.timestamp], [0n, "topup-1", false, date]);
assert.equal(made.postings[1].amount, 9007199254740991n);
await refused("v2CreateTransaction", topup, "CONFLICT");
await refused("v2CreateTransaction", create({postings: [posting("users:001", "bank", 10001n)]}), "INSUFFICIENT_FUND");
await refused("v2CreateTransaction", create({postings: []}), "NO_POSTINGS");
await refused("v2CreateTransaction", create({script: {plain: "send nothing"}}), "COMPILATION_FAILED");
const scripted = create({script: {
  plain: "vars { account $to  monetary $sum }\nsend $sum (source = @users:001 destination = $to)",
  vars: {to: "shops:1", sum: {asset: "USD/2", amount: 2500}},
}});
const dry = (await call("v2CreateTransaction", {...scripted, dryRun: true})).v2CreateTransactionResponse.data;
made = (await call("v2CreateTransaction", {...scripted, idempotencyKey: "once"})).v2CreateTransactionResponse.data;
assert.deepEqual([dry.id, made.id, made.postings[0].amount], [1n, 1n, 2500n]);
const again = await call("v2CreateTransaction", {...scripted, idempotencyKey: "once"});
assert.equal(again.v2CreateTransactionResponse.data.id, 1n);
assert.equal(again.rawResponse.headers.get("Idempotency-Hit"), "true");

await call("v2AddMetadataToAccount",
  {ledger, address: "users:001", requestBody: {tier: "gold", note: "<&>"}}, 204);
await call("v2AddMetadataOnTransaction", {ledger, id: 0n, requestBody: {checked: "yes"}}, 204);
const one = (await call("v2GetTransaction", {ledger, id: 0n, expand: "volumes"})).v2GetTransactionResponse.data;
assert.deepEqual(one.metadata, {checked: "yes", kind: "topup"});
assert.equal(one.postCommitVolumes.bank.COIN.balance, 9007199254740991n);
await refused("v2GetTransaction", {ledger, id: 99n}, "NOT_FOUND");
await refused("v2GetTransaction", {ledger: "nosuch", id: 0n}, "LEDGER_NOT_FOUND");

const account = (await call("v2GetAccount", {ledger, address: "users:001", expand: "volumes"})).v2AccountResponse.data;
assert.deepEqual([account.address, account.metadata], ["users:001", {note: "<&>", tier: "gold"}]);
assert.deepEqual({...account.volumes["USD/2"]}, {input: 10000n, output: 2500n, balance: 7500n});
const filtered = await call("v2ListAccounts", {ledger, query: {$match: {address: "users:"}}});
assert.deepEqual(filtered.v2AccountsCursorResponse.cursor.data.map(one => one.address), ["users:001"]);
const pages = [];
for (let cursor, more = true; more;) {
  const page = (await call("v2ListAccounts", {ledger, pageSize: 1, cursor})).v2AccountsCursorResponse.cursor;
  pages.push(...page.data.map(one => one.address));
  [cursor, more] = [page.next, page.hasMore];
}
assert.deepEqual(pages, ["bank", "shops:1", "users:001", "world"]);
await refused("v2ListAccounts", {ledger, cursor: "nonsense"}, "VALIDATION");
const accounts = await call("v2CountAccounts", {ledger}, 204);
assert.deepEqual(accounts.headers.count, ["4"]);
const counted = await call("v2CountTransactions", {ledger, query: {$match: {"metadata[kind]": "topup"}}}, 204);
assert.deepEqual(counted.headers.count, ["1"]);

const listed = await call("v2ListTransactions", {ledger, query: {$match: {account: "shops:1"}}});
assert.deepEqual(listed.v2TransactionsCursorResponse.cursor.data.map(one => one.id), [1n]);
const past = await call("v2ListTransactions", {ledger, pit: date});
assert.deepEqual(past.v2TransactionsCursorResponse.cursor.data.map(one => one.id), [0n]);
const sums = await call("v2GetBalancesAggregated", {ledger, query: {$match: {address: "users:"}}});
assert.deepEqual({...sums.v2AggregateBalancesResponse.data}, {"USD/2": 7500n});
const rows = (await call("v2GetVolumesWithBalances", {ledger, groupBy: 1, query: {$match: {account: "users:"}}}))
  .v2VolumesWithBalanceCursorResponse.cursor.data;
assert.deepEqual(rows.map(row => [row.account, row.asset, row.input, row.output, row.balance]),
  [["users", "USD/2", 10000n, 2500n, 7500n]]);

made = (await call("v2RevertTransaction", {ledger, id: 1n}, 201)).v2RevertTransactionResponse.data;
assert.deepEqual([made.id, {...made.metadata}], [2n, {"com.formance.spec/state/reverts": "1"}]);
await refused("v2RevertTransaction", {ledger, id: 1n}, "ALREADY_REVERT");

const bulk = [
  {action: "CREATE_TRANSACTION", ik: "b-1", data: {metadata: {}, postings: [posting("world", "users:002", 1n)]}},
  {action: "ADD_METADATA", data: {metadata: {a: "b"}, targetId: "users:002", targetType: "ACCOUNT"}},
  {action: "ADD_METADATA", data: {metadata: {a: "b"}, targetId: 3n, targetType: "TRANSACTION"}},
  {action: "DELETE_METADATA", data: {key: "a", targetId: 3n, targetType: "TRANSACTION"}},
  {action: "REVERT_TRANSACTION", data: {id: 3n}},
];
const results = (await call("v2CreateBulk", {ledger, requestBody: bulk})).v2BulkResponse.data;
assert.deepEqual(results.map(one => one.responseType),
  ["CREATE_TRANSACTION", "ADD_METADATA", "ADD_METADATA", "DELETE_METADATA", "REVERT_TRANSACTION"]);
assert.deepEqual([results[0].data.id, results[4].data.id], [3n, 4n]);
const failed = (await call("v2CreateBulk", {ledger, requestBody: [bulk[4]]}, 400)).v2BulkResponse.data[0];
assert.deepEqual([failed.responseType, failed.errorCode], ["ERROR", "ALREADY_REVERT"]);

await call("v2DeleteAccountMetadata", {ledger, address: "users:001", key: "tier"}, 204);
await call("v2DeleteTransactionMetadata", {ledger, id: 0n, key: "kind"}, 204);
const stats = (await call("v2ReadStats", {ledger})).v2StatsResponse.data;
assert.deepEqual([Number(stats.transactions), Number(stats.accounts)], [5, 5]);

// The enumeration of this client lacks DELETE_METADATA: the page ends before the first of them.
const logs = (await call("v2ListLogs", {ledger, pageSize: 2, query: {$lt: {date: "2000-01-01T00:00:00Z"}}}))
  .v2LogsCursorResponse.cursor;
assert.deepEqual([logs.data, logs.hasMore], [[], false]);

const every = Object.getOwnPropertyNames(Object.getPrototypeOf(client.ledger)).filter(name => name.startsWith("v2"));
assert.deepEqual([...walked].sort(), every.sort());
console.log(`${walked.size} operations walked`);

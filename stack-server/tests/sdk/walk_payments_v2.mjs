// Walks through every operation of the payments API with the official SDK for TypeScript, and compares what it reads.
//
//     NODE_PATH=…/node_modules node walk_payments_v2.mjs http://127.0.0.1:8080
//
// Needs the package `@formance/formance-sdk@2.7.0` and an empty server, which reaches a provider in the place of STRIPE
// that accepts transfers. The client refuses every catalogue of configurations without a connector named `connector`,
// and every task in a state other than those of payments: the walk expects the first, and asks for tasks where there are
// none.

import assert from "node:assert/strict";
import {randomUUID} from "node:crypto";
import {mkdtempSync, rmSync} from "node:fs";
import {createRequire} from "node:module";
import {tmpdir} from "node:os";
import {join} from "node:path";

// Modules of NODE_PATH are found by `require` alone.
const {SDK} = createRequire(import.meta.url)("@formance/formance-sdk");

const date = new Date("2024-05-01T10:00:00.120Z");
const walked = new Set();
// More arguments are a client and its secret, for a server that asks for tokens, and the address for tokens.
const [serverURL, clientID, clientSecret, tokenURL = "/api/auth/oauth/token"] = process.argv.slice(2);
const security = clientID ? {clientID, clientSecret, tokenURL} : undefined;
const client = new SDK({serverURL, security}).payments;

async function call(operation, request, status = 200) {
  walked.add(operation);
  const answer = request === undefined ? await client[operation]() : await client[operation](request);
  assert.equal(answer.statusCode, status, operation);
  return answer;
}

async function refused(operation, request, code) {
  walked.add(operation);
  await assert.rejects(client[operation](request), error => {
    assert.equal(error.errorCode, code, `${operation}: ${error}`);
    return true;
  });
}

// Repeats until something holds; a connector works meanwhile.
async function until(what, condition) {
  const deadline = Date.now() + 30_000;
  while (!(await condition())) {
    assert.ok(Date.now() < deadline, what);
    await new Promise(resolve => setTimeout(resolve, 50));
  }
}

assert.ok((await call("paymentsgetServerInfo")).serverInfo.version);
await assert.rejects(call("listConfigsAvailableConnectors"));

// Connectors.
const generic = "GENERIC";
const byHand = {connector: generic, connectorConfig: {name: "manual", apiKey: "", endpoint: "", pollingPeriod: "120s"}};
const manual = (await call("installConnector", byHand, 201)).connectorResponse.data.connectorID;
await refused("installConnector", byHand, "VALIDATION");
const connectors = (await call("listAllConnectors")).connectorsResponse.data;
assert.deepEqual(connectors.map(one => [one.connectorID, one.name, one.provider]), [[manual, "manual", generic]]);
let config = (await call("readConnectorConfig", {connector: generic})).connectorConfigResponse.data;
assert.equal(config.name, "manual");
const changed = {...byHand, connectorId: manual,
  connectorConfig: {name: "by hand", apiKey: "", endpoint: "", pollingPeriod: "60s"}};
await call("updateConnectorConfigV1", changed, 204);
const one = {connector: generic, connectorId: manual};
config = (await call("readConnectorConfigV1", one)).connectorConfigResponse.data;
assert.deepEqual([config.name, config.pollingPeriod], ["by hand", "1m0s"]);
assert.deepEqual((await call("listConnectorTasks", {connector: generic})).tasksCursor.cursor.data, []);
assert.equal((await call("listConnectorTasksV1", {...one, pageSize: 10})).tasksCursor.cursor.hasMore, false);
await refused("getConnectorTask", {connector: generic, taskId: randomUUID()}, "NOT_FOUND");
await refused("getConnectorTaskV1", {...one, taskId: randomUUID()}, "NOT_FOUND");

// Accounts and payments by hand.
async function account(connectorID, reference, type) {
  const request = {connectorID, createdAt: date, reference, type, accountName: `the ${reference}`,
    defaultAsset: "EUR/2", metadata: {k: "v"}};
  return (await call("createAccount", request)).paymentsAccountResponse.data;
}
const till = await account(manual, "till", "INTERNAL");
const customer = await account(manual, "customer", "EXTERNAL");
assert.deepEqual([till.reference, till.accountName, till.defaultAsset], ["till", "the till", "EUR/2"]);
let accounts = (await call("paymentslistAccounts", {pageSize: 1, sort: ["reference:asc"]})).accountsCursor.cursor;
assert.deepEqual([accounts.data.map(one => one.id), accounts.hasMore], [[customer.id], true]);
accounts = (await call("paymentslistAccounts", {cursor: accounts.next})).accountsCursor.cursor;
assert.deepEqual(accounts.data.map(one => one.id), [till.id]);
const read = (await call("paymentsgetAccount", {accountId: till.id})).paymentsAccountResponse.data;
assert.deepEqual([read.id, read.createdAt, read.metadata], [till.id, date, {k: "v"}]);
assert.deepEqual((await call("getAccountBalances", {accountId: till.id, limit: 1})).balancesCursor.cursor.data, []);

const payment = (reference, amount) => ({connectorID: manual, createdAt: date, reference, amount, asset: "EUR/2",
  scheme: "visa", status: "SUCCEEDED", type: "PAY-IN", sourceAccountID: customer.id, destinationAccountID: till.id});
const made = (await call("createPayment", payment("sale-1", 9007199254740991n))).paymentResponse.data;
assert.deepEqual([made.reference, made.amount, made.initialAmount], ["sale-1", 9007199254740991n, 9007199254740991n]);
await call("createPayment", payment("sale-2", 7n));
await call("updateMetadata", {paymentId: made.id, requestBody: {order: "77"}}, 204);
const paid = (await call("getPayment", {paymentId: made.id})).paymentResponse.data;
assert.deepEqual([paid.metadata, paid.adjustments, paid.createdAt], [{order: "77"}, [], date]);
assert.deepEqual([paid.sourceAccountID, paid.destinationAccountID], [customer.id, till.id]);
const large = {query: '{"$gte": {"amount": 8}}', sort: ["amount:desc"]};
assert.deepEqual((await call("listPayments", large)).paymentsCursor.cursor.data.map(one => one.id), [made.id]);
await refused("listPayments", {sort: ["nothing:asc"]}, "VALIDATION");

// Pools.
const pool = (await call("createPool", {name: "treasury", accountIDs: [till.id]})).poolResponse.data;
await call("addAccountToPool", {poolId: pool.id, addAccountToPoolRequest: {accountID: customer.id}}, 204);
const members = (await call("getPool", {poolId: pool.id})).poolResponse.data;
assert.deepEqual([members.name, [...members.accounts].sort()], ["treasury", [till.id, customer.id].sort()]);
await call("removeAccountFromPool", {poolId: pool.id, accountId: customer.id}, 204);
const pools = (await call("listPools", {pageSize: 10})).poolsCursor.cursor.data;
assert.deepEqual(pools.map(one => one.accounts), [[till.id]]);
assert.deepEqual((await call("getPoolBalances", {poolId: pool.id, at: date})).poolBalancesResponse.data.balances, []);
await call("deletePool", {poolId: pool.id}, 204);

// Bank accounts.
const payroll = {connectorID: "", country: "FR", name: "Payroll", iban: "FR7630006000011234567890189",
  accountNumber: "12345789"};
const bank = (await call("createBankAccount", payroll)).bankAccountResponse.data;
assert.deepEqual([bank.name, bank.iban, bank.accountNumber], ["Payroll", undefined, undefined]);
const bankAccountId = bank.id;
const owner = {bankAccountId, updateBankAccountMetadataRequest: {metadata: {owner: "ops"}}};
await call("updateBankAccountMetadata", owner, 204);
const shown = (await call("getBankAccount", {bankAccountId})).bankAccountResponse.data;
assert.deepEqual([shown.iban.slice(0, 4), shown.accountNumber, shown.metadata], ["FR76", "12***789", {owner: "ops"}]);
const banks = (await call("listBankAccounts", {pageSize: 10})).bankAccountsCursor.cursor.data;
assert.deepEqual(banks.map(one => one.id), [bank.id]);
await refused("forwardBankAccount", {bankAccountId, forwardBankAccountRequest: {connectorID: manual}}, "VALIDATION");

// Money that is moved.
const stripeConfig = {name: "stripe", apiKey: "sk_test_walk", pollingPeriod: "1s", pageSize: 10};
const installed = await call("installConnector", {connector: "STRIPE", connectorConfig: stripeConfig}, 201);
const stripe = installed.connectorResponse.data.connectorID;
const shop = await account(stripe, "acct_shop", "INTERNAL");
const initiations = [];
for (const reference of ["ti-0", "ti-1", "ti-2"]) {
  const request = {amount: 500n, asset: "EUR/2", description: "rent", destinationAccountID: shop.id, reference,
    scheduledAt: new Date("0001-01-01T00:00:00Z"), sourceAccountID: "", type: "TRANSFER", validated: false,
    connectorID: stripe, metadata: {k: "v"}};
  initiations.push((await call("createTransferInitiation", request)).transferInitiationResponse.data);
}
const [first, second, third] = initiations.map(one => one.id);
const status = async transferId =>
  (await call("getTransferInitiation", {transferId})).transferInitiationResponse.data.status;
const setStatus = (transferId, status) => ({transferId, updateTransferInitiationStatusRequest: {status}});
assert.equal(await status(first), "WAITING_FOR_VALIDATION");
await call("udpateTransferInitiationStatus", setStatus(first, "VALIDATED"), 204);
await until("the transfer is made", async () => (await status(first)) === "PROCESSED");
const reversal = {amount: 200n, asset: "EUR/2", description: "too much", metadata: {}, reference: "re-1"};
await call("reverseTransferInitiation", {transferId: first, reverseTransferInitiationRequest: reversal}, 204);
await until("the transfer is reversed in part", async () => (await status(first)) === "PARTIALLY_REVERSED");
await call("udpateTransferInitiationStatus", setStatus(second, "REJECTED"), 204);
await refused("retryTransferInitiation", {transferId: second}, "VALIDATION");
await call("deleteTransferInitiation", {transferId: third}, 204);
const listed = await call("listTransferInitiations", {pageSize: 10, sort: ["reference:asc"]});
const left = listed.transferInitiationsCursor.cursor.data;
assert.deepEqual(left.map(one => [one.reference, one.amount]), [["ti-0", 300n], ["ti-1", 500n]]);
const transfer = {amount: 100n, asset: "EUR/2", destination: "acct_shop"};
const moved = await call("connectorsTransfer", {connector: "STRIPE", transferRequest: transfer});
assert.ok(moved.transferResponse.id);

// Files, and the end.
const connector = "DUMMY-PAY";
const directory = mkdtempSync(join(tmpdir(), "walk-"));
try {
  const files = {name: "files", directory, filePollingPeriod: "1s", numberOfPaymentsPreGenerated: 3};
  const installed = await call("installConnector", {connector, connectorConfig: files}, 201);
  const connectorId = installed.connectorResponse.data.connectorID;
  const mine = {query: JSON.stringify({$match: {connectorID: connectorId}})};
  const count = async () => (await call("listPayments", mine)).paymentsCursor.cursor.data.length;
  await until("generated payments", async () => (await count()) === 3);
  await call("resetConnectorV1", {connector, connectorId}, 204);
  assert.equal(await count(), 0);
  await call("resetConnector", {connector}, 204);
  await call("uninstallConnector", {connector}, 204);
} finally {
  rmSync(directory, {recursive: true});
}
await call("uninstallConnectorV1", {connector: "STRIPE", connectorId: stripe}, 204);
await refused("uninstallConnectorV1", {connector: "STRIPE", connectorId: stripe}, "VALIDATION");

const known = Object.getOwnPropertyNames(Object.getPrototypeOf(client)).filter(name => name !== "constructor");
assert.deepEqual(known.filter(name => !walked.has(name)), []);
console.log(`${walked.size} operations walked`);

// Walks through every operation of API v1 with the official TypeScript client.
//
//     NODE_PATH=…/node_modules node walk_v1.cjs http://127.0.0.1:8080
//
// Needs the package `@formance/formance-sdk@2.7.0`, whose schemas are strict: `null` for an optional field, an unknown
// word or a status that is not in its document throws. It escapes colons in paths and sends a page size beside every
// cursor. The server has to be empty.
"use strict";
const assert = require("node:assert/strict");
const { SDK } = require("@formance/formance-sdk");

const LEDGER = "walk";
const DAY = new Date("2022-05-17T06:07:08Z");
const OPERATIONS = [
  "addMetadataOnTransaction", "addMetadataToAccount", "countAccounts", "countTransactions", "createTransaction",
  "createTransactions", "getAccount", "getBalances", "getBalancesAggregated", "getInfo", "getLedgerInfo", "getMapping",
  "getTransaction", "listAccounts", "listLogs", "listTransactions", "readStats", "revertTransaction", "runScript",
  "updateMapping",
];

// More arguments are a client and its secret, for a server that asks for tokens, and the address for tokens.
const [serverURL, clientID, clientSecret, tokenURL = "/api/auth/oauth/token"] = process.argv.slice(2);
const security = clientID ? { clientID, clientSecret, tokenURL } : undefined;
const client = new SDK({ serverURL, security }).ledger;
const called = new Set();
async function call(name, request = {}) {
  called.add(name);
  const asked = name === "getInfo" ? client.getInfo() : client[name]({ ledger: LEDGER, ...request });
  const { rawResponse, ...answer } = await asked;
  return numbers(answer);
}

// The client has integers in two types; the ones here are small enough for either.
function numbers(value) {
  if (typeof value === "bigint") return Number(value);
  if (Array.isArray(value)) return value.map(numbers);
  if (value === null || typeof value !== "object" || value instanceof Date) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, numbers(member)]));
}

async function refused(code, name, request) {
  await assert.rejects(call(name, request), (fault) => {
    assert.equal(fault.errorCode, code, fault);
    assert.ok(fault.errorMessage);
    return true;
  });
}

const posting = (source, destination, amount, asset = "PLN/2") => ({ source, destination, amount: BigInt(amount), asset });
const create = async (postTransaction, preview) =>
  (await call("createTransaction", { postTransaction, preview })).transactionsResponse.data;
const stats = async () => (await call("readStats")).statsResponse.data;
const read = async (txid) => (await call("getTransaction", { txid: BigInt(txid) })).transactionResponse.data;

// Every page forwards, and back again, is the whole list.
async function pages(name, field, key) {
  const whole = (await call(name, { pageSize: 1000 }))[field].cursor.data.map(key);
  let page = (await call(name, { pageSize: 2 }))[field].cursor;
  assert.equal(page.previous, undefined);
  const seen = page.data.map(key);
  let turns = 0;
  while (page.hasMore) {
    page = (await call(name, { cursor: page.next }))[field].cursor;
    assert.equal(page.pageSize, 2);
    seen.push(...page.data.map(key));
    turns += 1;
  }
  assert.equal(page.next, undefined);
  assert.deepEqual(seen, whole);
  while (page.previous) {
    page = (await call(name, { cursor: page.previous }))[field].cursor;
    turns -= 1;
    assert.deepEqual(page.data.map(key), whole.slice(2 * turns, 2 * turns + 2));
  }
  assert.equal(turns, 0);
  return whole;
}

async function walk() {
  const info = (await call("getInfo")).configInfoResponse.data;
  assert.ok(info.server && info.version && Array.isArray(info.config.storage.ledgers));
  assert.deepEqual(await stats(), { accounts: 0, transactions: 0 });
  assert.equal((await call("getLedgerInfo")).ledgerInfoResponse.data.name, LEDGER);
  assert.deepEqual((await call("getMapping")).mappingResponse.data, { contracts: [] });

  const wanted = {
    postings: [posting("world", "users:ola", 2 ** 40), posting("users:ola", "fees:main", 25)],
    reference: "first", timestamp: DAY, metadata: { kind: "top-up", n: { deep: [1, null, true] } },
  };
  const [previewed] = await create(wanted, true);
  assert.deepEqual(await stats(), { accounts: 0, transactions: 0 });
  const [first] = await create(wanted);
  assert.deepEqual(first, previewed);
  assert.equal(first.txid, 0);
  assert.deepEqual([first.timestamp, first.reference, first.metadata], [DAY, "first", wanted.metadata]);
  assert.deepEqual(first.preCommitVolumes["users:ola"]["PLN/2"], { input: 0, output: 0, balance: 0 });
  const after = { input: 2 ** 40, output: 25, balance: 2 ** 40 - 25 };
  assert.deepEqual(first.postCommitVolumes["users:ola"]["PLN/2"], after);
  assert.deepEqual(await read(0), first);
  await refused("CONFLICT", "createTransaction", { postTransaction: wanted });
  await refused("INSUFFICIENT_FUND", "createTransaction", { postTransaction: { postings: [posting("a", "b", 1)] } });
  await refused("VALIDATION", "createTransaction", { postTransaction: { postings: [posting("a b", "b", 1)] } });
  await refused("NOT_FOUND", "getTransaction", { txid: 77n });

  const plain = "vars { account $who monetary $sum number $n }\n" +
    'send $sum (source = @world destination = $who)\nset_tx_meta("n", $n)';
  const vars = { who: "users:jan", sum: { asset: "PLN/2", amount: 400 }, n: 3 };
  const [second] = await create({ script: { plain, vars }, timestamp: DAY });
  assert.deepEqual(second.postings, numbers([posting("world", "users:jan", 400)]));
  assert.equal(second.reference, undefined);
  await refused("COMPILATION_FAILED", "createTransaction", { postTransaction: { script: { plain: "send [" } } });
  const run = async (script) => (await call("runScript", { script })).scriptResponse;
  const third = await run({ plain, vars, reference: "script", metadata: { own: [1.5] } });
  assert.deepEqual([third.errorCode, third.transaction.txid], [undefined, 2]);
  assert.deepEqual(third.transaction.metadata, { n: "3", own: [1.5] });
  const poor = await run({ plain: "send [PLN/2 9] (source = @poor destination = @x)" });
  assert.deepEqual([poor.errorCode, poor.errorMessage], ["INSUFFICIENT_FUND", "account had insufficient funds"]);
  assert.deepEqual([poor.transaction.txid, poor.transaction.postings], [0, []]);

  const batch = (...transactions) => ({ transactions: { transactions } });
  const both = await call("createTransactions", batch(
    { postings: [posting("world", "pool", 7, "BTC")], reference: "b1" },
    { postings: [posting("pool", "users:ola", 7, "BTC")], metadata: { a: 1 } }));
  assert.deepEqual(both.transactionsResponse.data.map((one) => one.txid), [3, 4]);
  await refused("INSUFFICIENT_FUND", "createTransactions", batch({ postings: [posting("poor", "x", 1)] }));

  const note = { vip: true, limits: { day: 12, names: ["é", "<b>"] } };
  assert.equal((await call("addMetadataToAccount", { address: "users:ola", requestBody: note })).statusCode, 204);
  assert.equal((await call("addMetadataOnTransaction", { txid: 1n, requestBody: { checked: true } })).statusCode, 204);
  assert.deepEqual((await read(1)).metadata, { n: "3", checked: true });
  const account = (await call("getAccount", { address: "users:ola" })).accountResponse.data;
  assert.deepEqual([account.address, account.metadata], ["users:ola", note]);
  assert.deepEqual(account.balances, { BTC: 7, "PLN/2": 2 ** 40 - 25 });
  const nobody = (await call("getAccount", { address: "no:body" })).accountResponse.data;
  assert.deepEqual([nobody.metadata, nobody.balances, nobody.volumes], [{}, {}, {}]);

  // This client sends every expression as `{}`: a contract without effect.
  const contracts = [{ account: "credit:*", expr: {} }];
  const mapped = (await call("updateMapping", { mapping: { contracts } })).mappingResponse.data;
  assert.deepEqual(mapped.contracts.map((one) => one.account), ["credit:*"]);
  assert.deepEqual((await call("getMapping")).mappingResponse.data, mapped);

  const revert = async (txid, disableChecks) =>
    (await call("revertTransaction", { txid: BigInt(txid), disableChecks })).transactionResponse.data;
  const reverse = await revert(2);
  assert.deepEqual(reverse.postings, numbers([posting("users:jan", "world", 400)]));
  assert.equal(reverse.reference, "revert_script");
  await refused("VALIDATION", "revertTransaction", { txid: 2n });
  await refused("INSUFFICIENT_FUND", "revertTransaction", { txid: 3n });
  assert.equal((await revert(3, true)).txid, 6);

  const names = await pages("listAccounts", "accountsCursorResponse", (item) => item.address);
  assert.deepEqual(names, ["world", "users:ola", "users:jan", "pool", "fees:main"]);
  const listed = async (query) =>
    (await call("listAccounts", query)).accountsCursorResponse.cursor.data.map((item) => item.address);
  assert.deepEqual(await listed({ address: "users:.*" }), ["users:ola", "users:jan"]);
  assert.deepEqual(await listed({ metadata: { vip: "true" } }), ["users:ola"]);
  assert.deepEqual(await listed({ balance: 8 }), ["users:ola", "users:jan", "fees:main"]);
  assert.deepEqual((await call("countAccounts", { address: "users:.*" })).headers.count, ["2"]);
  const ids = await pages("listTransactions", "transactionsCursorResponse", (item) => item.txid);
  assert.deepEqual(ids, [6, 5, 4, 3, 2, 1, 0]);
  const found = async (query) =>
    (await call("listTransactions", query)).transactionsCursorResponse.cursor.data.map((item) => item.txid);
  assert.deepEqual(await found({ account: "users:jan" }), [5, 2, 1]);
  assert.deepEqual(await found({ startTime: DAY, endTime: new Date(DAY.getTime() + 1000) }), [1, 0]);
  assert.deepEqual((await call("countTransactions", { reference: "b1" })).headers.count, ["1"]);
  await refused("VALIDATION", "listTransactions", { cursor: "?" });
  const logs = await pages("listLogs", "logsCursorResponse", (item) => item.id);
  assert.deepEqual(logs, [8, 7, 6, 5, 4, 3, 2, 1, 0]);
  const held = (await call("getBalances", { address: "users:.*" })).balancesCursorResponse.cursor.data;
  assert.deepEqual(held, [{ "users:ola": account.balances }, { "users:jan": { "PLN/2": 400 } }]);
  const total = (await call("getBalancesAggregated", {})).aggregateBalancesResponse.data;
  assert.deepEqual(total, { BTC: 0, "PLN/2": 0 });
  const [migration] = (await call("getLedgerInfo")).ledgerInfoResponse.data.storage.migrations;
  assert.deepEqual([migration.version, migration.state], [1, "DONE"]);

  assert.deepEqual([...called].sort(), OPERATIONS);
  console.log(`${called.size} operations walked`);
}

walk().catch((fault) => {
  console.error(fault);
  process.exit(1);
});

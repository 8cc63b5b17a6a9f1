// Reads and writes with the official SDK for TypeScript, which gets a token that only reads, and then one that writes.
//
//     NODE_PATH=…/node_modules node scopes.mjs http://127.0.0.1:8080 CLIENT SECRET READING WRITING
//
// READING and WRITING are addresses for tokens, with the scopes in their query: this client asks for none by itself. Needs
// the package `@formance/formance-sdk@2.7.0` and an empty server that checks scopes. This client reads an error from the
// body, and a 401 has none: the status is taken from the connection.

import assert from "node:assert/strict";
import {createRequire} from "node:module";

// Modules of NODE_PATH are found by `require` alone.
const require = createRequire(import.meta.url);
const {SDK} = require("@formance/formance-sdk");
const {HTTPClient} = require("@formance/formance-sdk/lib/http.js");

const ledger = "scopes";
const [serverURL, clientID, clientSecret, reading, writing] = process.argv.slice(2);
const walked = new Set();

function clientOf(tokenURL) {
  const statuses = [];
  const httpClient = new HTTPClient();
  httpClient.addHook("response", answer => {
    if (!answer.url.includes("/oauth/token")) statuses.push(answer.status);
  });
  return {sdk: new SDK({serverURL, httpClient, security: {clientID, clientSecret, tokenURL}}), statuses};
}

async function call({sdk, statuses}, service, operation, request, status = 200) {
  walked.add(operation);
  const before = statuses.length;
  const answer = await (request === undefined ? sdk[service][operation]() : sdk[service][operation](request))
    .catch(error => assert.equal(status, 401, `${operation}: ${error}`));
  assert.deepEqual(statuses.slice(before), [status], operation);
  return answer;
}

const [reader, writer] = [reading, writing].map(clientOf);
const postings = [{source: "world", destination: "shop", amount: 7n, asset: "EUR/2"}];
const writes = [
  ["ledger", "v2CreateLedger", {ledger, v2CreateLedgerRequest: {}}, 204],
  ["ledger", "v2CreateTransaction", {ledger, v2PostTransaction: {metadata: {}, postings}}, 200],
  ["ledger", "createTransaction", {ledger, postTransaction: {postings}}, 200],
  ["auth", "createClient", {name: "shop"}, 201],
  ["payments", "createBankAccount", {connectorID: "", country: "FR", name: "Payroll", iban: "FR7630006000011234567890189"}, 200],
];
for (const [service, operation, request] of writes) await call(reader, service, operation, request, 401);
for (const count of [0, 1]) {
  const ledgers = (await call(reader, "ledger", "v2ListLedgers", {})).v2LedgerListResponse.cursor.data;
  const clients = (await call(reader, "auth", "listClients")).listClientsResponse.data;
  const accounts = (await call(reader, "payments", "listBankAccounts", {})).bankAccountsCursor.cursor.data;
  assert.deepEqual([ledgers.length, clients.length, accounts.length], [count, count, count]);
  if (count === 0) for (const one of writes) await call(writer, ...one);
}
console.log(`${walked.size} operations walked`);

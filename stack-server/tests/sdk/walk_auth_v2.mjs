// Walks through every operation of the authorization server with the official SDK for TypeScript, which gets its tokens
// by itself.
//
//     NODE_PATH=…/node_modules node walk_auth_v2.mjs http://127.0.0.1:8080 CLIENT SECRET [TOKEN-ADDRESS]
//
// Needs the package `@formance/formance-sdk@2.7.0`. The server has to have no client yet but the one that is named.

import assert from "node:assert/strict";
import {createRequire} from "node:module";

// Modules of NODE_PATH are found by `require` alone.
const {SDK} = createRequire(import.meta.url)("@formance/formance-sdk");

const [serverURL, clientID, clientSecret, tokenURL = "/api/auth/oauth/token"] = process.argv.slice(2);
const security = secret => ({clientID, clientSecret: secret, tokenURL});
const client = new SDK({serverURL, security: security(clientSecret)}).auth;
const walked = new Set();

async function call(operation, request, status = 200) {
  walked.add(operation);
  const answer = request === undefined ? await client[operation]() : await client[operation](request);
  assert.equal(answer.statusCode, status, operation);
  return answer;
}

async function refused(status, operation, request) {
  walked.add(operation);
  await assert.rejects(client[operation](request), error => {
    assert.equal(error.statusCode, status, `${operation}: ${error}`);
    return true;
  });
}

assert.deepEqual((await call("listClients")).listClientsResponse.data, []);
const made = (await call("createClient", {
  name: "shop", metadata: {deep: {n: [1, null]}}, redirectUris: ["https://a/cb"], scopes: ["openid", "ledger:read"],
}, 201)).createClientResponse.data;
assert.deepEqual([made.name, made.scopes, made.secrets], ["shop", ["openid", "ledger:read"], []]);
assert.deepEqual((await call("readClient", {clientId: made.id})).readClientResponse.data, made);
const secret = (await call("createSecret", {clientId: made.id, createSecretRequest: {name: "ci"}}))
  .createSecretResponse.data;
assert.equal(secret.lastDigits, secret.clear.slice(-4));
const updated = (await call("updateClient", {clientId: made.id, updateClientRequest: {name: "desk"}}))
  .updateClientResponse.data;
assert.deepEqual([updated.name, updated.scopes, updated.secrets.length], ["desk", [], 1]);
assert.equal((await call("listClients")).listClientsResponse.data.length, 1);
assert.deepEqual((await call("listUsers")).listUsersResponse.data, []);
await refused(404, "readUser", {userId: "nosuch"});
await call("deleteSecret", {clientId: made.id, secretId: secret.id}, 204);
await call("deleteClient", {clientId: made.id}, 204);
await refused(404, "readClient", {clientId: made.id});

// With a wrong secret it gets no token.
const stranger = new SDK({serverURL, security: security("wrong")}).auth;
await assert.rejects(stranger.listClients());

const every = Object.getOwnPropertyNames(Object.getPrototypeOf(client)).filter(name => name !== "constructor");
assert.deepEqual([...walked].sort(), every.sort());
console.log(`${walked.size} operations walked`);

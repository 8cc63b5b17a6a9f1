// A real OpenID provider, whose login pages take any name.
//
//     NODE_PATH=… node provider.mjs
//
// It prints its issuer, and ends with its standard input. The stack is its client `stack` with the secret `its secret`.

import {createRequire} from "node:module";

const {default: Provider} = await import(createRequire(import.meta.url).resolve("oidc-provider"));
const callback = "/api/auth/authorize/callback";
const {createServer} = await import("node:http");

// The port is known once it listens, and the issuer needs it.
const server = createServer();
await new Promise(resolve => server.listen(0, "127.0.0.1", resolve));
const issuer = `http://127.0.0.1:${server.address().port}`;
const provider = new Provider(issuer, {
  clients: [{client_id: "stack", client_secret: "its secret", redirect_uris: [`http://127.0.0.1${callback}`], grant_types: ["authorization_code"]}],
  claims: {openid: ["sub"], email: ["email", "email_verified"], profile: ["name"]},
  // So that the email stands in the id token, as most providers have it.
  conformIdTokenClaims: false,
  findAccount: (_, id) => ({accountId: id, claims: () => ({sub: id, email: `${id}@example.com`, email_verified: true})}),
  cookies: {keys: ["only for tests"]},
});
// The stack listens on a port that is not known yet.
provider.Client.prototype.redirectUriAllowed = uri => new URL(uri).pathname === callback;
server.on("request", provider.callback());
console.log(issuer);
process.stdin.on("end", () => process.exit(0)).resume();

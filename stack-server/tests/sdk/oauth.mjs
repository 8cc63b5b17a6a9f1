// Does what an application does with a stock OAuth2 library, openid-client, and a person with a browser: discovery,
// client credentials, a login with PKCE at a real OpenID provider, refresh, introspection, revocation, logout.
//
//     NODE_PATH=… node oauth.mjs http://127.0.0.1:8080 CLIENT SECRET

import assert from "node:assert/strict";
import {createRequire} from "node:module";

const {resolve} = createRequire(import.meta.url);
const library = await import(resolve("openid-client"));
const jose = await import(resolve("jose"));
const [base, id, secret] = process.argv.slice(2);
const issuer = new URL(`${base}/api/auth`);
const redirect = "http://127.0.0.1:9/cb";
const insecure = {execute: [library.allowInsecureRequests]};
const walked = [];

for (const [method, auth] of [["basic", library.ClientSecretBasic(secret)], ["post", library.ClientSecretPost(secret)]]) {
  const config = await library.discovery(issuer, id, {client_secret: secret}, auth, insecure);
  const {access_token: token} = await library.clientCredentialsGrant(config, {scope: "ledger:read"});
  assert.equal((await library.tokenIntrospection(config, token)).active, true);
  await library.tokenRevocation(config, token);
  assert.equal((await library.tokenIntrospection(config, token)).active, false);
  // Another library finds the keys, and that one of them signed the token.
  const keys = jose.createRemoteJWKSet(new URL(`${issuer.href}/keys`));
  const {payload} = await jose.jwtVerify(token, keys, {issuer: issuer.href, audience: id, typ: "at+jwt"});
  assert.equal(payload.scope, "ledger:read");
  await assert.rejects(jose.jwtVerify(`${token.slice(0, -6)}AAAAAA`, keys), {code: "ERR_JWS_SIGNATURE_VERIFICATION_FAILED"});
  walked.push(`client credentials by ${method}`);
}

// A person with a browser: follows redirects, keeps cookies, fills in forms.
const jar = new Map();
async function visit(url, form) {
  for (let hops = 0; hops < 20; hops++) {
    if (url.startsWith(redirect)) return url;
    const {origin} = new URL(url);
    const cookie = [...(jar.get(origin) ?? new Map())].map(([name, value]) => `${name}=${value}`).join("; ");
    const answer = await fetch(url, {redirect: "manual", headers: {cookie}, ...form && {method: "POST", body: new URLSearchParams(form)}});
    if (!jar.has(origin)) jar.set(origin, new Map());
    for (const line of answer.headers.getSetCookie()) {
      const [pair] = line.split(";");
      jar.get(origin).set(pair.slice(0, pair.indexOf("=")), pair.slice(pair.indexOf("=") + 1));
    }
    form = undefined;
    if (answer.status >= 300 && answer.status < 400) {
      url = new URL(answer.headers.get("location"), url).href;
      continue;
    }
    const page = await answer.text();
    assert.equal(answer.status, 200, `${url}: ${page}`);
    const action = /action="([^"]+)"/.exec(page)?.[1];
    assert.ok(action, page);
    url = new URL(action, url).href;
    form = page.includes('name="login"') ? {prompt: "login", login: "ann", password: "any"} : {prompt: "consent"};
  }
  throw new Error("too many redirects");
}

const config = await library.discovery(issuer, id, {client_secret: secret}, undefined, insecure);
const verifier = library.randomPKCECodeVerifier();
const [state, nonce] = [library.randomState(), library.randomNonce()];
const address = library.buildAuthorizationUrl(config, {
  redirect_uri: redirect, scope: "openid email offline_access ledger:read", state, nonce,
  code_challenge: await library.calculatePKCECodeChallenge(verifier), code_challenge_method: "S256",
});
const back = await visit(address.href);
const checks = {pkceCodeVerifier: verifier, expectedState: state, expectedNonce: nonce, idTokenExpected: true};
const tokens = await library.authorizationCodeGrant(config, new URL(back), checks);
const {sub} = tokens.claims();
const person = await library.fetchUserInfo(config, tokens.access_token, sub);
assert.equal(person.sub, sub);
assert.deepEqual([person.email, person.email_verified], ["ann@example.com", true]);
walked.push("a login with PKCE");

const fresh = await library.refreshTokenGrant(config, tokens.refresh_token);
assert.equal(fresh.claims().sub, sub);
assert.equal((await library.tokenIntrospection(config, tokens.access_token)).active, false);
assert.equal((await library.tokenIntrospection(config, fresh.access_token)).sub, sub);
await assert.rejects(library.refreshTokenGrant(config, tokens.refresh_token), {error: "invalid_grant"});
assert.equal((await library.tokenIntrospection(config, fresh.access_token)).active, false);
walked.push("refresh, and its reuse");

await assert.rejects(library.authorizationCodeGrant(config, new URL(back), checks), {error: "invalid_grant"});
const logout = library.buildEndSessionUrl(config, {id_token_hint: tokens.id_token});
assert.equal((await fetch(logout)).status, 200);
walked.push("logout");
console.log(`${walked.length} operations walked`);

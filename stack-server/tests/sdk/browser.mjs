// Walks a login in a real browser, Chromium without a window: from the application to the server, to a real OpenID
// provider, and back to the application with a code.
//
//     NODE_PATH=… node browser.mjs http://127.0.0.1:8080 CLIENT SECRET /usr/bin/chromium

import assert from "node:assert/strict";
import {createServer} from "node:http";
import {createRequire} from "node:module";

const {resolve} = createRequire(import.meta.url);
const library = await import(resolve("openid-client"));
const {chromium} = (await import(resolve("playwright-core"))).default;
const [base, id, secret, executablePath] = process.argv.slice(2);
const issuer = new URL(`${base}/api/auth`);
const insecure = {execute: [library.allowInsecureRequests]};
const walked = [];

// The application of the user: any page will do.
const application = createServer((_, answer) => answer.setHeader("content-type", "text/html").end("<h1>back</h1>"));
await new Promise(resolve => application.listen(0, "127.0.0.1", resolve));
const home = `http://127.0.0.1:${application.address().port}`;
const redirect = `${home}/cb`;

const admin = await library.discovery(issuer, id, {client_secret: secret}, undefined, insecure);
const {access_token: token} = await library.clientCredentialsGrant(admin);
async function manage(path, body) {
  const headers = {authorization: `Bearer ${token}`};
  const answer = await fetch(`${issuer}${path}`, {method: "POST", headers, body: JSON.stringify(body)});
  assert.ok(answer.ok, `${path}: ${answer.status}`);
  return (await answer.json()).data;
}
const {id: app} = await manage("/clients", {name: "app", public: true, redirectUris: [redirect], postLogoutRedirectUris: [home], scopes: ["ledger:read"]});
const config = await library.discovery(issuer, app, undefined, library.None(), insecure);

async function begin() {
  const [verifier, state, nonce] = [library.randomPKCECodeVerifier(), library.randomState(), library.randomNonce()];
  const address = library.buildAuthorizationUrl(config, {
    redirect_uri: redirect, scope: "openid email offline_access ledger:read", state, nonce,
    code_challenge: await library.calculatePKCECodeChallenge(verifier), code_challenge_method: "S256",
  });
  return {address: address.href, checks: {pkceCodeVerifier: verifier, expectedState: state, expectedNonce: nonce, idTokenExpected: true}};
}

// Only addresses of this machine are reached.
const args = ["--no-sandbox", "--disable-background-networking", "--disable-component-update", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"];
const browser = await chromium.launch({executablePath, headless: true, args, timeout: 120_000});
try {
  const context = await browser.newContext();
  context.setDefaultTimeout(120_000);
  await context.route(url => url.hostname !== "127.0.0.1", route => route.abort());
  const page = await context.newPage();

  const first = await begin();
  await page.goto(first.address);
  await page.fill("input[name=login]", "ann");
  await page.fill("input[name=password]", "any");
  await page.click("button[type=submit]");
  // The provider asks whether the stack may know the name.
  await page.waitForSelector("input[name=prompt][value=consent]", {state: "attached"});
  // What binds the login to this browser is for the server alone.
  const cookies = (await context.cookies(issuer.href)).filter(({name}) => name.startsWith("stack-login-"));
  assert.equal(cookies.length, 1);
  assert.deepEqual([cookies[0].httpOnly, cookies[0].sameSite, cookies[0].path], [true, "Lax", "/api/auth"]);
  await page.click("button[type=submit]");
  await page.waitForURL(`${redirect}?**`);
  assert.equal(await page.textContent("h1"), "back");
  const tokens = await library.authorizationCodeGrant(config, new URL(page.url()), first.checks);
  const {sub} = tokens.claims();
  const person = await library.fetchUserInfo(config, tokens.access_token, sub);
  assert.deepEqual([person.email, person.email_verified], ["ann@example.com", true]);
  walked.push("a login");

  // The provider knows the browser: nobody types anything.
  const second = await begin();
  await page.goto(second.address);
  await page.waitForURL(`${redirect}?**`);
  const again = await library.authorizationCodeGrant(config, new URL(page.url()), second.checks);
  assert.equal(again.claims().sub, sub);
  walked.push("a second login");

  // Another browser cannot end a login that this one began.
  const third = await begin();
  let callback = third.address;
  while (!callback.includes("/authorize/callback?")) {
    const answer = await context.request.get(callback, {maxRedirects: 0});
    assert.ok(answer.headers().location, `${callback}: ${answer.status()}`);
    callback = new URL(answer.headers().location, callback).href;
  }
  const stranger = await (await browser.newContext()).newPage();
  assert.equal((await stranger.goto(callback)).status(), 400);
  assert.ok(!stranger.url().startsWith(redirect));
  await page.goto(callback);
  await library.authorizationCodeGrant(config, new URL(page.url()), third.checks);
  walked.push("a login of another browser, refused");

  await page.goto(library.buildEndSessionUrl(config, {id_token_hint: again.id_token, post_logout_redirect_uri: home}).href);
  assert.ok(page.url().startsWith(home), page.url());
  await assert.rejects(library.refreshTokenGrant(config, tokens.refresh_token), {error: "invalid_grant"});
  walked.push("logout");
} finally {
  await browser.close();
  application.close();
  application.closeAllConnections();
}
console.log(`${walked.length} operations walked`);

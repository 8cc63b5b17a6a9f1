// Visits hostile pages in a real browser, Chromium without a window, while a server without tokens runs on the same
// machine. The server is started with `--cors-origin http://app.example:PAGE-PORT`; every name leads to this machine, and
// at the page port is a page for every name.
//
//     NODE_PATH=… node hostile.mjs http://127.0.0.1:8080 /usr/bin/chromium PAGE-PORT

import assert from "node:assert/strict";
import {createRequire} from "node:module";

const {resolve} = createRequire(import.meta.url);
const {chromium} = (await import(resolve("playwright-core"))).default;
const [base, executablePath, pagePort] = process.argv.slice(2);
const serverPort = new URL(base).port;
const walked = [];
const transfer = JSON.stringify({postings: [{source: "world", destination: "a", amount: 1, asset: "USD"}]});
const target = `${base}/v2/main/transactions`;

assert.equal((await fetch(`${base}/v2/main`, {method: "POST"})).status, 204);
async function count() {
  return (await (await fetch(`${base}/v2/main/stats`)).json()).data.transactions;
}
let expected = 0;
async function done(name) {
  assert.equal(await count(), expected, name);
  walked.push(name);
}

const names = ["evil.example", "app.example", "rebind.example"].map(name => `MAP ${name} 127.0.0.1`);
// A page on the loopback interface may reach others there: it is the server that has to refuse.
const args = ["--no-sandbox", "--disable-background-networking", "--disable-component-update",
  `--host-resolver-rules=${names.join(", ")}, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1`,
  "--disable-features=LocalNetworkAccessChecks,PrivateNetworkAccessSendPreflights"];
const browser = await chromium.launch({executablePath, headless: true, args, timeout: 120_000});
try {
  const context = await browser.newContext();
  context.setDefaultTimeout(120_000);
  const page = await context.newPage();
  // The answer to a request that a page sends, and what the page sees of it.
  async function request(address, options) {
    const answered = page.waitForResponse(answer => answer.url() === address && answer.request().method() === (options.method ?? "GET"));
    const seen = await page.evaluate(async ([address, options]) => {
      try {
        const answer = await fetch(address, options);
        return {type: answer.type, status: answer.status, text: await answer.text()};
      } catch (error) {
        return {error: error.name};
      }
    }, [address, options]);
    return {seen, status: (await answered).status()};
  }

  await page.goto(`http://evil.example:${pagePort}/`);
  const plain = {method: "POST", mode: "no-cors", headers: {"content-type": "text/plain"}, body: transfer};
  const blind = await request(target, plain);
  assert.deepEqual([blind.seen.type, blind.status], ["opaque", 403]);
  await done("a write that asks for no preflight");

  const seen = await page.evaluate(async ([target, body]) => {
    const headers = {"content-type": "application/json"};
    try { await fetch(target, {method: "POST", headers, body}); return "answered"; } catch (error) { return error.name; }
  }, [target, transfer]);
  assert.equal(seen, "TypeError");
  await done("a write whose preflight is refused");

  const read = await page.evaluate(async address => {
    try { return await (await fetch(address)).text(); } catch (error) { return error.name; }
  }, `${base}/v2/main/stats`);
  assert.equal(read, "TypeError");
  const image = await request(`${base}/v2/main/stats`, {mode: "no-cors"});
  assert.deepEqual([image.seen.type, image.status], ["opaque", 403]);
  await done("reads");

  const posted = page.waitForResponse(answer => answer.url().startsWith(target));
  await page.evaluate(([target, before, behind]) => {
    const form = Object.assign(document.createElement("form"), {method: "POST", action: target, enctype: "text/plain"});
    form.append(Object.assign(document.createElement("input"), {name: before, value: behind}));
    document.body.append(form);
    form.submit();
  }, [target, transfer.slice(0, -1) + ',"metadata":{"x":"', '"}}']);
  assert.equal((await posted).status(), 403);
  await page.waitForURL(target);
  await done("a form");

  // The page of an attacker whose name now leads to this machine: to the browser the server is its own.
  const rebound = `http://rebind.example:${serverPort}`;
  assert.equal((await page.goto(`${rebound}/docs`)).status(), 403);
  for (const path of ["/v2/main/transactions", "/main/transactions"]) {
    const {seen, status} = await request(rebound + path, {method: "POST", body: transfer});
    assert.deepEqual([seen.status, status], [403, 403]);
    assert.match(JSON.parse(seen.text).errorMessage, /rebind\.example.*--allowed-host/);
  }
  await done("a rebound name");

  // What is allowed works: pages of the server itself, and of the origin that the operator named.
  assert.equal((await page.goto(`${base}/docs`)).status(), 200);
  assert.equal((await request(target, {method: "POST", body: transfer})).seen.status, 200);
  expected += 1;
  await done("a page of the server");

  await page.goto(`http://app.example:${pagePort}/`);
  const headers = {"content-type": "application/json", "idempotency-key": "k"};
  const allowed = await request(target, {method: "POST", headers, body: transfer});
  assert.deepEqual([allowed.seen.type, allowed.seen.status], ["cors", 200]);
  expected += 1;
  await done("a page of a listed origin");
} finally {
  await browser.close();
}
console.log(`${walked.length} operations walked`);

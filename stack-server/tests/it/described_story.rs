//! Sends the examples of the API description to a server. They tell one story: a ledger is created, then a transaction,
//! then accounts are read, and at the end everything is deleted. Almost every request must succeed.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use crate::client::{Answer, TestServer, authorizing, escape};

/// Operations that no example can make succeed, with the status of their answer.
const REFUSED: &[(&str, u16)] = &[
    // The ledger has logs.
    ("v2ImportLogs", 400),
    // A pipeline starts when it is created.
    ("v2StartPipeline", 400),
    // API v2 reverted the transaction before.
    ("revertTransaction", 400),
    // The example of a connector fetches nothing and moves no money, because the tests must not reach a provider.
    ("getConnectorTask", 404),
    ("getConnectorTask_connectorsconnectorconnectorIdtaskstaskId", 404),
    ("connectorsStripeTransfer", 400),
    ("connectorsTransfer", 400),
    ("forwardBankAccount", 400),
    ("udpateTransferInitiationStatus", 400),
    ("retryTransferInitiation", 400),
    ("reverseTransferInitiation", 400),
    ("deleteTransferInitiation", 404),
    // The reset before it gave the installation another id.
    ("uninstallConnector_connectorsconnectorconnectorId", 400),
    // Nobody has logged in, and the server knows no provider of identities.
    ("readUser", 404),
    ("authorize", 400),
    ("authorize_authorize", 400),
    ("finishAuthorization", 400),
    ("getUserInfo", 401),
    ("getUserInfo_userinfo", 401),
    // The ids of keys are random.
    ("revokeKey", 404),
];

/// Operations that need something which the description creates after them.
const LATER: [&str; 2] = ["createPayment", "runPostings"];

/// The id of the connector in the examples, and that of a scope that another one brings along.
const CONNECTOR: &str =
    "eyJQcm92aWRlciI6IkdFTkVSSUMiLCJSZWZlcmVuY2UiOiIyZjFjMWEzZS05YTM5LTRkNjItOGE1ZS02ZjRmMmI3YzlkMTAifQ";
const TRANSIENT_SCOPE: &str = "72d0a3c5-c271-4285-8ef2-80a070c1e398";

/// An operation of the description.
struct Operation<'a> {
    method: String,
    path: &'a str,
    described: &'a Value,
}

impl Operation<'_> {
    fn id(&self) -> &str {
        self.described["operationId"].as_str().expect("an id")
    }
}

/// Returns the operations in the order of the description, first those that create something. Those that end something
/// come last, in reverse order.
fn operations<'a>(text: &str, document: &'a Value) -> Vec<Operation<'a>> {
    let paths = document["paths"].as_object().expect("paths");
    let paths = paths.iter().filter(|(path, _)| !path.starts_with("/api/ledger/"));
    let operations = paths.flat_map(|(path, item)| {
        let item = item.as_object().expect("an item").iter();
        item.map(|(method, described)| Operation { method: method.to_uppercase(), path, described })
    });
    let mut operations: Vec<_> = operations.collect();
    let position = |one: &Operation<'_>| text.find(&format!("\"{}\":{{", one.path));
    operations.sort_by_key(position);
    let is_end = |one: &Operation<'_>| one.method == "DELETE" || one.path.ends_with("/reset");
    let (mut ends, mut others): (Vec<_>, Vec<_>) = operations.into_iter().partition(is_end);
    others.sort_by_key(|one| match one.method.as_str() {
        _ if LATER.contains(&one.id()) => 2,
        "POST" => 0,
        "PUT" => 1,
        _ => 3,
    });
    // Parts are deleted before the whole, and the bucket of all ledgers last.
    ends.reverse();
    ends.sort_by_key(|one| (one.path.contains("/buckets/"), Reverse(one.path.matches('/').count())));
    others.append(&mut ends);
    others
}

/// The ids of the examples, and those that the server gave to the same things.
#[derive(Default)]
struct Ids(BTreeMap<String, String>);

impl Ids {
    /// Remembers the id of an answer for that of its example.
    fn learn(&mut self, example: &Value, answer: &Value) {
        match (example, answer) {
            (Value::String(example), Value::String(answer)) if example != answer => {
                self.0.insert(example.clone(), answer.clone());
                if let (Some(example), Some(answer)) = (inner(example), inner(answer)) {
                    self.0.insert(example, answer);
                }
            }
            (Value::Object(example), Value::Object(answer)) => {
                for name in ["data", "id", "connectorID", "clear", "access_token"] {
                    if let (Some(example), Some(answer)) = (example.get(name), answer.get(name)) {
                        self.learn(example, answer);
                    }
                }
            }
            _ => {}
        }
    }

    /// Returns a text of an example with the ids of the server.
    fn replace(&self, text: &str) -> String {
        if let Some(id) = self.0.get(text) {
            return id.clone();
        }
        let Some(record) = decoded(text) else { return text.to_owned() };
        let replaced = self.0.iter().fold(record, |record, (example, id)| record.replace(example, id));
        URL_SAFE_NO_PAD.encode(replaced)
    }

    fn replace_all(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.replace(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.replace_all(item)),
            Value::Object(members) => members.values_mut().for_each(|member| self.replace_all(member)),
            _ => {}
        }
    }
}

/// Returns the text of an id of the payments API, which is JSON in base64.
fn decoded(text: &str) -> Option<String> {
    let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
    String::from_utf8(bytes).ok().filter(|text| text.starts_with('{'))
}

/// Returns the number of the installation in the id of a connector.
fn inner(id: &str) -> Option<String> {
    let json: Value = serde_json::from_str(&decoded(id)?).ok()?;
    json["Reference"].as_str().map(str::to_owned)
}

/// Returns the example of a body with this content type.
fn example<'a>(document: &'a Value, body: &Value, content_type: &str) -> Option<&'a Value> {
    let reference = body["content"][content_type]["examples"]["example"]["$ref"].as_str()?;
    document.pointer(&format!("{}/value", &reference[1..]))
}

/// Returns the path and the query of an operation, with the examples of its parameters.
fn target(operation: &Operation<'_>, ids: &Ids) -> String {
    let mut path = operation.path.to_owned();
    let mut query = Vec::new();
    for parameter in operation.described["parameters"].as_array().into_iter().flatten() {
        let name = parameter["name"].as_str().expect("a name");
        match parameter["in"].as_str() {
            Some("path") => {
                let example = &parameter["example"];
                let example = example.as_str().map_or_else(|| example.to_string(), str::to_owned);
                path = path.replace(&format!("{{{name}}}"), &ids.replace(&example));
            }
            Some("query") => {
                if let Some(example) = parameter["schema"]["examples"][0].as_str() {
                    query.push(format!("{name}={}", escape(example)));
                }
            }
            _ => {}
        }
    }
    if query.is_empty() { path } else { format!("{path}?{}", query.join("&")) }
}

/// Returns the content type and the example of the body of an operation, if it takes one.
fn body<'a>(document: &Value, operation: &Operation<'a>, ids: &Ids) -> (Option<&'a str>, String) {
    let described = &operation.described["requestBody"];
    let Some(contents) = described["content"].as_object() else { return (None, String::new()) };
    let kinds: Vec<&str> = contents.keys().map(String::as_str).collect();
    let kind = kinds.iter().find(|kind| **kind == "application/json").unwrap_or(&kinds[0]);
    let mut example = example(document, described, kind).expect("an example").clone();
    ids.replace_all(&mut example);
    let body = match (*kind, &example) {
        ("application/x-www-form-urlencoded", Value::Object(members)) => {
            let text = |value: &Value| escape(value.as_str().expect("a text"));
            let pairs = members.iter().map(|(name, value)| format!("{name}={}", text(value)));
            pairs.collect::<Vec<_>>().join("&")
        }
        (_, Value::String(text)) => text.clone(),
        _ => example.to_string(),
    };
    // No exporter may reach another machine.
    (Some(kind), body.replace("https://example.com/", "http://127.0.0.1:1/"))
}

#[test]
fn examples_tell_a_story_that_server_accepts() {
    let mut settings = authorizing();
    settings.experimental_exporters = true;
    let server = TestServer::with(settings);
    let text = server.get("/openapi.json").is(200).body;
    let document: Value = serde_json::from_str(&text).expect("JSON");
    let mut ids = Ids::default();
    let mut faults = Vec::new();
    let mut sent = 0;
    for operation in operations(&text, &document) {
        let contents = &operation.described["responses"]["200"]["content"];
        if contents.get("text/event-stream").is_some() {
            // The answer has no end.
            continue;
        }
        let path = target(&operation, &ids);
        let (content_type, body) = body(&document, &operation, &ids);
        let headers: Vec<_> = content_type.iter().map(|kind| ("content-type", *kind)).collect();
        let id = operation.id();
        if id == "createPool" {
            create_others(&server, &mut ids);
        }
        let answer = server.send(&operation.method, &path, &headers, &body);
        sent += 1;
        let expected = REFUSED.iter().find(|(refused, _)| *refused == id).map(|(_, status)| *status);
        let is_expected = expected.map_or(answer.status < 400, |status| answer.status == status);
        if !is_expected {
            faults
                .push(format!("{id}: {} {path} {body}: {} {}", operation.method, answer.status, answer.body));
        }
        learn(&mut ids, &document, &operation, &answer);
    }
    assert!(faults.is_empty(), "{} of {sent} requests:\n{}", faults.len(), faults.join("\n"));
    assert!(sent > 150, "only {sent} requests were sent");
}

/// Creates the account and the scope that examples name and no example creates.
fn create_others(server: &TestServer, ids: &mut Ids) {
    let connector = ids.replace(CONNECTOR);
    let account = json!({
        "accountName": "Supplier",
        "connectorID": connector,
        "createdAt": "2024-05-01T10:00:00Z",
        "defaultAsset": "EUR/2",
        "reference": "acc-2",
        "type": "EXTERNAL",
    });
    server.post("/api/payments/accounts", &account.to_string()).is(200);
    let scope = server.post("/api/auth/scopes", r#"{"label": "ledger:write"}"#).is(201).json();
    ids.learn(&json!(TRANSIENT_SCOPE), &scope["data"]["id"]);
}

/// Remembers the ids in the answer of an operation that creates something.
fn learn(ids: &mut Ids, document: &Value, operation: &Operation<'_>, answer: &Answer) {
    let response = &operation.described["responses"][answer.status.to_string()];
    if operation.method == "POST"
        && answer.status < 300
        && let Some(example) = example(document, response, "application/json")
        && let Ok(answer) = serde_json::from_str(&answer.body)
    {
        ids.learn(example, &answer);
    }
}

//! Checks every response that the test client receives against the API description that the server serves. Also
//! tests how the description itself is served.

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;
use std::sync::OnceLock;

use serde_json::Value;

use crate::client::{Answer, TestServer};

static DOCUMENT: OnceLock<Value> = OnceLock::new();

/// Checks a response against the description of its operation.
#[track_caller]
pub(crate) fn check(method: &str, path: &str, answer: &Answer) {
    if path == "/openapi.json" {
        return;
    }
    let document = DOCUMENT.get_or_init(|| TestServer::start().get("/openapi.json").json());
    let Some(operation) = operation(document, method, path) else {
        // No handler produced this response, so the description does not contain it.
        assert!(
            answer.status < 200 || answer.status >= 400 || method == "OPTIONS",
            "{method} {path}: {answer:?}"
        );
        return;
    };
    // A fixed segment hides this method from a template with a variable.
    if answer.status == 405 {
        return;
    }
    let response = &operation["responses"][answer.status.to_string()];
    let id = &operation["operationId"];
    assert!(response.is_object(), "{method} {path}: {} is not described for {id}: {answer:?}", answer.status);
    for (name, header) in response["headers"].as_object().into_iter().flatten() {
        let is_there = answer.header(&name.to_ascii_lowercase()).is_some();
        assert!(is_there || header["required"] != true, "{method} {path}: {name} is missing: {answer:?}");
    }
    let Some(contents) = response["content"].as_object() else {
        assert_eq!(answer.body, "", "{method} {path}: {id} is described to answer nothing");
        return;
    };
    let content_type = answer.header("content-type").unwrap_or("");
    let kind = content_type.split(';').next().unwrap_or("");
    let described = contents.iter().find(|(name, _)| name.split(';').next() == Some(kind));
    let Some((_, media)) = described else {
        panic!("{method} {path}: {content_type} is not described for {id}")
    };
    if kind == "application/json"
        && let Err(error) = conforms(document, &media["schema"], &answer.json())
    {
        panic!("{method} {path}: {id} {}: {error}\n{answer:?}", answer.status);
    }
}

/// Finds the description of the operation that serves a request. If several templates match, the one with the most
/// fixed segments counts.
fn operation<'a>(document: &'a Value, method: &str, path: &str) -> Option<&'a Value> {
    let path = path.split('?').next().unwrap_or("");
    let path = path.strip_suffix('/').filter(|path| !path.is_empty()).unwrap_or(path);
    let have: Vec<&str> = path.split('/').collect();
    let mut best: Option<(usize, &Value)> = None;
    for (template, item) in document["paths"].as_object()? {
        let want: Vec<&str> = template.split('/').collect();
        let is_variable = |want: &str| want.starts_with('{');
        let fits = want.len() == have.len()
            && want
                .iter()
                .zip(&have)
                .all(|(want, have)| want == have || is_variable(want) && !have.is_empty());
        let fixed = want.iter().filter(|want| !is_variable(want)).count();
        if let Some(operation) = item.get(method.to_ascii_lowercase()).filter(|_| fits)
            && best.is_none_or(|(most, _)| fixed > most)
        {
            best = Some((fixed, operation));
        }
    }
    best.map(|(_, operation)| operation)
}

/// A JSON value that a schema does not describe.
#[derive(Debug)]
struct Undescribed(String);

impl fmt::Display for Undescribed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Returns the beginning of a value, for messages.
fn beginning(value: &Value) -> String {
    value.to_string().chars().take(200).collect()
}

/// Checks a value against a schema. Stricter than the standard, it refuses members that the schema does not name:
/// everything in a response must be described.
fn conforms(document: &Value, schema: &Value, value: &Value) -> Result<(), Undescribed> {
    conforms_to_parts(document, schema, value)?;
    has_type(schema, value)?;
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if value.is_object() && value.get(name).is_none() {
            return Err(Undescribed(format!("{} has no {name}", beginning(value))));
        }
    }
    if let Some(most) = schema["maxItems"].as_u64()
        && value.as_array().is_some_and(|items| items.len() as u64 > most)
    {
        return Err(Undescribed(format!("{} has too many items", beginning(value))));
    }
    if let (Some(items), Some(schema)) = (value.as_array(), schema.get("items")) {
        items.iter().try_for_each(|item| conforms(document, schema, item))?;
    }
    let Some(members) = value.as_object().filter(|_| types(schema).contains(&"object")) else {
        return Ok(());
    };
    for (name, member) in members {
        match (schema["properties"].get(name), schema.get("additionalProperties")) {
            (Some(schema), _) => conforms(document, schema, member),
            (None, Some(others @ Value::Object(_))) => conforms(document, others, member),
            (None, Some(Value::Bool(true))) => Ok(()),
            (None, _) => Err(Undescribed(format!("not described: {}", beginning(value)))),
        }
        .map_err(|Undescribed(reason)| Undescribed(format!("{name}: {reason}")))?;
    }
    Ok(())
}

/// Checks a value against the schemas that a schema refers to or consists of.
fn conforms_to_parts(document: &Value, schema: &Value, value: &Value) -> Result<(), Undescribed> {
    if let Some(reference) = schema["$ref"].as_str() {
        let target = document.pointer(&reference[1..]);
        let target = target.ok_or_else(|| Undescribed(format!("{reference} leads nowhere")))?;
        conforms(document, target, value)?;
    }
    if let Some(parts) = schema["allOf"].as_array() {
        // A single part need not name all members. The check of members covers all parts together.
        parts
            .iter()
            .filter(|part| part.get("$ref").is_some())
            .try_for_each(|part| conforms(document, part, value))?;
        for (name, member) in parts.iter().filter_map(|part| part["properties"].as_object()).flatten() {
            value.get(name).map_or(Ok(()), |have| conforms(document, member, have))?;
        }
    }
    if let Some(alternatives) = schema["anyOf"].as_array() {
        let failed: Vec<String> = alternatives
            .iter()
            .filter_map(|one| conforms(document, one, value).err())
            .map(|Undescribed(reason)| reason)
            .collect();
        if failed.len() == alternatives.len() {
            return Err(Undescribed(format!("{} is none of: {}", beginning(value), failed.join("; "))));
        }
    }
    Ok(())
}

/// Returns the types that a schema names.
fn types(schema: &Value) -> Vec<&str> {
    match &schema["type"] {
        Value::String(one) => vec![one],
        Value::Array(several) => several.iter().filter_map(Value::as_str).collect(),
        _ => vec![],
    }
}

/// Checks the type of a value, and that it is one of those that the schema lists.
fn has_type(schema: &Value, value: &Value) -> Result<(), Undescribed> {
    if let Some(words) = schema["enum"].as_array()
        && !words.contains(value)
    {
        return Err(Undescribed(format!("{} is none of {}", beginning(value), schema["enum"])));
    }
    let is = |kind: &str| match kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        // An integer of any size, without a fraction.
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        other => panic!("{other} is a type that this check does not know"),
    };
    let types = types(schema);
    if types.is_empty() || types.iter().any(|kind| is(kind)) {
        return Ok(());
    }
    Err(Undescribed(format!("{} is no {}", beginning(value), schema["type"])))
}

#[test]
fn the_check_itself_can_fail() {
    let document: Value = serde_json::from_str(
        r#"{"components":{"schemas":{"A":{"type":"object","required":["x"],"properties":{"x":{"type":"integer"}}}}}}"#,
    )
    .expect("JSON");
    let check = |schema: &str, value: &str| {
        let schema = serde_json::from_str(schema).expect("JSON");
        conforms(&document, &schema, &serde_json::from_str(value).expect("JSON")).is_ok()
    };
    let a = r##"{"$ref":"#/components/schemas/A"}"##;
    assert!(check(a, r#"{"x":1}"#));
    for value in [r#"{"x":"1"}"#, r#"{"x":1.5}"#, "{}", r#"{"x":1,"y":2}"#, "[]"] {
        assert!(!check(a, value), "{value}");
    }
    assert!(!check(r#"{"enum":["a"]}"#, "\"b\""));
    assert!(!check(r#"{"type":"array","items":{"type":"string"}}"#, "[1]"));
    assert!(!check(r#"{"anyOf":[{"type":"string"},{"type":"null"}]}"#, "1"));
    assert!(!check(r#"{"allOf":[{"properties":{"x":{"enum":["a"]}}}]}"#, r#"{"x":"b"}"#));
    assert!(!check(r#"{"type":"object","additionalProperties":{"type":"string"}}"#, r#"{"x":1}"#));
}

#[test]
fn the_document_is_served_in_three_forms() {
    let server = TestServer::start();
    let json = server.get("/openapi.json").is(200);
    let document = json.json();
    assert_eq!(document["openapi"], "3.1.0");
    let yaml = server.get("/openapi.yaml").is(200);
    assert_eq!(yaml.header("content-type"), Some("application/yaml"));
    assert!(yaml.body.starts_with("openapi: \"3.1.0\"\n") && yaml.body.contains("\n  \"/versions\":\n"));
    // The v1 routes, at both of their mounts.
    for prefix in ["", "/api/ledger"] {
        assert_eq!(server.get(&format!("{prefix}/swagger.json")).is(200).body, json.body);
        assert_eq!(server.get(&format!("{prefix}/swagger.yaml")).is(200).body, yaml.body);
    }
    assert_eq!(server.get("/").is(303).header("location"), Some("/docs"));
    let page = server.get("/docs").is(200);
    assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"));
    // The page loads nothing from other servers, and its policy makes the browser enforce that.
    assert!(!page.body.contains("http:") && !page.body.contains("https:") && !page.body.contains("src="));
    // It shows the descriptions and examples, in the order of the groups.
    for member in ["operation.description", "media.examples", "api.components.examples", "api.tags"] {
        assert!(page.body.contains(member), "{member}");
    }
    let policy = page.header("content-security-policy").expect("a policy");
    assert!(policy.starts_with("default-src 'none'") && policy.contains("connect-src 'self'"));
    server.send("POST", "/openapi.json", &[], "").is(405);
}

#[test]
fn describes_both_mounts_with_their_statuses() {
    let document = TestServer::start().get("/openapi.json").json();
    let responses = |path: &str| {
        let responses = &document["paths"][path]["post"]["responses"];
        let keys = responses.as_object().unwrap_or_else(|| panic!("{path}")).keys();
        keys.cloned().collect::<BTreeSet<String>>()
    };
    assert!(responses("/v2/{ledger}/transactions").contains("409"));
    assert!(!responses("/api/ledger/v2/{ledger}/transactions").contains("409"));
    let codes = |path: &str| {
        let pointer =
            "/post/responses/400/content/application~1json/schema/allOf/1/properties/errorCode/enum";
        document["paths"][path].pointer(pointer).expect("codes").to_string()
    };
    assert!(codes("/v2/{ledger}").contains("LEDGER_ALREADY_EXISTS"));
    assert!(!codes("/api/ledger/v2/{ledger}").contains("LEDGER_ALREADY_EXISTS"));
}

/// Checks that a body has an example of each content type, and that the examples of JSON conform to its schema.
fn has_examples(document: &Value, content: &Value) -> Result<(), Undescribed> {
    for (content_type, media) in content.as_object().into_iter().flatten() {
        let examples = media["examples"].as_object().filter(|examples| !examples.is_empty());
        let examples = examples.ok_or_else(|| Undescribed(format!("{content_type} has no example")))?;
        for example in examples.values() {
            let target = example["$ref"].as_str().and_then(|reference| document.pointer(&reference[1..]));
            let value = target.map(|target| &target["value"]).filter(|value| !value.is_null());
            let value = value.ok_or_else(|| Undescribed(format!("{example} leads nowhere")))?;
            conforms(document, &media["schema"], value)?;
        }
    }
    Ok(())
}

/// Checks that each variable of the path has an example that conforms to its schema, and that an operation without bodies
/// has an example of a parameter, if it has parameters.
fn has_parameter_examples(
    document: &Value,
    operation: &Value,
    contents: &[&Value],
) -> Result<(), Undescribed> {
    let parameters: Vec<&Value> = operation["parameters"].as_array().into_iter().flatten().collect();
    for variable in parameters.iter().filter(|parameter| parameter["in"] == "path") {
        let example = variable.get("example");
        let example = example.ok_or_else(|| Undescribed(format!("{} has no example", variable["name"])))?;
        conforms(document, &variable["schema"], example)?;
    }
    let has_body =
        operation.get("requestBody").is_some() || contents.iter().any(|content| content.is_object());
    let has_example =
        |parameter: &&Value| parameter.get("example").is_some() || parameter["schema"]["examples"].is_array();
    if !has_body && !parameters.is_empty() && !parameters.iter().any(has_example) {
        return Err(Undescribed("no parameter has an example".to_owned()));
    }
    Ok(())
}

#[test]
fn every_operation_has_description_and_examples() {
    let document = TestServer::start().get("/openapi.json").json();
    let mut faults = Vec::new();
    for (path, item) in document["paths"].as_object().expect("paths") {
        for (method, operation) in item.as_object().expect("an item") {
            let description = operation["description"].as_str().unwrap_or("");
            if !description.ends_with('.') || operation["summary"] == description {
                faults.push(format!("{method} {path}: no description of its own: {description:?}"));
            }
            // Redirects and empty responses need no example.
            let answers = operation["responses"].as_object().into_iter().flatten();
            let answers = answers.filter(|(status, _)| status.starts_with('2'));
            let contents: Vec<&Value> = answers.map(|(_, answer)| &answer["content"]).collect();
            for content in contents.iter().copied().chain([&operation["requestBody"]["content"]]) {
                if let Err(fault) = has_examples(&document, content) {
                    faults.push(format!("{method} {path}: {fault}"));
                }
            }
            if let Err(fault) = has_parameter_examples(&document, operation, &contents) {
                faults.push(format!("{method} {path}: {fault}"));
            }
        }
    }
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn operations_of_this_server_only_are_listed() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/api-compatibility.md");
    let page = std::fs::read_to_string(path).expect("the documentation is there");
    let document = TestServer::start().get("/openapi.json").json();
    let mut own = 0;
    for (path, item) in document["paths"].as_object().expect("paths") {
        let Some(template) = path.strip_prefix("/v2").filter(|path| path.starts_with("/{ledger}")) else {
            continue;
        };
        for (method, operation) in item.as_object().expect("an item") {
            // The ids of the API's own operations begin with `v2`.
            if operation["operationId"].as_str().expect("an id").starts_with("v2") {
                continue;
            }
            own += 1;
            let head = format!("`{} {template}`", method.to_uppercase());
            assert!(page.contains(&head), "docs/api-compatibility.md does not list {head}");
        }
    }
    assert!(own > 4, "only {own} operations were found");
}

#[test]
fn tags_list_every_group_with_ledger_first() {
    let document = TestServer::start().get("/openapi.json").json();
    let tags = document["tags"].as_array().expect("tags");
    let names: Vec<&str> = tags.iter().filter_map(|tag| tag["name"].as_str()).collect();
    assert!(
        names.starts_with(&["Ledgers", "Transactions", "Accounts"])
            && names.ends_with(&["Service", "Aliases"])
    );
    assert!(tags.iter().all(|tag| tag["description"].as_str().is_some_and(|text| text.ends_with('.'))));
    let operations = document["paths"].as_object().expect("paths").values();
    let used =
        operations.filter_map(Value::as_object).flatten().filter_map(|(_, one)| one["tags"][0].as_str());
    assert_eq!(used.collect::<BTreeSet<_>>(), names.into_iter().collect());
}

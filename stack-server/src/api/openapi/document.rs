//! Builds the `OpenAPI` document of the server, which describes every route below every prefix at which it is served.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::api::openapi::description::{Body, Description, Parameter, ParameterLocation};
use crate::api::openapi::paths::Paths;
use crate::api::openapi::responses::{content, media, responses};
use crate::api::openapi::tags::{self, ALIASES};
use crate::api::openapi::variables::variable;
use crate::api::openapi::{auth, examples, payments, service, v1, v2, yaml};
use crate::api::operations::Operation;
use crate::api::routes::{Mount, Route, routes};
use crate::auth::Scope;
use crate::auth::guard::Guard;
use crate::http::error::Profile;
use crate::settings::Settings;

const SCHEMAS: &str = include_str!("schemas.json");

const DESCRIPTION: &str = "A double-entry ledger, payments below `/api/payments`, and an authorization server below `/api/auth`. API v2 of the \
ledger answers below `/v2`, and below `/api/ledger/v2` in the form that clients of stack 2.0 read; API v1 at the root \
and below `/api/ledger`. Unknown members and parameters are ignored. Paths may end with a slash.";

/// The API document.
pub(crate) struct Document {
    /// The members that precede the paths, and the tags.
    head: [(&'static str, Value); 4],
    paths: Paths,
    components: Value,
}

impl Document {
    /// Returns the document as JSON.
    pub(crate) fn to_json(&self) -> String {
        let mut text = String::from("{");
        for (name, value) in &self.head {
            text.push_str(&format!("\"{name}\":{value},"));
        }
        let paths = self.paths.to_json();
        text.push_str(&format!("\"paths\":{paths},\"components\":{}}}", self.components));
        text
    }

    /// Returns the document as YAML.
    pub(crate) fn to_yaml(&self) -> String {
        let mut text = String::new();
        for (name, value) in &self.head {
            text.push_str(&yaml::to_yaml(&json!({*name: value})));
        }
        yaml::write_ordered("paths", self.paths.items(), &mut text);
        text.push_str(&yaml::to_yaml(&json!({"components": self.components})));
        text
    }
}

/// Builds the document of a server with this guard and these settings.
pub(crate) fn document(guard: Option<&Guard>, settings: &Settings) -> Document {
    let mut paths = Paths::default();
    let mut ids = BTreeSet::new();
    let mut examples = Map::new();
    // The other prefixes of a mount repeat the paths of its first prefix, which have the shorter ids.
    let (own, aliases): (Vec<_>, Vec<_>) = mounted().partition(|(_, prefix, _)| *prefix == 0);
    for (route, prefix_number, profile) in own.into_iter().chain(aliases) {
        let prefix = route.mount.prefixes()[prefix_number].0;
        let is_generic = route.mount == Mount::Generic;
        let shown = if is_generic { settings.generic_mount.to_string() } else { prefix.to_owned() };
        let path = match route.template {
            "/" if !shown.is_empty() => shown,
            template => format!("{shown}{template}"),
        };
        let mut described = describe(route.operation);
        if prefix_number > 0 {
            described.group = ALIASES;
        }
        examples::collect(&described, &mut examples);
        let id = unique_id(&mut ids, described.id, prefix, route.template);
        let security = security(route, guard, is_generic && settings.generic_keys.is_some());
        let operation = operation(route, profile, &described, &id, security);
        paths.add(path, route.method.to_ascii_lowercase(), operation);
    }
    paths.sort();
    Document { head: head(), paths, components: components(&examples) }
}

/// Returns every route below every prefix of its mount, with the number of the prefix.
fn mounted() -> impl Iterator<Item = (&'static Route, usize, Profile)> {
    routes().iter().flat_map(|route| {
        let prefixes = route.mount.prefixes().iter().enumerate();
        prefixes.map(move |(at, (_, profile))| (route, at, *profile))
    })
}

/// Returns the members that precede the paths.
fn head() -> [(&'static str, Value); 4] {
    let info = json!({
        "title": "Ledger",
        "version": env!("CARGO_PKG_VERSION"),
        "description": DESCRIPTION,
        "license": {"name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0"}
    });
    [("openapi", json!("3.1.0")), ("info", info), ("servers", json!([{"url": "/"}])), ("tags", tags::tags())]
}

fn components(examples: &Map<String, Value>) -> Value {
    let schemas: Value = serde_json::from_str(SCHEMAS).expect("the schemas are JSON, as a test shows");
    json!({
        "schemas": schemas,
        "examples": examples,
        "securitySchemes": {
            "bearer": {
                "type": "http",
                "scheme": "bearer",
                "bearerFormat": "JWT",
                "description": "A token of a trusted issuer, where the server asks for tokens."
            },
            "key": {
                "type": "http",
                "scheme": "bearer",
                "description": "A fixed key of the generic connector API, where the operator has chosen some."
            }
        }
    })
}

/// Returns a unique operation id. Below `/api/ledger` it has a suffix. If the id is taken, letters and digits of the
/// path follow.
fn unique_id(ids: &mut BTreeSet<String>, id: &str, prefix: &str, template: &str) -> String {
    let below = if prefix.starts_with("/api/ledger") { "_gateway" } else { "" };
    let words: String = template.chars().filter(char::is_ascii_alphanumeric).collect();
    let mut id = format!("{id}{below}");
    if !ids.insert(id.clone()) {
        // Health checks have several paths, and v1 and v2 share ids of operations.
        let mut named = format!("{id}_{words}");
        if !ids.insert(named.clone()) {
            let mount: String = prefix.chars().filter(char::is_ascii_alphanumeric).collect();
            named = format!("{id}_{mount}{words}");
            ids.insert(named.clone());
        }
        id = named;
    }
    id
}

fn operation(
    route: &Route,
    profile: Profile,
    described: &Description,
    id: &str,
    security: Option<Value>,
) -> Value {
    let variables = route.variables().map(|name| variable(name, route));
    let parameters: Vec<Value> = variables.chain(described.parameters.iter().map(parameter)).collect();
    let mut operation = json!({
        "operationId": id,
        "summary": described.summary,
        "description": described.details,
        "tags": [described.group],
        "responses": responses(route, profile, described)
    });
    if !parameters.is_empty() {
        operation["parameters"] = Value::Array(parameters);
    }
    if let Some(taken) = &described.body {
        operation["requestBody"] = body(taken);
    }
    if let Some(security) = security {
        operation["security"] = security;
    }
    operation
}

/// Returns the security requirements of a route, of which a request meets one, or `None` if the route is open or the
/// server requires neither tokens nor keys.
fn security(route: &Route, guard: Option<&Guard>, has_keys: bool) -> Option<Value> {
    if route.scope == Scope::Open {
        return None;
    }
    let scopes = |guard: &Guard| json!({"bearer": guard.accepted_scopes(route.mount.service(), route.scope)});
    let key = has_keys.then(|| json!({"key": []}));
    let either: Vec<Value> = guard.map(scopes).into_iter().chain(key).collect();
    (!either.is_empty()).then_some(Value::Array(either))
}

fn parameter(parameter: &Parameter) -> Value {
    let schema: Value = serde_json::from_str(parameter.schema).expect("the schema is JSON, as a test shows");
    let location = match parameter.location {
        ParameterLocation::Query => "query",
        ParameterLocation::Header => "header",
    };
    let mut described =
        json!({"name": parameter.name, "in": location, "schema": schema, "description": parameter.summary});
    if schema["type"] == "object" {
        described["style"] = json!("deepObject");
    }
    described
}

fn body(body: &Body) -> Value {
    let contents = body.contents.iter().filter_map(|(content_type, what)| {
        let (_, schema) = content(*what)?;
        Some(((*content_type).to_owned(), media(&schema, examples::reference(content_type, *what))))
    });
    let contents: Map<String, Value> = contents.collect();
    json!({"required": body.required, "content": contents})
}

/// Returns the description of an operation.
fn describe(operation: Operation) -> Description {
    match operation {
        Operation::V1(operation) => v1::describe(operation),
        Operation::V2(operation) => v2::describe(operation),
        Operation::Auth(operation) => auth::describe(operation),
        Operation::Payments(operation) => payments::describe(operation),
        Operation::Generic(operation) => payments::generic(operation),
        Operation::Info(form) => service::info(form),
        Operation::Health(form) => service::health(form),
        Operation::Versions => service::versions(),
        Operation::Document(form) => service::document(form),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Visits `value` and every value below it.
    fn walk<'a>(value: &'a Value, visit: &mut dyn FnMut(&'a Value)) {
        visit(value);
        match value {
            Value::Object(members) => members.values().for_each(|member| walk(member, visit)),
            Value::Array(items) => items.iter().for_each(|item| walk(item, visit)),
            _ => {}
        }
    }

    /// Returns the document as the server sends it.
    fn described() -> Value {
        serde_json::from_str(&document(None, &Settings::default()).to_json()).expect("JSON")
    }

    /// Returns method, path and group of every operation in the order of the document.
    fn order(document: &Document) -> Vec<(&str, &str, &str)> {
        let mut order = vec![];
        for (path, item) in document.paths.items() {
            for (method, operation) in item {
                order.push((method.as_str(), path.as_str(), operation["tags"][0].as_str().expect("a tag")));
            }
        }
        order
    }

    #[test]
    fn ledger_comes_first_and_aliases_last() {
        let document = document(None, &Settings::default());
        let order = order(&document);
        let at = |method: &str, path: &str| {
            let found = order.iter().position(|known| (known.0, known.1) == (method, path));
            found.unwrap_or_else(|| panic!("{method} {path}"))
        };
        assert_eq!(at("post", "/v2/{ledger}"), 0);
        let steps = [
            ("post", "/v2/{ledger}"),
            ("get", "/v2"),
            ("post", "/v2/{ledger}/transactions"),
            ("get", "/v2/{ledger}/transactions/{id}"),
            ("get", "/v2/{ledger}/accounts"),
            ("get", "/v2/{ledger}/logs"),
            ("post", "/v2/{ledger}/schemas/{version}"),
            ("delete", "/v2/_/buckets/{bucket}"),
            ("post", "/{ledger}/transactions"),
            ("post", "/api/payments/connectors/{connector}"),
            ("get", "/api/payments/payments"),
            ("get", "/api/generic/accounts"),
            ("post", "/api/auth/clients"),
            ("get", "/versions"),
            ("get", "/api/ledger/{ledger}/logs"),
        ];
        for pair in steps.windows(2) {
            assert!(at(pair[0].0, pair[0].1) < at(pair[1].0, pair[1].1), "{pair:?}");
        }
        let first_alias = order.iter().position(|(_, path, _)| path.starts_with("/api/ledger"));
        let own = order.iter().rposition(|(_, path, _)| !path.starts_with("/api/ledger")).expect("a path");
        assert!(first_alias > Some(own), "an alias precedes {:?}", order[own]);
        let ranks: Vec<usize> = order.iter().map(|(_, _, group)| tags::rank(group)).collect();
        assert!(ranks.is_sorted() && !ranks.contains(&tags::rank("")), "{ranks:?}");
    }

    #[test]
    fn resources_are_deleted_after_they_are_read() {
        let document = document(None, &Settings::default());
        let order = order(&document);
        for (at, (method, path, _)) in
            order.iter().enumerate().filter(|(_, (method, ..))| *method == "delete")
        {
            // Of the same path, or of one above it.
            let read = order.iter().skip(at).find(|(method, above, _)| {
                let below = path.strip_prefix(above);
                *method == "get" && below.is_some_and(|below| below.is_empty() || below.starts_with('/'))
            });
            assert_eq!(read, None, "is read after {method} {path}");
        }
    }

    #[test]
    fn texts_keep_the_order() {
        let document = document(None, &Settings::default());
        for text in [document.to_json(), document.to_yaml()] {
            let mut rest = text.as_str();
            for (path, item) in document.paths.items() {
                let methods =
                    item.iter().map(|(method, _)| [format!("\"{method}\":"), format!("\n    {method}:")]);
                for names in [[format!("\"{path}\":"), String::new()]].into_iter().chain(methods) {
                    let found = names.iter().filter(|name| !name.is_empty()).find_map(|name| rest.find(name));
                    rest = &rest[found.unwrap_or_else(|| panic!("{names:?} of {path}"))..];
                }
            }
        }
    }

    #[test]
    fn exactly_the_routes_are_described() {
        let document = described();
        let mut described = 0;
        for route in routes() {
            for (prefix, _) in route.mount.prefixes() {
                let path = format!("{prefix}{}", route.template);
                let path = path.strip_suffix('/').filter(|path| !path.is_empty()).unwrap_or(&path);
                let operation = &document["paths"][path][route.method.to_ascii_lowercase()];
                assert!(operation.is_object(), "{} {path}", route.method);
                described += 1;
            }
        }
        let paths = document["paths"].as_object().expect("paths");
        let operations: usize = paths.values().filter_map(Value::as_object).map(Map::len).sum();
        assert_eq!(operations, described);
    }

    #[test]
    fn references_and_schemas_match() {
        let document = described();
        let mut used = BTreeSet::new();
        walk(&document, &mut |value| {
            if let Some(reference) = value.get("$ref").and_then(Value::as_str) {
                let name = reference.strip_prefix("#/components/").expect("a component");
                assert!(document.pointer(&reference[1..]).is_some_and(Value::is_object), "{reference}");
                used.insert(name.to_owned());
            }
        });
        let names = |kind: &'static str| {
            let all = document["components"][kind].as_object().expect("components");
            all.keys().map(move |name| format!("{kind}/{name}"))
        };
        let all = names("schemas").chain(names("examples"));
        let unused: Vec<_> = all.filter(|name| !used.contains(name)).collect();
        assert!(unused.is_empty(), "{unused:?}");
    }

    #[test]
    fn operations_have_descriptions_of_their_own() {
        let mut seen: Vec<(Mount, &str, Operation)> = Vec::new();
        for route in routes() {
            let id = describe(route.operation).id;
            let same = seen.iter().find(|(mount, have, _)| *mount == route.mount && *have == id);
            let is_own = same.is_none_or(|(_, _, operation)| *operation == route.operation);
            assert!(is_own, "{:?} has the description {id} of another operation", route.operation);
            seen.push((route.mount, id, route.operation));
        }
    }

    #[test]
    fn every_example_is_used() {
        let document = described();
        let used = document["components"]["examples"].as_object().expect("examples");
        let all: Value = serde_json::from_str(include_str!("examples.json")).expect("JSON");
        for name in all.as_object().expect("examples by name").keys() {
            let forms = [name.clone(), format!("{name}.data"), format!("{name}.page")];
            assert!(forms.iter().any(|form| used.contains_key(form)), "{name}");
        }
    }

    /// Returns the quoted texts that follow one of these words in the sources of a folder.
    fn quoted_after(folder: &str, words: &[&str]) -> BTreeSet<String> {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/api").join(folder);
        let mut found = BTreeSet::new();
        for file in std::fs::read_dir(folder).expect("a folder of sources") {
            let source = std::fs::read_to_string(file.expect("a file").path()).expect("its text");
            // Parameters in tests are not parameters of operations.
            let source = source.split("#[cfg(test)]").next().unwrap_or_default();
            for (word, at) in
                words.iter().flat_map(|word| source.match_indices(word)).map(|(at, word)| (word, at))
            {
                let rest = &source[at + word.len()..];
                // One text, a list of texts, or a name that is defined elsewhere.
                let end = if word.ends_with('[') {
                    rest.find(']')
                } else {
                    rest.strip_prefix('"').and_then(|rest| rest.find('"')).map(|end| end + 2)
                };
                let part = &rest[..end.unwrap_or(0)];
                found.extend(part.split('"').skip(1).step_by(2).map(str::to_owned));
            }
        }
        found
    }

    #[test]
    fn every_used_parameter_is_described() {
        let document = described();
        let mut described = BTreeSet::new();
        walk(&document["paths"], &mut |value| {
            if let (Some("query"), Some(name)) = (value["in"].as_str(), value["name"].as_str()) {
                described.insert(name.to_owned());
            }
        });
        let words = [
            "query.get(",
            "query.flag(",
            "query.all(",
            "query.page_size(",
            "query.date(&[",
            "until: &[",
            "since: &[",
            "parameters: &[",
        ];
        let mut asked = quoted_after("ledger_v1", &words);
        asked.extend(quoted_after("ledger_v2", &words));
        assert!(asked.len() > 20 && asked.contains("pit") && asked.contains("after"), "{asked:?}");
        let missing: Vec<_> = asked.difference(&described).collect();
        assert!(missing.is_empty(), "{missing:?} are asked for and not described");
    }

    #[test]
    fn operations_are_as_the_standard_wants_them() {
        let document = described();
        let mut ids = BTreeSet::new();
        for (path, item) in document["paths"].as_object().expect("paths") {
            assert!(path.starts_with('/') && (path == "/" || !path.ends_with('/')), "{path}");
            for (method, operation) in item.as_object().expect("an item") {
                assert!(
                    ["get", "head", "post", "put", "patch", "delete"].contains(&method.as_str()),
                    "{path}"
                );
                let id = operation["operationId"].as_str().expect("an id");
                assert!(id.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'), "{id}");
                assert!(ids.insert(id.to_owned()), "{id} twice");
                assert!(!operation["summary"].as_str().expect("a summary").is_empty());
                let mut seen = BTreeSet::new();
                for parameter in operation["parameters"].as_array().into_iter().flatten() {
                    let key = (parameter["in"].as_str(), parameter["name"].as_str());
                    assert!(seen.insert(key), "{id}: {key:?} twice");
                    assert!(parameter["schema"].is_object(), "{id}: {key:?}");
                    if key.0 == Some("path") {
                        assert_eq!(parameter["required"], true, "{id}");
                        assert!(path.contains(&format!("{{{}}}", key.1.expect("a name"))), "{id}");
                    }
                }
                let variables = path.matches('{').count();
                assert_eq!(
                    seen.iter().filter(|(location, _)| *location == Some("path")).count(),
                    variables,
                    "{id}"
                );
                let responses = operation["responses"].as_object().expect("responses");
                // A redirect counts as a success.
                assert!(responses.keys().any(|status| status.starts_with(['2', '3'])), "{id}");
                for (status, response) in responses {
                    let number: u16 = status.parse().expect("a status");
                    assert!((200..600).contains(&number), "{id}");
                    assert!(response["description"].is_string(), "{id} {status}");
                    if method == "head" || number == 204 {
                        assert!(response["content"].is_null(), "{id} {status}");
                    }
                }
            }
        }
    }
}

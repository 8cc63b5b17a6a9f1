//! Examples of bodies. `examples.json` has one value for each schema. This module wraps the values in the forms of
//! responses. The document contains each example once and refers to it.

use std::sync::OnceLock;

use serde_json::{Map, Value, json};

use crate::api::openapi::description::{Content, Description};

const EXAMPLES: &str = include_str!("examples.json");

/// Returns the values by name of their schema, and the texts by content type.
fn values() -> &'static Value {
    static VALUES: OnceLock<Value> = OnceLock::new();
    VALUES.get_or_init(|| serde_json::from_str(EXAMPLES).expect("the examples are JSON, as a test shows"))
}

/// Returns the name and the value of an example. The example of a text that is not JSON is looked up
/// by its content type.
fn example(content_type: &str, content: Content) -> Option<(String, Value)> {
    let value = |name: &str| values().get(name).cloned();
    match content {
        Content::Empty => None,
        Content::Json(name) | Content::Filter(name) | Content::Yaml(name) => {
            Some((name.to_owned(), value(name)?))
        }
        Content::Data(name) => Some((format!("{name}.data"), json!({"data": value(name)?}))),
        Content::Cursor(name) => {
            let page = json!({"cursor": {"pageSize": 15, "hasMore": false, "data": [value(name)?]}});
            Some((format!("{name}.page"), page))
        }
        Content::Text(_) => {
            let name: String = content_type
                .chars()
                .map(|character| if character.is_ascii_alphanumeric() { character } else { '.' })
                .collect();
            let text = value(&name)?;
            Some((name, text))
        }
    }
}

/// Returns the `examples` of a body, which refer to the one example of the document.
pub(crate) fn reference(content_type: &str, content: Content) -> Option<Value> {
    let (name, _) = example(content_type, content)?;
    Some(json!({"example": {"$ref": format!("#/components/examples/{name}")}}))
}

/// Adds the examples to which the bodies of an operation refer.
pub(crate) fn collect(description: &Description, into: &mut Map<String, Value>) {
    let bodies = description.body.iter().flat_map(|body| body.contents).copied();
    let answers = description.answers.iter().filter(|answer| answer.status < 300).map(|answer| {
        let content_type = match answer.content {
            Content::Text(content_type) => content_type,
            _ => "",
        };
        (content_type, answer.content)
    });
    for (content_type, content) in bodies.chain(answers) {
        if let Some((name, value)) = example(content_type, content) {
            into.entry(name).or_insert_with(|| json!({"value": value}));
        }
    }
}

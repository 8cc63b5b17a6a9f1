//! Writes JSON values as YAML in block style.

use serde_json::Value;

/// Returns a value as YAML.
pub(crate) fn to_yaml(value: &Value) -> String {
    let mut out = String::new();
    write(value, 0, &mut out);
    out
}

/// Writes a member of the outermost mapping. Its own members and their members keep the given order.
pub(crate) fn write_ordered(name: &str, members: &[(String, Vec<(String, Value)>)], out: &mut String) {
    write_name(name, out);
    out.push_str(":\n");
    for (name, members) in members {
        indent(1, out);
        write_name(name, out);
        out.push_str(":\n");
        for (name, member) in members {
            indent(2, out);
            write_name(name, out);
            out.push(':');
            write_below(member, 2, out);
        }
    }
}

/// Writes a value. The caller has indented its first line.
fn write(value: &Value, depth: usize, out: &mut String) {
    match value {
        Value::Object(members) if !members.is_empty() => {
            for (at, (name, member)) in members.iter().enumerate() {
                if at > 0 {
                    indent(depth, out);
                }
                write_name(name, out);
                out.push(':');
                write_below(member, depth, out);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    indent(depth, out);
                }
                out.push_str("- ");
                write(item, depth + 1, out);
            }
        }
        // Scalars and empty collections have the same form in YAML and JSON.
        scalar => {
            out.push_str(&scalar.to_string());
            out.push('\n');
        }
    }
}

/// Writes the value of a key. A scalar or an empty collection goes on the line of the key.
fn write_below(value: &Value, depth: usize, out: &mut String) {
    let is_block = match value {
        Value::Object(members) => !members.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => false,
    };
    if is_block {
        out.push('\n');
        indent(depth + 1, out);
        write(value, depth + 1, out);
    } else {
        out.push(' ');
        write(value, depth, out);
    }
}

fn indent(depth: usize, out: &mut String) {
    out.extend(std::iter::repeat_n("  ", depth));
}

/// Words that some YAML parsers read as a value instead of a string.
const RESERVED: [&str; 9] = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];

fn write_name(name: &str, out: &mut String) {
    let is_plain = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
        && !RESERVED.iter().any(|word| name.eq_ignore_ascii_case(word));
    if is_plain {
        out.push_str(name);
    } else {
        // Every JSON string is a valid quoted string in YAML.
        out.push_str(&Value::from(name).to_string());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn blocks_scalars_and_names() {
        let value = json!({
            "a": {"b": [1, {"c": "x: y", "d": []}, ["n", null]], "200": {}},
            "no": true,
            "$ref": "#/x",
        });
        let text = to_yaml(&value);
        let expected = "\"$ref\": \"#/x\"\n\
                        a:\n  \"200\": {}\n  b:\n    - 1\n    - c: \"x: y\"\n      d: []\n    - - \"n\"\n      - null\n\
                        \"no\": true\n";
        assert_eq!(text, expected);
    }
}

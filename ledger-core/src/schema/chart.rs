//! Charts of accounts: trees of address segments that say which accounts a ledger should have.

use std::collections::BTreeMap;

use smol_str::SmolStr;

use super::SchemaError;
use crate::expression::Program;
use crate::json::Json;
use crate::limits::{CHART_PATTERN_PROGRAM_BYTES_MAX, CHART_PATTERNS_MAX, EXPRESSION_BYTES_MAX};
use ledger_values::{AccountAddress, Metadata, MetadataValue};

/// A tree of address segments. Some of its nodes are accounts that the ledger should have.
///
/// A node without children is an account; a node with children is one only if it says so. The name of a
/// variable child begins with `$`: it matches any segment, or those that contain a match of its pattern.
/// Fixed children take precedence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chart {
    /// The chart as given, with sorted members.
    json: Json,
    root: Segment,
    patterns: usize,
    has_defaults: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Segment {
    fixed: BTreeMap<SmolStr, Segment>,
    variable: Option<Box<Variable>>,
    account: Option<ChartAccount>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Variable {
    pattern: Option<Program>,
    segment: Segment,
}

/// An account of a chart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChartAccount {
    defaults: Metadata,
}

impl ChartAccount {
    /// Returns the default metadata of the account.
    pub fn defaults(&self) -> &Metadata {
        &self.defaults
    }
}

/// Reason why a part of a chart is refused, without its position.
struct Refusal(String);

/// Compiles a pattern, which may match anywhere in a segment.
fn compile(text: &str) -> Result<Program, Refusal> {
    if text.len() > EXPRESSION_BYTES_MAX {
        return Err(Refusal(format!("the pattern has more than {EXPRESSION_BYTES_MAX} bytes")));
    }
    Program::compile(text, CHART_PATTERN_PROGRAM_BYTES_MAX).map_err(|error| Refusal(error.to_string()))
}

/// Members that describe a node instead of naming a child.
const SELF: &str = ".self";
const METADATA: &str = ".metadata";
const RULES: &str = ".rules";
const PATTERN: &str = ".pattern";

impl Chart {
    /// Reads a chart.
    ///
    /// # Errors
    ///
    /// [`SchemaError`] with the position and the fault.
    pub fn read(json: &Json) -> Result<Self, SchemaError> {
        let json = json.clone().sorted();
        let members = json.members().ok_or_else(|| SchemaError::new("'chart' must be an object"))?;
        let mut reading = Reading { patterns: 0, has_defaults: false };
        let mut root = Segment::default();
        for (name, value) in members {
            if !is_segment_name(name) || name.starts_with(['$', '.']) {
                return Err(SchemaError::new(format!("'{}' is no fixed name of an account", short(name))));
            }
            root.fixed.insert(name.clone(), reading.segment(name, value, false)?.1);
        }
        let Reading { patterns, has_defaults } = reading;
        Ok(Self { json, root, patterns, has_defaults })
    }

    /// Finds the account of an address. Every chart contains `world`.
    pub fn find(&self, address: &AccountAddress) -> Option<&ChartAccount> {
        static WORLD: ChartAccount = ChartAccount { defaults: Metadata::EMPTY };
        let mut at = Some(&self.root);
        for name in address.segments() {
            at = at.and_then(|segment| segment.below(name));
        }
        at.and_then(|segment| segment.account.as_ref()).or_else(|| address.is_world().then_some(&WORLD))
    }

    /// Tells whether any account has default metadata.
    pub fn has_defaults(&self) -> bool {
        self.has_defaults
    }

    /// Returns the chart as JSON with sorted members.
    pub fn json(&self) -> &Json {
        &self.json
    }

    /// Returns the number of compiled patterns.
    pub(super) fn patterns(&self) -> usize {
        self.patterns
    }
}

impl Segment {
    /// Returns the child for a segment of an address.
    fn below(&self, name: &str) -> Option<&Segment> {
        if let Some(fixed) = self.fixed.get(name) {
            return Some(fixed);
        }
        let variable = self.variable.as_ref()?;
        let fits = variable.pattern.as_ref().is_none_or(|pattern| pattern.is_match(name));
        fits.then_some(&variable.segment)
    }
}

/// Counters of the limits while a chart is read.
struct Reading {
    patterns: usize,
    has_defaults: bool,
}

impl Reading {
    /// Reads a node with its children, and its pattern.
    fn segment(
        &mut self,
        path: &str,
        json: &Json,
        is_variable: bool,
    ) -> Result<(Option<Program>, Segment), SchemaError> {
        let wrong = |what: &str| SchemaError::new(format!("'{}': {what}", short(path)));
        let members = json.members().ok_or_else(|| wrong("a segment must be an object"))?;
        let mut segment = Segment::default();
        let (mut pattern, mut is_account, mut describes_account) = (None, false, false);
        let mut defaults = Metadata::EMPTY;
        for (name, value) in members {
            let below = || format!("{path}:{name}");
            match name.as_str() {
                SELF => {
                    if value.members().is_none_or(|members| !members.is_empty()) {
                        return Err(wrong("'.self' must be an empty object"));
                    }
                    is_account = true;
                }
                METADATA => {
                    describes_account = true;
                    defaults = metadata(value).map_err(|Refusal(reason)| wrong(&reason))?;
                }
                RULES => {
                    describes_account = true;
                    value.members().ok_or_else(|| wrong("'.rules' must be an object"))?;
                }
                PATTERN if is_variable => {
                    let text = value.as_text().ok_or_else(|| wrong("'.pattern' must be a string"))?;
                    self.patterns += 1;
                    if self.patterns > CHART_PATTERNS_MAX {
                        return Err(wrong(&format!("a chart has at most {CHART_PATTERNS_MAX} patterns")));
                    }
                    let compiled = compile(text);
                    pattern = Some(
                        compiled
                            .map_err(|Refusal(reason)| wrong(&format!("invalid '.pattern': {reason}")))?,
                    );
                }
                PATTERN => return Err(wrong("only a variable segment has a '.pattern'")),
                name if !is_segment_name(name) => {
                    return Err(wrong(&format!("invalid segment name '{}'", short(name))));
                }
                name if name.starts_with('.') => {
                    return Err(wrong(&format!("unknown property '{}'", short(name))));
                }
                name if name.starts_with('$') => {
                    let (pattern, child) = self.segment(&below(), value, true)?;
                    let variable = Variable { pattern, segment: child };
                    if segment.variable.replace(Box::new(variable)).is_some() {
                        return Err(wrong("a level has one variable segment at most"));
                    }
                }
                _ => {
                    segment.fixed.insert(name.clone(), self.segment(&below(), value, false)?.1);
                }
            }
        }
        if is_account || (segment.fixed.is_empty() && segment.variable.is_none()) {
            self.has_defaults |= !defaults.is_empty();
            segment.account = Some(ChartAccount { defaults });
        } else if describes_account {
            return Err(wrong("only an account has '.metadata' and '.rules': it lacks '.self'"));
        }
        Ok((pattern, segment))
    }
}

/// Reads the default metadata of an account: the keys that have a default.
fn metadata(json: &Json) -> Result<Metadata, Refusal> {
    let members = json.members().ok_or_else(|| Refusal("'.metadata' must be an object".to_owned()))?;
    let mut defaults = Metadata::EMPTY;
    for (key, value) in members {
        if value.members().is_none() {
            return Err(Refusal(format!("'.metadata' '{}' must be an object", short(key))));
        }
        match value.get("default") {
            None | Some(Json::Null) => {}
            Some(Json::Text(text)) => {
                defaults.insert(key.clone(), MetadataValue::Text(text.clone()));
            }
            Some(_) => {
                return Err(Refusal(format!("'default' of '.metadata' '{}' must be a string", short(key))));
            }
        }
    }
    Ok(defaults)
}

/// Tests `^(\$|\.)?[a-zA-Z0-9_-]+$`.
fn is_segment_name(name: &str) -> bool {
    let word = name.strip_prefix(['$', '.']).unwrap_or(name);
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

/// Shortens a text for an error message.
pub(super) fn short(text: &str) -> String {
    text.chars().take(100).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(text: &str) -> Result<Chart, SchemaError> {
        Chart::read(&Json::parse(text).expect("JSON"))
    }

    #[test]
    fn finds_accounts_segment_by_segment() {
        let chart = chart(
            r#"{"bank":{},"fees":{"card":{},".self":{}},"shops":{"main":{"till":{}},
                "$shop":{".pattern":"^s[0-9]+$",".self":{},".metadata":{"level":{"default":"1"},"note":{}},
                    "$lane":{}}}}"#,
        )
        .expect("a chart");
        assert!(chart.has_defaults());
        for (address, known) in [
            ("bank", true),
            ("bank:x", false),
            ("fees", true),
            ("fees:card", true),
            ("fees:cards", false),
            ("shops", false),
            ("shops:main", false),
            ("shops:main:till", true),
            ("shops:s12", true),
            ("shops:s", false),
            ("shops:xs1", false),
            ("shops:s1:anything", true),
            ("shops:s1:a:b", false),
            ("world", true),
            ("world:x", false),
            ("other", false),
        ] {
            let found = chart.find(&AccountAddress::parse(address).expect(address));
            assert_eq!(found.is_some(), known, "{address}");
            let defaults = found.map_or(0, |account| account.defaults().len());
            assert_eq!(defaults, usize::from(address == "shops:s12"), "{address}");
        }
    }

    #[test]
    fn patterns_match_anywhere_unless_anchored() {
        let chart = chart(r#"{"a":{"$x":{".pattern":"[0-9]"}}}"#).expect("a chart");
        for (address, known) in [("a:b1c", true), ("a:bc", false)] {
            assert_eq!(chart.find(&AccountAddress::parse(address).expect(address)).is_some(), known);
        }
    }

    #[test]
    fn refuses_bad_charts_with_their_position() {
        for (text, what) in [
            ("[]", "'chart' must be an object"),
            (r#"{"$x":{}}"#, "'$x' is no fixed name"),
            (r#"{".self":{}}"#, "'.self' is no fixed name"),
            (r#"{"a b":{}}"#, "'a b' is no fixed name"),
            (r#"{"a":1}"#, "'a': a segment must be an object"),
            (r#"{"a":{"b:c":{}}}"#, "'a': invalid segment name 'b:c'"),
            (r#"{"a":{"$":{}}}"#, "'a': invalid segment name '$'"),
            (r#"{"a":{"$x":{},"$y":{}}}"#, "'a': a level has one variable segment"),
            (r#"{"a":{".pattern":"x"}}"#, "'a': only a variable segment"),
            (r#"{"a":{"$x":{".pattern":1}}}"#, "'a:$x': '.pattern' must be a string"),
            (r#"{"a":{"$x":{".pattern":"("}}}"#, "'a:$x': invalid '.pattern': "),
            (r#"{"a":{".self":{"x":1}}}"#, "'a': '.self' must be an empty object"),
            (r#"{"a":{".self":true}}"#, "'a': '.self' must be an empty object"),
            (r#"{"a":{".foo":{}}}"#, "'a': unknown property '.foo'"),
            (r#"{"a":{".rules":1}}"#, "'a': '.rules' must be an object"),
            (r#"{"a":{"b":{},".metadata":{}}}"#, "'a': only an account has"),
            (r#"{"a":{".metadata":{"k":"v"}}}"#, "'a': '.metadata' 'k' must be an object"),
            (
                r#"{"a":{".metadata":{"k":{"default":1}}}}"#,
                "'a': 'default' of '.metadata' 'k' must be a string",
            ),
        ] {
            let error = chart(text).expect_err(text).to_string();
            assert!(error.starts_with(what), "{text}: {error}");
        }
    }
}

//! Limits of commands, filters and schemas, each with its reason. A request that exceeds one is refused.
//!
//! ```
//! use ledger_core::limits::{METADATA_BYTES_MAX, POSTINGS_MAX, PRECONDITIONS_MAX};
//! use ledger_core::{Command, CreateTransaction, Metadata, Posting, Rejection, check_sizes};
//! let mut metadata = Metadata::EMPTY;
//! metadata.insert_text("note", &"x".repeat(METADATA_BYTES_MAX));
//! let create = CreateTransaction { metadata, ..CreateTransaction::of(Vec::<Posting>::new().into()) };
//! let refused = check_sizes(&Command::CreateTransaction(create)).unwrap_err();
//! assert_eq!(refused, Rejection::MetadataTooLarge { bytes: METADATA_BYTES_MAX + 4 });
//! let refused = Rejection::TooManyPreconditions { accounts: PRECONDITIONS_MAX + 1 };
//! assert_eq!(refused.to_string(), "too many preconditions: 20001 accounts, at most 20000");
//! let refused = Rejection::TooManyPostings { postings: POSTINGS_MAX + 1 };
//! assert_eq!(refused.to_string(), "too many postings: 10001, at most 10000");
//! ```
//!
//! ```
//! use ledger_core::limits::{FILTER_DEPTH_MAX, FILTER_NODES_MAX, LIKE_PATTERN_BYTES_MAX};
//! use ledger_core::{Accounts, FilterError, FilterOf, Operator};
//! let pattern = |bytes: usize| FilterOf::<Accounts>::field("metadata[kind]", Operator::Like, "x".repeat(bytes));
//! let longest = pattern(LIKE_PATTERN_BYTES_MAX)?;
//! assert_eq!(pattern(LIKE_PATTERN_BYTES_MAX + 1), Err(FilterError::PatternTooLong));
//! let deep = (1..FILTER_DEPTH_MAX).try_fold(longest.clone(), |filter, _| filter.negated())?;
//! assert_eq!(deep.negated(), Err(FilterError::TooDeep));
//! let wide = (2..FILTER_NODES_MAX).try_fold(longest.clone(), |filter, _| filter.and(longest.clone()))?;
//! assert_eq!(wide.and(longest), Err(FilterError::TooManyNodes));
//! # Ok::<(), ledger_core::FilterError>(())
//! ```
//!
//! ```
//! use ledger_core::limits::{EXPRESSION_BYTES_MAX, EXPRESSION_DEPTH_MAX, EXPRESSION_PROGRAM_BYTES_MAX};
//! use ledger_core::AddressExpression;
//! let is_accepted = |text: &str| AddressExpression::anywhere(text).is_ok();
//! let nested = |depth: u32| (0..depth).fold("a".to_owned(), |inner, _| format!("({inner})"));
//! assert!(is_accepted(&"a".repeat(EXPRESSION_BYTES_MAX)) && !is_accepted(&"a".repeat(EXPRESSION_BYTES_MAX + 1)));
//! assert!(is_accepted(&nested(EXPRESSION_DEPTH_MAX)) && !is_accepted(&nested(EXPRESSION_DEPTH_MAX + 1)));
//! assert!(!is_accepted(&format!("a{{{EXPRESSION_PROGRAM_BYTES_MAX}}}")));
//! ```
//!
//! ```
//! use ledger_core::limits::{
//!     CHART_PATTERN_PROGRAM_BYTES_MAX, CHART_PATTERNS_MAX, JSON_DEPTH_MAX, SCHEMA_BYTES_MAX,
//! };
//! use ledger_core::schema::Schema;
//! let refusal = |chart: String| Schema::parse(&format!(r#"{{"chart":{{{chart}}}}}"#)).unwrap_err().to_string();
//! let large = refusal(format!(r#""users":{{".rules":{{"note":"{}"}}}}"#, "x".repeat(SCHEMA_BYTES_MAX)));
//! assert_eq!(large, "a schema has at most 524288 bytes");
//! let users = |at: usize, pattern: &str| format!(r#""users{at}":{{"$id":{{".pattern":"{pattern}"}}}}"#);
//! let all: Vec<_> = (0..=CHART_PATTERNS_MAX).map(|at| users(at, "[0-9]")).collect();
//! assert!(refusal(all.join(",")).ends_with("a chart has at most 512 patterns"));
//! let repeated = refusal(users(0, &format!("a{{{CHART_PATTERN_PROGRAM_BYTES_MAX}}}")));
//! assert!(repeated.ends_with("invalid '.pattern': the pattern is too large"));
//! let deep = |levels: usize| Schema::parse(&("[".repeat(levels) + &"]".repeat(levels))).unwrap_err().to_string();
//! assert_eq!(deep(JSON_DEPTH_MAX), "a schema must be an object");
//! assert_ne!(deep(JSON_DEPTH_MAX + 1), "a schema must be an object");
//! ```

pub use ledger_numscript::limits::*;
pub use ledger_values::limits::*;

/// Maximum number of postings in a transaction. Bounds the work of one command.
pub const POSTINGS_MAX: usize = 10_000;

/// Maximum number of accounts in the preconditions of a command: those that the largest transaction names. Bounds the
/// reads of one command.
pub const PRECONDITIONS_MAX: usize = 2 * POSTINGS_MAX;

/// Maximum number of bytes in the keys and values of one set of metadata. Bounds the size of a log entry.
pub const METADATA_BYTES_MAX: usize = 64 * 1_024;

/// Maximum number of nodes of a filter. Bounds the work of testing one row.
pub const FILTER_NODES_MAX: usize = 100;

/// Maximum nesting of a filter, where a single condition has depth 1. Bounds the recursion of the evaluation.
pub const FILTER_DEPTH_MAX: usize = 10;

/// Maximum length of a regular expression over addresses in bytes. A match takes time in proportion to the
/// product of expression and address.
pub const EXPRESSION_BYTES_MAX: usize = 512;

/// Maximum size of a compiled expression in bytes. The ledger refuses larger ones.
pub const EXPRESSION_PROGRAM_BYTES_MAX: usize = 1_024 * 1_024;

/// Maximum nesting of groups in an expression. Bounds the recursion of its compiler.
pub const EXPRESSION_DEPTH_MAX: u32 = 50;

/// Maximum nesting of the JSON of a schema. Bounds all recursion over it.
pub const JSON_DEPTH_MAX: usize = 64;

/// Maximum length of the text of a schema in bytes. A schema is one log entry and one document of the index.
pub const SCHEMA_BYTES_MAX: usize = 512 * 1_024;

/// Maximum number of patterns in a chart of accounts. Each one is compiled.
pub const CHART_PATTERNS_MAX: usize = 512;

/// Maximum size of a compiled pattern of a chart in bytes. The ledger refuses larger ones.
pub const CHART_PATTERN_PROGRAM_BYTES_MAX: usize = 64 * 1_024;

/// Maximum length of a `$like` pattern in bytes. A match takes time in proportion to the product of pattern
/// and text.
pub const LIKE_PATTERN_BYTES_MAX: usize = 256;

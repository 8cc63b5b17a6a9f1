//! Every limit of a value, in one place, each with its reason.

/// Longest account address, in bytes.
///
/// The wire sets no limit; a key of the index and an inline name want one. Longer than any address in
/// the recorded conversations by a factor of ten.
pub const ADDRESS_BYTES_MAX: usize = 1_024;

/// Longest asset: 17 letters and digits, `_` with 16 letters, `/` with 6 digits.
pub const ASSET_BYTES_MAX: usize = 41;

/// Longest ledger or bucket name (`spec`: 1 to 63 of letters, digits, `_`, `-`).
pub const LEDGER_NAME_BYTES_MAX: usize = 63;

/// Most decimal digits of an amount. Clients send up to 87; the limit keeps parsing linear in practice.
pub const AMOUNT_DIGITS_MAX: usize = 1_000;

/// Longest transaction reference, in bytes.
pub const REFERENCE_BYTES_MAX: usize = 4_096;

/// Longest idempotency key, in characters, as in the column of servers of this API.
pub const IDEMPOTENCY_KEY_CHARS_MAX: usize = 255;

/// Most postings of one transaction; bounds the work of one command.
pub const POSTINGS_MAX: usize = 10_000;

/// Most bytes of keys and values of one set of metadata.
pub const METADATA_BYTES_MAX: usize = 64 * 1_024;

/// Most nodes of a filter; bounds the work of testing one row.
pub const FILTER_NODES_MAX: usize = 100;

/// Deepest nesting of a filter, a lone condition being 1; bounds the recursion of its evaluation.
pub const FILTER_DEPTH_MAX: usize = 10;

/// Longest regular expression over addresses, in bytes. A test takes time by the product of pattern and text.
pub const EXPRESSION_BYTES_MAX: usize = 512;

/// Most bytes that a compiled expression takes; beyond it the pattern is refused.
pub const EXPRESSION_PROGRAM_BYTES_MAX: usize = 1_024 * 1_024;

/// Deepest nesting of groups in an expression; bounds the recursion of its compiler.
pub const EXPRESSION_DEPTH_MAX: u32 = 50;

/// Deepest nesting of the JSON of a schema; bounds all recursion over it.
pub const JSON_DEPTH_MAX: usize = 64;

/// Longest name of a schema version, in bytes. The wire sets no limit; a key of the index wants one.
pub const SCHEMA_VERSION_BYTES_MAX: usize = 255;

/// Most bytes of the text of a schema: it is one entry of a log and one document of the index.
pub const SCHEMA_BYTES_MAX: usize = 512 * 1_024;

/// Most patterns of a chart of accounts, each of which is compiled.
pub const CHART_PATTERNS_MAX: usize = 512;

/// Most bytes that a compiled pattern of a chart takes; beyond it the pattern is refused.
pub const CHART_PATTERN_PROGRAM_BYTES_MAX: usize = 64 * 1_024;

/// Longest pattern of `$like`, in bytes. A test takes time by the product of pattern and text.
pub const LIKE_PATTERN_BYTES_MAX: usize = 256;

/// Longest script, in bytes.
pub const SCRIPT_BYTES_MAX: usize = 1_024 * 1_024;

/// Deepest nesting of a script's sources, destinations, expressions and comments; bounds all recursion over it.
pub const SCRIPT_DEPTH_MAX: usize = 128;

/// Most variables that a script declares, as in other engines of the language.
pub const SCRIPT_VARIABLES_MAX: usize = 32_768;

/// Most decimal digits of a number or a portion in a script or in a variable.
pub const SCRIPT_DIGITS_MAX: usize = 1_000;

/// Most bits of the common denominator of one allotment's shares: more of them than a thousand digits can
/// hold would make its sum cost more than the rest of the script.
pub const SCRIPT_SHARE_BITS_MAX: usize = 16_384;

/// Furthest distance of two precisions of one asset that scaling converts between: it multiplies by ten to
/// this power.
pub const SCRIPT_SCALE_DISTANCE_MAX: u32 = 64;

/// Most bytes of the texts that a script reads (variables and metadata, each as often as it is read), and of those
/// that it writes: a short script can repeat a long text very often.
pub const SCRIPT_TEXT_BYTES_MAX: usize = 1_024 * 1_024;

/// Longest name of a colour in a script. A ledger holds far shorter ones.
pub const SCRIPT_COLOR_BYTES_MAX: usize = 1_024;

/// Most rounds of questions that a script asks before its variables are known; each looks at all of them.
pub const SCRIPT_ROUNDS_MAX: usize = 128;

/// Most accounts, each with each asset, that a script pays from by scaling: for each, all that the account holds is
/// looked through.
pub const SCRIPT_SCALED_MAX: usize = 1_000;

/// Most precisions of one asset that an account may hold to pay by scaling: each payment looks at all of them.
pub const SCRIPT_PRECISIONS_MAX: usize = 256;

/// Most syntax errors that are reported of one script.
pub const SCRIPT_ERRORS_MAX: usize = 20;

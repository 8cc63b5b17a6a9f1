//! Limits of scripts, each with its reason.

/// Maximum length of a script in bytes. Bounds the memory of its trees.
pub const SCRIPT_BYTES_MAX: usize = 1_024 * 1_024;

/// Returns an offset in a script, or a count of its parts, as 32 bits. [`SCRIPT_BYTES_MAX`] bounds both.
#[expect(clippy::cast_possible_truncation, reason = "a script has far fewer than 2^32 bytes")]
pub(crate) const fn to_u32(count: usize) -> u32 {
    count as u32
}

/// Maximum nesting of sources, destinations, expressions and comments. Bounds all recursion over a script.
pub const SCRIPT_DEPTH_MAX: usize = 128;

/// Maximum number of declared variables. Other engines of the language have the same limit.
pub const SCRIPT_VARIABLES_MAX: usize = 32_768;

/// Maximum number of decimal digits of a number or portion. Keeps the time to parse linear in practice.
pub const SCRIPT_DIGITS_MAX: usize = 1_000;

/// Maximum number of bits of the common denominator of an allotment. A thousand digits fit; larger
/// denominators would make the sum cost more than the rest of the script.
pub const SCRIPT_SHARE_BITS_MAX: usize = 16_384;

/// Maximum distance between two precisions of one asset that scaling converts. Scaling multiplies by ten to
/// this power.
pub const SCRIPT_SCALE_DISTANCE_MAX: u32 = 64;

/// Maximum number of bytes of text that a run reads, and of those that it writes. Texts count as often as
/// they are used, because a short script can repeat a long text.
pub const SCRIPT_TEXT_BYTES_MAX: usize = 1_024 * 1_024;

/// Maximum length of a colour in bytes. Ledgers accept far shorter ones.
pub const SCRIPT_COLOR_BYTES_MAX: usize = 1_024;

/// Maximum number of rounds of questions before all variables are known. Each round looks at all variables.
pub const SCRIPT_ROUNDS_MAX: usize = 128;

/// Maximum number of pairs of account and asset that pay by scaling. For each pair, the run examines all
/// holdings of the account.
pub const SCRIPT_SCALED_MAX: usize = 1_000;

/// Maximum number of precisions of one asset in an account that pays by scaling. Each payment examines all of
/// them.
pub const SCRIPT_PRECISIONS_MAX: usize = 256;

/// Maximum number of syntax errors reported for one script. Bounds the report.
pub const SCRIPT_ERRORS_MAX: usize = 20;

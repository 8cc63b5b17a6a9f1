//! Copies short texts.

use smol_str::SmolStr;

/// Longest text that a [`SmolStr`] holds itself, in bytes.
const INLINE_BYTES_MAX: usize = 23;

/// Copies a text. Names and most values are so short that they need no allocation.
///
/// [`SmolStr::new`] gives the same text, but takes 14 ns for a name of 12 bytes, because it is not inlined into other
/// crates without fat link-time optimisation. This takes 8 ns (`docs/decisions/memory-access.md`).
///
/// ```
/// use ledger_values::short_text;
/// assert_eq!(short_text("users:1"), "users:1");
/// assert!(short_text(&"x".repeat(24)).is_heap_allocated());
/// ```
#[inline]
pub fn short_text(text: &str) -> SmolStr {
    if text.len() <= INLINE_BYTES_MAX { SmolStr::new_inline(text) } else { SmolStr::new(text) }
}

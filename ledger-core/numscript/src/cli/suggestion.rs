//! Suggestions for unknown words of a command line.

/// Minimum similarity of a suggested word, from 0 to 1. A less similar word would confuse.
const LIKENESS_MIN: f64 = 0.75;

/// Returns `, did you mean "…"?` with the known word that is most similar to an unknown one, or an empty text if none
/// is similar enough. The names of options include their dashes.
///
/// # Examples
///
/// ```
/// use ledger_numscript::cli::suggestion;
///
/// assert_eq!(suggestion("chekc", ["check", "run"]), ", did you mean \"check\"?");
/// assert_eq!(suggestion("xyzzy", ["check", "run"]), "");
/// ```
pub fn suggestion<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let word = word.trim_start_matches('-');
    let likeness = |name: &&str| strsim::jaro_winkler(word, name.trim_start_matches('-'));
    let best = known.into_iter().max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
    match best.filter(|name| likeness(name) >= LIKENESS_MIN) {
        Some(name) => format!(", did you mean {name:?}?"),
        None => String::new(),
    }
}

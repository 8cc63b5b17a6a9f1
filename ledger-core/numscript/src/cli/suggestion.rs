//! Suggestions for unknown words of a command line.

/// Minimum likeness, of 1, of a word that is suggested. A word that is less alike would confuse.
const LIKENESS_MIN: f64 = 0.75;

/// Returns `, did you mean "…"?` with the known word that is most like an unknown one, or nothing if none is much like it.
/// The names of options come with their dashes.
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

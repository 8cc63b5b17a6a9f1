//! Fuzz target: laws of address patterns.

use ledger_core::{AccountAddress, AddressPattern};

/// Reads two lines of text: a pattern and an address.
pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let (text, address) = text.split_once('\n').unwrap_or((text, text));
    let pattern = AddressPattern::parse(text);
    assert_eq!(pattern.as_str(), text);
    if let Some(exact) = pattern.exact() {
        assert!(pattern.matches(exact.as_str()), "{text:?} names {exact} and does not match it");
        assert!(pattern.can_match());
    }
    let Ok(address) = AccountAddress::parse(address) else { return };
    let own = AddressPattern::of(&address);
    assert!(own.matches(address.as_str()));
    assert_eq!(own.exact().as_ref(), Some(&address));
    if !pattern.matches(address.as_str()) {
        return;
    }
    assert!(pattern.can_match(), "{text:?} matches {address}");
    assert!(address.as_str().starts_with(pattern.literal_prefix()), "{text:?} matches {address}");
    if let Some(exact) = pattern.exact() {
        assert_eq!(exact, address, "{text:?}");
    }
    // A pattern with an open end also matches longer addresses.
    let longer = format!("{address}:more");
    if text == "..." || text.ends_with(":...") {
        assert!(pattern.matches(&longer), "{text:?} matches {address} and not {longer}");
    } else {
        assert!(!pattern.matches(&longer), "{text:?} matches {address} and {longer}");
    }
}

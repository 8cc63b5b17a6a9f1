//! Fuzz target: a connector parses any response of its provider without a panic, and its result is not much larger than
//! the response.

use std::cell::OnceCell;

use stack_server::testing::ConnectorsUnderTest;

thread_local! {
    static CONNECTORS: OnceCell<ConnectorsUnderTest> = const { OnceCell::new() };
}

fn connectors() -> ConnectorsUnderTest {
    let made = rcgen::generate_simple_self_signed(["client".to_owned()]).expect("a certificate");
    let thread = std::thread::current().id();
    let folder = std::env::temp_dir().join(format!("fuzz-provider-{}-{thread:?}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    ConnectorsUnderTest::new(&made.cert.pem(), &made.signing_key.serialize_pem(), &folder)
}

/// Reads a byte that selects the call of a connector, a line with the state of the task, and the response.
pub fn run(data: &[u8]) {
    let Some((number, rest)) = data.split_first() else { return };
    let end = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
    let state = String::from_utf8_lossy(&rest[..end]);
    let answer = rest.get(end + 1..).unwrap_or_default();
    CONNECTORS.with(|made| made.get_or_init(connectors).call(*number, &state, answer));
}

//! Runs the commands of the section about payments in the README of the repository.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::client::TestServer;
use crate::http_docs::send;
use crate::payments::{rows, until};

/// Maximum time from the installation of a connector until its payments and balances are there.
const SHOWN_WITHIN: Duration = Duration::from_secs(10);

/// Returns the commands of a section, with one element for each.
fn commands(section: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../README.md");
    let text = std::fs::read_to_string(path).expect("the README is there");
    let section = text.split("\n## ").find(|part| part.starts_with(section)).expect("the section");
    let blocks = section.split("\n```").skip(1).step_by(2).filter_map(|block| block.strip_prefix("sh\n"));
    blocks.flat_map(|block| block.split("\n\n")).map(|command| command.trim().to_owned()).collect()
}

#[test]
fn shows_payments_and_balances_within_ten_seconds() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = TestServer::start();
    let began = Instant::now();
    let (mut id, mut answer) = (String::new(), String::new());
    for command in commands("Payments") {
        let command =
            command.replace("/tmp/files", folder.path().to_str().expect("UTF-8")).replace("$ID", &id);
        match command.strip_prefix("ID=$(curl ") {
            None => answer = send(&server, command.strip_prefix("curl ").expect("a command")),
            Some(install) => {
                let (install, _) = install.split_once(" | jq").expect("a command that reads the answer");
                let installed: Value = serde_json::from_str(&send(&server, install)).expect("JSON");
                id = installed["data"]["connectorID"].as_str().expect("an id").to_owned();
                until("all payments are there", || rows(&server, "/payments?pageSize=100").len() == 20);
            }
        }
    }
    let volumes: Value = serde_json::from_str(&answer).expect("the last answer is JSON");
    assert!(began.elapsed() < SHOWN_WITHIN, "{:?}", began.elapsed());
    let balances = volumes["cursor"]["data"].as_array().expect("balances");
    let of_connector =
        |row: &&Value| row["account"].as_str().is_some_and(|name| name.starts_with("payments:files:"));
    let total = |rows: &mut dyn Iterator<Item = &Value>| -> i64 {
        rows.map(|row| row["balance"].as_i64().expect("a balance")).sum()
    };
    assert_eq!(total(&mut balances.iter()), 0, "{volumes}");
    assert_ne!(balances.iter().filter(of_connector).count(), 0, "{volumes}");
}

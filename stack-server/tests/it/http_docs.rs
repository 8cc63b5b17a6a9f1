//! Sends the requests of the first steps in the documentation, and compares the responses with the documented ones.

use std::path::Path;

use serde_json::Value;

use crate::client::TestServer;

/// Splits a command line into words. Single quotes keep spaces and line ends together.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quoted) = (Vec::new(), String::new(), false);
    for character in line.chars() {
        match character {
            '\'' => quoted = !quoted,
            ' ' | '\n' if !quoted => {
                words.extend(Some(std::mem::take(&mut word)).filter(|word| !word.is_empty()));
            }
            other => word.push(other),
        }
    }
    words.extend(Some(word).filter(|word| !word.is_empty()));
    words
}

/// Sends the request of a `curl` command, and returns the body of the response.
pub(crate) fn send(server: &TestServer, command: &str) -> String {
    let words = words(command);
    let (mut method, mut path, mut body, mut headers) = ("GET", "", "", Vec::new());
    let mut rest = words.iter().map(String::as_str);
    while let Some(word) = rest.next() {
        let mut value = || rest.next().expect("an option has a value");
        match word {
            "-X" => method = value(),
            "-d" => body = value(),
            "-s" => {}
            "-H" => headers.push(value().split_once(": ").expect("a header has a value")),
            url => path = url.split_once(":8080").expect("an address of the server").1,
        }
    }
    // `curl` sends this content type.
    if !body.is_empty() && !headers.iter().any(|(name, _)| *name == "Content-Type") {
        headers.push(("Content-Type", "application/x-www-form-urlencoded"));
    }
    server.send(method, path, &headers, body).body
}

/// Returns whether a response contains all documented members. Lists must have the same length.
fn shows(shown: &Value, answer: &Value) -> bool {
    match (shown, answer) {
        (Value::Object(shown), Value::Object(answer)) => {
            shown.iter().all(|(key, value)| answer.get(key).is_some_and(|answer| shows(value, answer)))
        }
        (Value::Array(shown), Value::Array(answer)) => {
            shown.len() == answer.len()
                && shown.iter().zip(answer).all(|(shown, answer)| shows(shown, answer))
        }
        _ => shown == answer,
    }
}

#[test]
fn documented_requests_are_answered_as_shown() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/http.md");
    let text = std::fs::read_to_string(path).expect("the documentation is there");
    let server = TestServer::start();
    let mut requests = 0;
    let blocks = text.split("\n```").skip(1).step_by(2).filter_map(|block| block.strip_prefix("console\n"));
    for request in
        blocks.flat_map(|block| block.strip_prefix("$ curl ").expect("a command").split("\n$ curl "))
    {
        // A command ends at the first line end outside of quotes. Its response follows.
        let is_end = |at: &usize| request[..*at].matches('\'').count().is_multiple_of(2);
        let end = request.match_indices('\n').map(|(at, _)| at).find(is_end).unwrap_or(request.len());
        let (command, shown) = request.split_at(end);
        let answer = send(&server, command);
        if shown.trim().is_empty() {
            assert_eq!(answer, "", "{command}");
        } else {
            let shown: Value = serde_json::from_str(shown).expect("the answer that is shown is JSON");
            let answer = serde_json::from_str(&answer).expect("an answer is JSON");
            assert!(shows(&shown, &answer), "{command}: {answer:#}");
        }
        requests += 1;
    }
    assert!(requests > 8, "{requests} requests");
}

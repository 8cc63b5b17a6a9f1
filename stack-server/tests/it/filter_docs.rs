//! Runs the examples in the documentation of filters, against the server and against the library.

use std::net::TcpListener;
use std::path::Path;

use ledger_core::Operator;
use ledger_store::Store;
use stack_server::{Server, Settings};

use crate::client::TestServer;

/// Returns the text of a page of the documentation.
fn documentation(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs").join(name);
    std::fs::read_to_string(path).expect("the documentation is there")
}

/// Returns the number of rows that a filter selects, according to the server and to the library.
fn counts(server: &TestServer, store: &Store, resource: &str, filter: &str) -> (usize, u64) {
    let path = format!("/v2/main/{resource}?pageSize=100");
    let rows = server.send("GET", &path, &[("content-type", "application/json")], filter).is(200).json();
    let rows = rows["cursor"]["data"].as_array().expect("a page has rows").len();
    let ledger = store.ledger("main").expect("a name");
    let count = match resource {
        "accounts" => ledger.accounts().filter_json(filter).and_then(|list| list.count()),
        "transactions" => ledger.transactions().filter_json(filter).and_then(|list| list.count()),
        other => panic!("examples of {other} are not run"),
    };
    (rows, count.expect("the library takes the filter"))
}

#[test]
fn every_documented_filter_selects_as_shown() {
    let text = documentation("filters.md");
    let store = Store::in_memory();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let server = Server::start(&store, Settings::default(), listener).expect("a server");
    let server = TestServer { address: server.address(), server: Some(server) };
    server.post("/v2/main", "").is(204);
    let mut examples = 0;
    for block in text.split("\n```").skip(1).step_by(2) {
        let (kind, body) = block.split_once('\n').expect("a block has a first line");
        match kind.split(' ').collect::<Vec<_>>()[..] {
            ["json", "data"] => {
                server.post("/v2/main/_bulk", body).is(200);
            }
            ["json", resource, expected] => {
                let expected: usize = expected.parse().expect("a number behind the fence");
                let found = counts(&server, &store, resource, body);
                assert_eq!(found, (expected, expected as u64), "{body}");
                examples += 1;
            }
            ["rust" | "sh"] => {}
            _ => panic!("a block of {kind}"),
        }
    }
    assert!(examples > 10, "{examples} examples");
}

#[test]
fn documents_and_describes_every_operator() {
    let text = documentation("filters.md");
    let differences = documentation("api-compatibility.md");
    let document = TestServer::start().get("/openapi.json").is(200).json();
    let described = document["components"]["schemas"]["V2Filter"]["properties"].as_object().expect("members");
    let of_other_servers = ["$match", "$lt", "$lte", "$gt", "$gte", "$like", "$in", "$exists"];
    for operator in Operator::ALL {
        let name = operator.name();
        let is_listed = of_other_servers.contains(&name) || differences.contains(&format!("`{name}`"));
        assert!(is_listed, "docs/api-compatibility.md does not say that other servers lack {name}");
        assert!(text.contains(&format!("`{name}`")), "docs/filters.md does not describe {name}");
        assert!(text.contains(&format!("\"{name}\": ")), "docs/filters.md has no example of {name}");
        assert!(described.contains_key(name), "schemas.json does not describe {name}");
    }
    let of_nodes = ["$and", "$or", "$not"];
    let unknown =
        described.keys().find(|name| Operator::parse(name).is_none() && !of_nodes.contains(&name.as_str()));
    assert_eq!(unknown, None, "schemas.json describes an operator that `Operator::ALL` lacks");
}

//! Runs the examples in the documentation of filters, against the server and against the library, and uses every field
//! with every operator.

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;

use ledger_core::{FilterOf, Operator, Property, Resource, Timestamp, Transactions, limits};
use ledger_store::{Deleted, Direction, Ledger, LedgerError, Options, PageRequest, Start, Store};
use ledger_testkit::SetClock;
use serde_json::{Value, json};
use stack_server::{Server, Settings};

use crate::client::{Answer, TestServer};

/// Returns the text of a page of the documentation.
fn documentation(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs").join(name);
    std::fs::read_to_string(path).expect("the documentation is there")
}

/// Returns the blocks of code of a page: the words behind the opening fence, and the text.
fn blocks(page: &str) -> Vec<(Vec<&str>, &str)> {
    let blocks = page.split("\n```").skip(1).step_by(2);
    let blocks = blocks.map(|block| block.split_once('\n').expect("a block has a first line"));
    blocks.map(|(kind, text)| (kind.split(' ').collect(), text)).collect()
}

/// Returns the rows of a table with this head, cell by cell.
fn table<'a>(page: &'a str, head: &str) -> Vec<Vec<&'a str>> {
    let lines = page.lines().skip_while(|line| *line != head).skip(2);
    let rows = lines.take_while(|line| line.starts_with('|'));
    let rows: Vec<Vec<_>> =
        rows.map(|row| row.trim_matches('|').split('|').map(str::trim).collect()).collect();
    assert!(!rows.is_empty(), "docs/filters.md has no table {head}");
    rows
}

/// Returns the names in a cell that stand between backticks.
fn quoted(cell: &str) -> BTreeSet<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

/// Returns the name of a resource on the page.
fn name_of(resource: Resource) -> &'static str {
    match resource {
        Resource::Accounts => "accounts",
        Resource::Transactions => "transactions",
        Resource::Volumes => "volumes",
        Resource::AggregatedBalances => "balances",
        Resource::Logs => "logs",
        Resource::Ledgers => "ledgers",
        Resource::Schemas => "schemas",
    }
}

/// A server and its store with the data of the page.
struct Documented {
    server: TestServer,
    store: Store,
    ledger: Ledger,
}

impl Documented {
    fn start(page: &str) -> Self {
        let clock = Arc::<SetClock>::default();
        let mut days = (1..).map(|day| format!("2024-06-{day:02}T00:00:00Z"));
        let mut next_day = || {
            let day = days.next().expect("there is no end");
            clock.set(Timestamp::parse(&day).expect("a date"));
        };
        let store = Store::in_memory_with(&Options::new().clock(clock.clone()));
        let mut settings = Settings::default();
        settings.experimental_features = true;
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let server = Server::start(&store, settings, listener).expect("a server");
        let server = TestServer { address: server.address(), server: Some(server) };
        for (words, text) in blocks(page) {
            match words[..] {
                ["json", "ledger", name] => {
                    server.post(&format!("/v2/{name}"), text).is(204);
                }
                ["json", "data"] => {
                    let commands: Vec<Value> = serde_json::from_str(text).expect("an array");
                    for command in commands {
                        next_day();
                        server.post("/v2/main/_bulk", &json!([command]).to_string()).is(200);
                    }
                }
                ["json", "schema", version] => {
                    next_day();
                    server.post(&format!("/v2/main/schemas/{version}"), text).is(204);
                }
                _ => {}
            }
        }
        let ledger = store.ledger("main").expect("a name");
        Self { server, store, ledger }
    }

    fn answer(&self, resource: Resource, filter: &str) -> Answer {
        let path = match resource {
            Resource::AggregatedBalances => "/v2/main/aggregate/balances".to_owned(),
            Resource::Ledgers => "/v2?pageSize=100".to_owned(),
            _ => format!("/v2/main/{}?pageSize=100", name_of(resource)),
        };
        self.server.send("GET", &path, &[("content-type", "application/json")], filter)
    }

    /// Returns the rows that the server selects.
    #[track_caller]
    fn served(&self, resource: Resource, filter: &str) -> BTreeSet<String> {
        let answer = self.answer(resource, filter).is(200).json();
        if resource == Resource::AggregatedBalances {
            let sums = answer["data"].as_object().expect("sums by asset");
            return sums.iter().map(|(asset, sum)| format!("{asset} {sum}")).collect();
        }
        let rows = answer["cursor"]["data"].as_array().expect("a page has rows").iter();
        let text = |row: &Value, field: &str| row[field].as_str().expect("a text").to_owned();
        let rows = rows.map(|row| match resource {
            Resource::Accounts => text(row, "address"),
            Resource::Volumes => format!("{} {}", text(row, "account"), text(row, "asset")),
            Resource::Ledgers => text(row, "name"),
            Resource::Schemas => text(row, "version"),
            Resource::Transactions | Resource::Logs => row["id"].to_string(),
            Resource::AggregatedBalances => unreachable!("sums have no rows"),
        });
        rows.collect()
    }

    /// Returns the rows that the library selects, in the same form.
    fn selected(&self, resource: Resource, filter: &str) -> Result<BTreeSet<String>, LedgerError> {
        let ledger = &self.ledger;
        match resource {
            Resource::Accounts => {
                let accounts = ledger.accounts().filter_json(filter)?.into_iter();
                accounts.map(|account| Ok(account?.address.to_string())).collect()
            }
            Resource::Transactions => {
                let transactions = ledger.transactions().filter_json(filter)?.into_iter();
                transactions.map(|transaction| Ok(transaction?.id.to_string())).collect()
            }
            Resource::Volumes => {
                let rows = ledger.volumes().filter_json(filter)?.into_iter();
                rows.map(|row| row.map(|row| format!("{} {}", row.account, row.asset))).collect()
            }
            Resource::AggregatedBalances => {
                let sums = ledger.balances().filter_json(filter)?.now()?.into_iter();
                Ok(sums.map(|(asset, sum)| format!("{asset} {sum}")).collect())
            }
            Resource::Logs => {
                let logs = ledger.logs().filter_json(filter)?.into_iter();
                logs.map(|log| Ok(log?.entry.id.to_string())).collect()
            }
            Resource::Ledgers => {
                let page = PageRequest { size: 100, direction: Direction::Ascending, start: Start::First };
                let filter = FilterOf::parse(filter)?;
                let ledgers = self.store.snapshot().ledgers(&page, &filter, Deleted::Hidden)?.items;
                Ok(ledgers.into_iter().map(|ledger| ledger.name.to_string()).collect())
            }
            Resource::Schemas => {
                let schemas = ledger.schemas().filter_json(filter)?.into_iter();
                schemas.map(|schema| Ok(schema?.version.to_string())).collect()
            }
        }
    }

    /// Returns the rows that both select.
    #[track_caller]
    fn rows(&self, resource: Resource, filter: &str) -> BTreeSet<String> {
        let served = self.served(resource, filter);
        assert_eq!(self.selected(resource, filter), Ok(served.clone()), "{resource:?} {filter}");
        served
    }
}

/// Returns the resources and filters of the examples, with the numbers behind their fences.
fn examples(page: &str) -> Vec<(Resource, &str, &str)> {
    let examples = blocks(page).into_iter().filter_map(|(words, text)| {
        let ["json", name, expected] = words[..] else { return None };
        let resource = Resource::ALL.into_iter().find(|resource| name_of(*resource) == name)?;
        Some((resource, text, expected))
    });
    examples.collect()
}

#[test]
fn every_documented_filter_selects_as_shown() {
    let page = documentation("filters.md");
    let documented = Documented::start(&page);
    for (words, text) in blocks(&page) {
        match words[..] {
            ["json", "ledger" | "schema", _] | ["json", "data"] => {}
            ["json", name, _] => assert!(Resource::ALL.map(name_of).contains(&name), "examples of {name}"),
            ["rust"] => {
                // The function below has the same lines.
                let own = include_str!("filter_docs.rs");
                let missing = text.lines().find(|line| !own.contains(&format!("    {line}\n")));
                assert_eq!(missing, None, "no test runs this line");
                assert_eq!(use_library(&documented.ledger), Ok((1, 2)));
            }
            ["sh"] => {
                let (path, filter) = text.split_once(" -X GET -d '").expect("a request with a body");
                let (_, path) = path.split_once(":8080").expect("a port");
                let filter = filter.trim_end_matches('\'');
                let answer = documented.server.send("GET", path, &[], filter).is(200);
                assert_eq!(answer.column("address"), ["users:1:main"]);
            }
            _ => panic!("a block of {words:?}"),
        }
    }
    for (resource, filter, expected) in examples(&page) {
        let rows = documented.rows(resource, filter);
        if resource == Resource::AggregatedBalances {
            assert_eq!(rows, BTreeSet::from([format!("USD/2 {expected}")]), "{filter}");
        } else {
            assert_eq!(rows.len().to_string(), expected, "{filter}");
        }
    }
    let (nodes, depth) = (limits::FILTER_NODES_MAX, limits::FILTER_DEPTH_MAX);
    assert!(page.contains(&format!("at most {nodes} nodes and at most {depth} levels")));
}

/// Runs the lines of the page, and returns how many accounts and transactions they select.
fn use_library(ledger: &Ledger) -> Result<(usize, u64), LedgerError> {
    let page = ledger.accounts().filter_json(r#"{"$match": {"address": "users:1:main"}}"#)?.page(50)?;
    let typed: FilterOf<Transactions> = FilterOf::field("metadata[kind]", Operator::Match, "topup")?;
    let topups = ledger.transactions().filter(typed).count()?;
    Ok((page.items.len(), topups))
}

#[test]
fn page_shows_every_field_of_every_resource() {
    let page = documentation("filters.md");
    let rows = table(&page, "| Resource | Fields |");
    assert_eq!(rows.len(), Resource::ALL.len());
    for resource in Resource::ALL {
        let known = Property::ALL.map(Property::name).into_iter();
        let known: BTreeSet<_> = known.filter(|name| Property::of(resource, name).is_some()).collect();
        let row = rows.iter().find(|row| row[0] == name_of(resource)).expect("a row for each resource");
        assert_eq!(quoted(row[1]), known, "fields of {resource:?} in docs/filters.md");
        let filters: String =
            examples(&page).iter().filter(|one| one.0 == resource).map(|(_, filter, _)| *filter).collect();
        for name in known {
            let is_used =
                filters.contains(&format!("\"{name}\":")) || filters.contains(&format!("\"{name}["));
            assert!(is_used, "docs/filters.md has no example of the field {name} of {resource:?}");
        }
    }
}

/// A value of each field that some rows have, and others do not. `FIELD[KEY]` and `FIELD` are two.
const VALUES: [(Resource, &[(&str, &str)]); 7] = [
    (
        Resource::Accounts,
        &[
            ("address", "users:1:main"),
            ("metadata", "tier"),
            ("metadata[tier]", "gold"),
            ("balance", "4000"),
            ("balance[USD/2]", "5000"),
            ("first_usage", "2024-05-02T12:00:00Z"),
            ("insertion_date", "2024-06-02T00:00:00Z"),
            ("updated_at", "2024-06-02T00:00:00Z"),
        ],
    ),
    (
        Resource::Transactions,
        &[
            ("account", "users:1:main"),
            ("source", "users:1:main"),
            ("destination", "shops:42"),
            ("reference", "deposit-1"),
            ("id", "2"),
            ("reverted", "true"),
            ("metadata", "kind"),
            ("metadata[kind]", "order"),
            ("timestamp", "2024-05-02T12:00:00Z"),
            ("inserted_at", "2024-06-02T00:00:00Z"),
            ("updated_at", "2024-06-05T00:00:00Z"),
            ("reverted_at", "2024-06-05T00:00:00Z"),
        ],
    ),
    (
        Resource::Volumes,
        &[
            ("address", "users:1:main"),
            ("account", "shops:42"),
            ("metadata", "tier"),
            ("metadata[tier]", "gold"),
            ("balance[USD/2]", "5000"),
            ("first_usage", "2024-05-02T12:00:00Z"),
        ],
    ),
    (
        Resource::AggregatedBalances,
        &[("address", "users:1:main"), ("metadata", "tier"), ("metadata[tier]", "gold")],
    ),
    (Resource::Logs, &[("id", "2"), ("date", "2024-06-02T00:00:00Z"), ("type", "NEW_TRANSACTION")]),
    (
        Resource::Ledgers,
        &[
            ("name", "main"),
            ("bucket", "cold"),
            ("metadata", "region"),
            ("metadata[region]", "eu"),
            ("features", "HASH_LOGS"),
            ("features[HASH_LOGS]", "DISABLED"),
        ],
    ),
    (Resource::Schemas, &[("version", "v1"), ("created_at", "2024-06-07T00:00:00Z")]),
];

/// Returns the JSON of a condition.
fn condition(operator: Operator, field: &str, value: &str) -> String {
    let value = match operator {
        Operator::In => json!([value]),
        Operator::Exists if field.contains('[') => json!(true),
        _ => serde_json::from_str(value).unwrap_or_else(|_| json!(value)),
    };
    json!({operator.name(): {field: value}}).to_string()
}

#[test]
fn every_field_takes_the_operators_of_its_row() {
    let page = documentation("filters.md");
    let documented = Documented::start(&page);
    let kinds = table(&page, "| Values | Fields | Operators |");
    for (resource, fields) in VALUES {
        let known = Property::ALL.map(Property::name).into_iter();
        let known: BTreeSet<_> = known.filter(|name| Property::of(resource, name).is_some()).collect();
        let named =
            fields.iter().map(|(field, _)| field.split('[').next().expect("a split has a first part"));
        assert_eq!(named.collect::<BTreeSet<_>>(), known, "{resource:?}");
        for (field, value) in fields {
            let shown = field.split_once('[').map_or((*field).to_owned(), |(name, _)| format!("{name}[…]"));
            let kind = kinds.iter().find(|row| quoted(row[1]).contains(shown.as_str()));
            let kind = kind.unwrap_or_else(|| panic!("docs/filters.md has no operators for {shown}"));
            let allowed = quoted(kind[2]);
            for operator in Operator::ALL {
                let filter = condition(operator, field, value);
                if allowed.contains(operator.name()) {
                    documented.rows(resource, &filter);
                } else {
                    let answer = documented.answer(resource, &filter);
                    let name = operator.name();
                    let is_refused = answer.status == 400;
                    assert!(
                        is_refused,
                        "the row of {shown} in docs/filters.md lacks {name}, which {resource:?} accept"
                    );
                    answer.refused(400, "VALIDATION");
                    let refusal = documented.selected(resource, &filter);
                    assert!(matches!(refusal, Err(LedgerError::Filter(_))), "{filter}: {refusal:?}");
                }
            }
            let rows = |operator| documented.rows(resource, &condition(operator, field, value));
            let matching = rows(Operator::Match);
            let all = documented.rows(resource, "{}");
            // Every ledger has the same keys of features.
            assert!(
                !matching.is_empty() && (matching != all || *field == "features"),
                "{resource:?} {field}"
            );
            if allowed.contains("$lt") {
                let (less, greater) = (rows(Operator::Lt), rows(Operator::Gt));
                assert!(
                    less.is_disjoint(&matching) && greater.is_disjoint(&matching),
                    "{resource:?} {field}"
                );
                assert!(less.is_disjoint(&greater), "{resource:?} {field}");
                assert_eq!(rows(Operator::Lte), &less | &matching, "{resource:?} {field}");
                assert_eq!(rows(Operator::Gte), &greater | &matching, "{resource:?} {field}");
            }
            if allowed.contains("$like") {
                assert_eq!(rows(Operator::Like), matching, "{resource:?} {field}");
                assert_eq!(rows(Operator::In), matching, "{resource:?} {field}");
            }
            if let Some((name, key)) = field.strip_suffix(']').and_then(|field| field.split_once('['))
                && allowed.contains("$exists")
            {
                let having = documented.rows(resource, &condition(Operator::Match, name, key));
                assert_eq!(rows(Operator::Exists), having, "{resource:?} {field}");
            } else if allowed.contains("$exists") {
                assert_eq!(rows(Operator::Exists), matching, "{resource:?} {field}");
            }
        }
    }
}

#[test]
fn malformed_names_select_nothing_over_http() {
    let documented = Documented::start(&documentation("filters.md"));
    for filter in [r#"{"$match": {"address": "users 1"}}"#, r#"{"$gt": {"balance[usd]": -1}}"#] {
        assert_eq!(documented.served(Resource::Accounts, filter), BTreeSet::new(), "{filter}");
        let error = documented.selected(Resource::Accounts, filter);
        assert!(matches!(error, Err(LedgerError::Name(_))), "{filter}: {error:?}");
    }
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

//! The error of a body with a value of the wrong type names the field and the expected type, on every route that writes
//! to a ledger.

use crate::client::TestServer;

/// A body, the field that cannot be read, and the expected type.
type Row = (&'static str, &'static str, &'static str);

const STREAM: &str = "application/vnd.formance.ledger.api.v2.bulk+json-stream";

/// Bodies of a transaction that v1 and v2 refuse with the same text.
const TRANSACTION: [Row; 17] = [
    (r#"{"postings":7}"#, "postings", "an array"),
    (r#"{"postings":[7]}"#, "postings[0]", "an object"),
    (r#"{"postings":[{},{"source":7}]}"#, "postings[1].source", "a string"),
    (r#"{"postings":[{"destination":[]}]}"#, "postings[0].destination", "a string"),
    (r#"{"postings":[{"asset":true}]}"#, "postings[0].asset", "a string"),
    (r#"{"postings":[{"amount":"1"}]}"#, "postings[0].amount", "a whole number"),
    (r#"{"postings":[{"amount":1.5}]}"#, "postings[0].amount", "a whole number"),
    (r#"{"postings":[{"amount":{}}]}"#, "postings[0].amount", "a whole number"),
    (r#"{"timestamp":7}"#, "timestamp", "a string"),
    (r#"{"timestamp":"noon"}"#, "timestamp", "parsing time"),
    (r#"{"reference":7}"#, "reference", "a string"),
    (r#"{"metadata":7}"#, "metadata", "an object"),
    (r#"{"metadata":[]}"#, "metadata", "an object"),
    (r#"{"script":7}"#, "script", "an object"),
    (r#"{"script":{"plain":7}}"#, "script.plain", "a string"),
    (r#"{"script":{"vars":7}}"#, "script.vars", "an object"),
    (r#"{"script":{"vars":[]}}"#, "script.vars", "an object"),
];

/// Further members of a transaction of v2.
const V2_TRANSACTION: [Row; 8] = [
    (r#"{"metadata":{"k":7}}"#, "metadata.k", "a string"),
    (r#"{"accountMetadata":7}"#, "accountMetadata", "an object"),
    (r#"{"accountMetadata":{"a":7}}"#, "accountMetadata.a", "an object"),
    (r#"{"accountMetadata":{"a":{"k":7}}}"#, "accountMetadata.a.k", "a string"),
    (r#"{"force":"yes"}"#, "force", "a boolean"),
    (r#"{"runtime":7}"#, "runtime", "a string"),
    (r#"{"script":{"template":7}}"#, "script.template", "a string"),
    (r#"{"script":[]}"#, "script", "an object"),
];

/// Checks that each body is refused with a text that names the field and the expected type.
#[track_caller]
fn names_fields(
    server: &TestServer,
    (method, path, content_type): (&str, &str, &str),
    rows: impl IntoIterator<Item = (String, String, &'static str)>,
) {
    for (body, field, expected) in rows {
        let answer = server.send(method, path, &[("Content-Type", content_type)], &body);
        let message = answer.json()["errorMessage"].as_str().unwrap_or_default().to_owned();
        assert_eq!(answer.status, 400, "{method} {path} {body}: {answer:?}");
        let (names, says) = (format!(" {field}: "), message.contains(expected));
        assert!(says && format!(" {message}").contains(&names), "{method} {path} {body}: {message}");
    }
}

fn rows(rows: &[Row]) -> Vec<(String, String, &'static str)> {
    rows.iter().map(|(body, field, expected)| ((*body).to_owned(), (*field).to_owned(), *expected)).collect()
}

/// Puts bodies into the second element of a bulk.
fn elements(action: &str, data: &[Row]) -> Vec<(String, String, &'static str)> {
    let first = r#"{"action":"ADD_METADATA","data":{"targetType":"ACCOUNT","targetId":"a","metadata":{}}}"#;
    let rows = data.iter().map(|(data, field, expected)| {
        let field = if field.is_empty() { "data".to_owned() } else { format!("data.{field}") };
        (
            format!(r#"[{first},{{"action":"{action}","data":{data}}}]"#),
            format!("element 1: {field}"),
            *expected,
        )
    });
    rows.collect()
}

#[test]
fn v1_errors_name_the_field() {
    let server = TestServer::start();
    for base in ["/api/ledger/old", "/old"] {
        let names = |method: &str, path: &str, rows: Vec<(String, String, &'static str)>| {
            names_fields(&server, (method, &format!("{base}/{path}"), "application/json"), rows);
        };
        names("POST", "transactions", rows(&TRANSACTION));
        let in_batch = TRANSACTION.iter().filter(|(_, field, _)| !field.starts_with("script"));
        let in_batch = in_batch.map(|(body, field, expected)| {
            (format!(r#"{{"transactions":[{{}},{body}]}}"#), format!("transactions[1].{field}"), *expected)
        });
        names("POST", "transactions/batch", in_batch.collect());
        names(
            "POST",
            "transactions/batch",
            rows(&[
                (r#"{"transactions":7}"#, "transactions", "an array"),
                (r#"{"transactions":[7]}"#, "transactions[0]", "an object"),
                ("{}", "transactions", "an array"),
            ]),
        );
        let of_script = TRANSACTION.iter().filter_map(|(body, field, expected)| match *body {
            body if body.starts_with(r#"{"postings""#) || body == r#"{"script":7}"# => None,
            body => match body.strip_prefix(r#"{"script":"#).and_then(|body| body.strip_suffix('}')) {
                Some(script) => Some((script.to_owned(), field.replacen("script.", "", 1), *expected)),
                None => Some((body.to_owned(), (*field).to_owned(), *expected)),
            },
        });
        names("POST", "script", of_script.collect());
        for target in ["accounts/a", "transactions/0"] {
            let deep = format!(r#"{{"k":{}1{}}}"#, "[".repeat(65), "]".repeat(65));
            let whole = ["[]", "7", "null"].map(|body| (body.to_owned(), "format".to_owned(), "an object"));
            names("POST", &format!("{target}/metadata"), whole.to_vec());
            names("POST", &format!("{target}/metadata"), vec![(deep, "k".to_owned(), "64 deep")]);
        }
        names(
            "PUT",
            "mapping",
            rows(&[
                ("7", "format", "an object"),
                (r#"{"contracts":7}"#, "contracts", "an array"),
                (r#"{"contracts":[7]}"#, "contracts[0]", "an object"),
                (r#"{"contracts":[{"name":7}]}"#, "contracts[0].name", "a string"),
                (r#"{"contracts":[{"account":7}]}"#, "contracts[0].account", "a string"),
                (r#"{"contracts":[{"expr":{}},{"expr":7}]}"#, "contracts[1].expr", "malformed expression"),
            ]),
        );
    }
}

#[test]
fn v2_errors_name_the_field() {
    let mut settings = stack_server::Settings::default();
    settings.experimental_exporters = true;
    let server = TestServer::with(settings);
    let metadata: [Row; 2] = [(r#"{"k":7}"#, "k", "a string"), (r#"{"k":{}}"#, "k", "a string")];
    for (base, ledger) in [("/v2", "one"), ("/api/ledger/v2", "two")] {
        let names = |method: &str, path: &str, rows: Vec<(String, String, &'static str)>| {
            names_fields(&server, (method, &format!("{base}/{ledger}{path}"), "application/json"), rows);
        };
        names(
            "POST",
            "",
            rows(&[
                (r#"{"bucket":7}"#, "bucket", "a string"),
                (r#"{"metadata":7}"#, "metadata", "an object"),
                (r#"{"metadata":{"k":7}}"#, "metadata.k", "a string"),
                (r#"{"features":7}"#, "features", "an object"),
                (r#"{"features":{"HASH_LOGS":7}}"#, "features.HASH_LOGS", "a string"),
            ]),
        );
        server.post(&format!("{base}/{ledger}"), "").is(204);
        let transaction = [&TRANSACTION[..], &V2_TRANSACTION].concat();
        names("POST", "/transactions", rows(&transaction));
        names(
            "POST",
            "/transactions/1/revert",
            rows(&[
                (r#"{"metadata":7}"#, "metadata", "an object"),
                (r#"{"metadata":{"k":7}}"#, "metadata.k", "a string"),
            ]),
        );
        for (method, path) in
            [("POST", "/accounts/a/metadata"), ("POST", "/transactions/1/metadata"), ("PUT", "/metadata")]
        {
            names(method, path, rows(&metadata));
        }
    }
    names_fields(
        &server,
        ("POST", "/v2/_/exporters", "application/json"),
        rows(&[(r#"{"driver":7}"#, "driver", "a string")]),
    );
    names_fields(
        &server,
        ("POST", "/v2/one/pipelines", "application/json"),
        rows(&[(r#"{"exporterID":7}"#, "exporterID", "a string")]),
    );
}

#[test]
fn v2_bulk_errors_name_the_field() {
    let server = TestServer::with_main();
    let transaction = [&TRANSACTION[..], &V2_TRANSACTION].concat();
    for path in ["/v2/main/_bulk", "/api/ledger/v2/main/_bulk"] {
        let names = |rows| names_fields(&server, ("POST", path, "application/json"), rows);
        names(rows(&[
            ("7", "bulk", "an array"),
            ("[7]", "[0]", "an object"),
            (r#"[{"action":7}]"#, "[0].action", "a string"),
            (r#"[{"ik":7}]"#, "[0].ik", "a string"),
        ]));
        names(elements("CREATE_TRANSACTION", &transaction));
        for action in ["ADD_METADATA", "DELETE_METADATA"] {
            let data: [Row; 5] = [
                ("7", "", "an object"),
                (r#"{"targetType":7}"#, "targetType", "a string"),
                (r#"{"targetId":[]}"#, "targetId", "a string or an integer"),
                (r#"{"metadata":{"k":7}}"#, "metadata.k", "a string"),
                (r#"{"key":7}"#, "key", "a string"),
            ];
            names(elements(action, &data));
        }
        let revert: [Row; 5] = [
            ("[]", "", "an object"),
            (r#"{"id":"7"}"#, "id", "a whole number"),
            (r#"{"force":7}"#, "force", "a boolean"),
            (r#"{"atEffectiveDate":7}"#, "atEffectiveDate", "a boolean"),
            (r#"{"metadata":7}"#, "metadata", "an object"),
        ];
        names(elements("REVERT_TRANSACTION", &revert));
    }
}

#[test]
fn stream_errors_name_the_field() {
    let server = TestServer::with_main();
    for (body, field, expected) in [
        (r#"{"action":7}"#, "action", "a string"),
        (r#"{"ik":7}"#, "ik", "a string"),
        (r#"{"action":"CREATE_TRANSACTION","data":{"postings":[7]}}"#, "data.postings[0]", "an object"),
        (r#"{"action":"CREATE_TRANSACTION","data":7}"#, "data", "an object"),
    ] {
        let first =
            r#"{"action":"ADD_METADATA","data":{"targetType":"ACCOUNT","targetId":"a","metadata":{}}}"#;
        let answer =
            server.send("POST", "/v2/main/_bulk", &[("Content-Type", STREAM)], &format!("{first}\n{body}\n"));
        let message = answer.is(400).json()["errorMessage"].as_str().unwrap_or_default().to_owned();
        let start = format!("error parsing element 1: {field}: ");
        assert!(message.starts_with(&start) && message.contains(expected), "{body}: {message}");
    }
}

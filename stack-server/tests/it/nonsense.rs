//! Sends nonsensical requests. Every response is a well-formed refusal or success, never a server error. The test
//! client checks the properties of every response.

use stack_server::{Mount, Settings, routes};

use crate::client::{TestServer, escape};

/// A small random number generator that returns the same numbers on every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        // The constants of Knuth's MMIX. Only the upper bits are random enough.
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }
}

const BODIES: &[&str] = &[
    r#"{"postings":[{"source":"world","destination":"users:1","amount":100,"asset":"USD/2"}],"reference":"r","metadata":{"k":"v"},"timestamp":"2024-05-01T10:00:00Z","accountMetadata":{"a":{"b":"c"}},"force":true}"#,
    r#"{"script":{"plain":"send [USD 1] (source=@world destination=@a)","vars":{"a":1,"b":{"asset":"USD","amount":2}}}}"#,
    r#"[{"action":"CREATE_TRANSACTION","ik":"k","data":{"postings":[{"source":"world","destination":"a","amount":1,"asset":"USD"}]}},{"action":"ADD_METADATA","data":{"targetType":"TRANSACTION","targetId":1,"metadata":{"a":"b"}}},{"action":"REVERT_TRANSACTION","data":{"id":1,"force":true}},{"action":"DELETE_METADATA","data":{"targetType":"ACCOUNT","targetId":"a","key":"k"}}]"#,
    r#"{"$and":[{"$match":{"address":"users::"}},{"$or":[{"$gte":{"balance[USD/2]":-5}},{"$exists":{"metadata":"k"}}]},{"$not":{"$in":{"metadata[k]":["a","b"]}}}]}"#,
    r#"{"$and":[{"$match":{"source":"world"}},{"$lt":{"timestamp":"2024-05-01T10:00:00Z"}},{"$like":{"reference":"a%"}}]}"#,
    r#"{"bucket":"b","metadata":{"k":"v"},"features":{"HASH_LOGS":"SYNC"}}"#,
    r#"{"k":"v","":null}"#,
    r#"{"transactions":[{"postings":[{"source":"world","destination":"a","amount":1,"asset":"USD"}],"metadata":{"o":{"k":[1,null]}}}]}"#,
    r#"{"contracts":[{"name":"n","account":"users:*","expr":{"$or":[{"$gte":["$balance",{"$meta":"k"}]},{"$eq":[1,[2]]}]}}]}"#,
    r#"{"driver":"noop","config":{"url":"http://127.0.0.1:1","name":"n","batching":{"maxItems":1,"flushInterval":"1s"}}}"#,
    r#"{"exporterID":"9a1b5e2c-0000-4000-8000-000000000001"}"#,
    "null",
    "",
];

/// Bytes with a meaning to some parser.
const BYTES: &[u8] = b"\"\\{}[]:,$%0919-.eE+ \n\x00\x7f\xc3\xff";

fn mutated(numbers: &mut Numbers, text: &str) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    for _ in 0..numbers.below(4) {
        let at = numbers.below(bytes.len() + 1);
        let byte = BYTES[numbers.below(BYTES.len())];
        match numbers.below(4) {
            0 => bytes.insert(at, byte),
            1 => bytes.truncate(at),
            2 => {
                let again = bytes[..at].to_vec();
                bytes.extend(again);
            }
            _ => {
                if let Some(have) = bytes.get_mut(at) {
                    *have = byte;
                }
            }
        }
    }
    bytes
}

/// Names of query parameters, including an unknown one.
const PARAMETERS: &[&str] = &[
    "pageSize",
    "cursor",
    "sort",
    "order",
    "reverse",
    "expand",
    "pit",
    "oot",
    "startTime",
    "endTime",
    "groupBy",
    "insertionDate",
    "useInsertionDate",
    "query",
    "dryRun",
    "force",
    "atEffectiveDate",
    "atomic",
    "continueOnFailure",
    "parallel",
    "after",
    "address",
    "account",
    "source",
    "metadata[a.b]",
    "balance",
    "balanceOperator",
    "page_size",
    "pagination_token",
    "start_time",
    "preview",
    "disableChecks",
    "type",
    "from",
    "lastEventId",
    "nosuch",
];

/// Values of query parameters.
const VALUES: &[&str] = &[
    "",
    "0",
    "1",
    "-1",
    "true",
    "99999999999999999999",
    "2024-05-01T10:00:00Z",
    "0000-01-01T00:00:00+23:59",
    "9999-12-31T23:59:59.9999999Z",
    "id:asc",
    "address",
    "account:desc",
    "effective",
    "volumes",
    "users:.*",
    "((a*)*)*|[^x]{9}",
    "é",
    "\u{0}",
];

/// Texts for the variables of paths.
const VARIABLES: &[&str] =
    &["main", "nosuch", "users:1", "1", "0", "-1", "18446744073709551615", "a b", "é", "%", "..", "x/y", "_"];

/// Returns a path of the template at a mount, with random variables and parameters.
fn random_path(numbers: &mut Numbers, mount: &str, template: &str) -> String {
    let mut path = String::from(mount);
    for segment in template.split('/').skip(1) {
        path.push('/');
        match segment {
            "{ledger}" if numbers.below(8) > 0 => path.push_str("main"),
            segment if segment.starts_with('{') => {
                path.push_str(&escape(VARIABLES[numbers.below(VARIABLES.len())]));
            }
            segment => path.push_str(segment),
        }
    }
    // A successful stream would not end.
    let first = if template.ends_with("/_events") { "?type=NOSUCH" } else { "" };
    path.push_str(first);
    for at in 0..numbers.below(3) {
        let parameter = PARAMETERS[numbers.below(PARAMETERS.len())];
        let value = match numbers.below(3) {
            0 => String::from_utf8_lossy(&mutated(numbers, BODIES[3])).into_owned(),
            _ => VALUES[numbers.below(VALUES.len())].to_owned(),
        };
        let divider = if at == 0 && first.is_empty() { '?' } else { '&' };
        path.push_str(&format!("{divider}{parameter}={}", escape(&value)));
    }
    path
}

#[test]
fn nonsense_never_causes_server_error() {
    let mut settings = Settings::default();
    settings.experimental_exporters = true;
    let server = TestServer::with(settings);
    server.post("/v2/main", "").is(204);
    server.transfer("world", "users:1", 100, "USD/2");
    let mut numbers = Numbers(1);
    for _ in 0..40 {
        for route in routes() {
            let mounts = match route.mount {
                Mount::LedgerV2 => ["/v2", "/api/ledger/v2"],
                Mount::LedgerV1 => ["", "/api/ledger"],
                _ => continue,
            };
            let mount = mounts[numbers.below(2)];
            let path = random_path(&mut numbers, mount, route.template);
            let body = BODIES[numbers.below(BODIES.len())];
            let body = mutated(&mut numbers, body);
            server.send_bytes(route.method, &path, &[], &body);
        }
    }
    server.get("/v2/main/stats").is(200);
}

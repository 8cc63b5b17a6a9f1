//! Encodes the requests of the load program as bytes: HTTP/1.1 with a JSON body.

use ledger_core::{Command, MetadataValue, Movement, Posting};
use ledger_store::Request;

use crate::Failure;

/// Encodes a request of API v2 that creates a ledger with the default features.
pub fn create_ledger(ledger: &str) -> Vec<u8> {
    let mut out = Vec::new();
    post(&format!("/v2/{ledger}"), b"{}", &mut out);
    out
}

/// A version of the ledger API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Api {
    /// API v1, at the root. The first write creates a ledger.
    V1,
    /// API v2, below `/v2`.
    #[default]
    V2,
}

impl Api {
    /// Returns the name in options and figures.
    pub const fn name(self) -> &'static str {
        match self {
            Self::V1 => "v1",
            Self::V2 => "v2",
        }
    }
}

/// The member of a request that names the amounts: postings, or a script with variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Form {
    /// With a list of postings.
    #[default]
    Postings,
    /// With a script of the same effect. Accounts and amounts are variables of the script.
    Script,
}

/// Encodes a request that records transactions: one alone, or several as a bulk (v2) or a batch (v1). Replaces the
/// content of `out`.
///
/// # Errors
///
/// Fails if a command is not a transaction of postings.
pub fn encode_request(
    api: Api,
    ledger: &str,
    requests: &[Request],
    form: Form,
    out: &mut Vec<u8>,
) -> Result<(), Failure> {
    let mut body = Vec::with_capacity(requests.len() * 256);
    let (prefix, several) = match api {
        Api::V1 => ("", "transactions/batch"),
        Api::V2 => ("/v2", "_bulk"),
    };
    let path = if let [request] = requests {
        write_transaction(request, form, &mut body)?;
        format!("{prefix}/{ledger}/transactions")
    } else {
        let (before, before_each, after_each, after): (&[u8], &[u8], &[u8], &[u8]) = match api {
            Api::V1 => (br#"{"transactions":["#, b"", b"", b"]}"),
            Api::V2 => (b"[", br#"{"action":"CREATE_TRANSACTION","data":"#, b"}", b"]"),
        };
        body.extend_from_slice(before);
        for (n, request) in requests.iter().enumerate() {
            if n > 0 {
                body.push(b',');
            }
            body.extend_from_slice(before_each);
            write_transaction(request, form, &mut body)?;
            body.extend_from_slice(after_each);
        }
        body.extend_from_slice(after);
        format!("{prefix}/{ledger}/{several}")
    };
    out.clear();
    post(&path, &body, out);
    Ok(())
}

fn post(path: &str, body: &[u8], out: &mut Vec<u8>) {
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    out.extend_from_slice(head.as_bytes());
    out.extend_from_slice(body);
}

fn write_transaction(request: &Request, form: Form, out: &mut Vec<u8>) -> Result<(), Failure> {
    let Command::CreateTransaction(create) = &request.command else {
        return Err("only transactions are sent".into());
    };
    let Movement::Postings(postings) = &create.movement else {
        return Err("only postings are sent".into());
    };
    match form {
        Form::Postings => write_postings(postings, out),
        Form::Script => write_script(postings, out),
    }
    out.extend_from_slice(br#","metadata":{"#);
    for (n, (key, value)) in create.metadata.iter().enumerate() {
        let MetadataValue::Text(value) = value else { return Err("only texts are sent as metadata".into()) };
        out.extend_from_slice(if n > 0 { b",\"" } else { b"\"" });
        out.extend_from_slice(key.as_bytes());
        out.extend_from_slice(br#"":""#);
        out.extend_from_slice(value.as_bytes());
        out.push(b'"');
    }
    out.push(b'}');
    if let Some(reference) = &create.reference {
        out.extend_from_slice(br#","reference":""#);
        out.extend_from_slice(reference.as_str().as_bytes());
        out.push(b'"');
    }
    if let Some(timestamp) = create.timestamp {
        out.extend_from_slice(br#","timestamp":""#);
        timestamp.write_to(out);
        out.push(b'"');
    }
    out.push(b'}');
    Ok(())
}

fn write_postings(postings: &[Posting], out: &mut Vec<u8>) {
    out.extend_from_slice(br#"{"postings":["#);
    for (n, posting) in postings.iter().enumerate() {
        out.extend_from_slice(if n > 0 { br#",{"source":""# } else { br#"{"source":""# });
        // Addresses, assets and the other texts of the workload have no characters that JSON escapes.
        out.extend_from_slice(posting.source.as_str().as_bytes());
        out.extend_from_slice(br#"","destination":""#);
        out.extend_from_slice(posting.destination.as_str().as_bytes());
        out.extend_from_slice(br#"","amount":"#);
        posting.amount.write_to(out);
        out.extend_from_slice(br#","asset":""#);
        out.extend_from_slice(posting.asset.as_str().as_bytes());
        out.extend_from_slice(br#""}"#);
    }
    out.push(b']');
}

/// Writes a script with one `send` for each posting. The text of the script depends only on the number of postings.
fn write_script(postings: &[Posting], out: &mut Vec<u8>) {
    out.extend_from_slice(br#"{"script":{"plain":"vars {"#);
    for n in 0..postings.len() {
        out.extend_from_slice(format!(" account $s{n} account $d{n} monetary $m{n}").as_bytes());
    }
    out.extend_from_slice(b" }");
    for n in 0..postings.len() {
        out.extend_from_slice(format!("\\nsend $m{n} (source = $s{n} destination = $d{n})").as_bytes());
    }
    out.extend_from_slice(br#"","vars":{"#);
    for (n, Posting { source, destination, amount, asset }) in postings.iter().enumerate() {
        let comma = if n > 0 { "," } else { "" };
        let given = format!(r#"{comma}"s{n}":"{source}","d{n}":"{destination}","m{n}":"{asset} {amount}""#);
        out.extend_from_slice(given.as_bytes());
    }
    out.extend_from_slice(b"}}");
}

#[cfg(test)]
mod tests {
    use ledger_core::Timestamp;
    use serde_json::Value;

    use super::*;
    use crate::workload::{Content, Profile, Workload};

    fn recorded(api: Api, count: usize) -> (String, Value) {
        let profile =
            Profile { accounts: 3, content: Content::Rich, backdated_percent: 100, ..Profile::default() };
        let requests = Workload::new(profile, 1).batch(count, Timestamp::from_micros(1_700_000_000_000_000));
        let mut out = b"what was sent before".to_vec();
        encode_request(api, "main", &requests, Form::Postings, &mut out).expect("transactions");
        let text = String::from_utf8(out).expect("text");
        let (head, body) = text.split_once("\r\n\r\n").expect("a head and a body");
        assert!(head.ends_with(&format!("content-length: {}", body.len())));
        (head.to_owned(), serde_json::from_str(body).expect("JSON"))
    }

    #[test]
    fn sends_one_transaction_alone() {
        let (head, body) = recorded(Api::V2, 1);
        assert!(head.starts_with("POST /v2/main/transactions HTTP/1.1\r\n"));
        assert_eq!(body["postings"][0]["asset"], "USD/2");
        assert!(body["postings"][0]["amount"].is_u64());
        assert!(body["reference"].as_str().is_some_and(|text| text.starts_with("ref-")));
        assert!(body["timestamp"].as_str().is_some_and(|text| text.starts_with("2023-")));
        assert_eq!(body["metadata"].as_object().map(serde_json::Map::len), Some(2));
    }

    #[test]
    fn sends_several_transactions_as_a_bulk() {
        let (head, body) = recorded(Api::V2, 3);
        assert!(head.starts_with("POST /v2/main/_bulk HTTP/1.1\r\n"));
        let elements = body.as_array().expect("elements");
        assert_eq!(elements.len(), 3);
        assert!(elements.iter().all(|element| element["action"] == "CREATE_TRANSACTION"));
        assert!(elements[2]["data"]["postings"][0]["source"].is_string());
    }

    #[test]
    fn v1_has_its_own_paths_and_batches() {
        let (head, body) = recorded(Api::V1, 1);
        assert!(head.starts_with("POST /main/transactions HTTP/1.1\r\n"));
        assert_eq!(body, recorded(Api::V2, 1).1);
        let (head, body) = recorded(Api::V1, 3);
        assert!(head.starts_with("POST /main/transactions/batch HTTP/1.1\r\n"));
        let elements = body["transactions"].as_array().expect("elements");
        assert_eq!(elements.len(), 3);
        assert!(elements[2]["postings"][0]["source"].is_string());
    }
}

//! Inserts logs into a table of `ClickHouse` over its HTTP interface.

use hyper::body::Bytes;
use hyper::header::HeaderMap;
use ledger_store::FedLog;

use super::error::{DsnError, PushError};
use crate::http::response::{Json, Numbers};
use crate::outbound::{Client, Target};
use crate::shapes::log::{LogShape, write_data};
use crate::shapes::transaction::keeps_effective_volumes;

/// The table replaces rows that are pushed again.
const CREATE_TABLE: &str = "CREATE TABLE IF NOT EXISTS logs (ledger String, id Int64, type String, \
    date DateTime64(6, 'UTC'), data String) ENGINE = ReplacingMergeTree ORDER BY (ledger, id)";

const INSERT: &str = "INSERT%20INTO%20logs%20(ledger,id,type,date,data)%20FORMAT%20JSONEachRow";

/// The default ports of the native protocol, each with the HTTP port of the same server.
const PORTS: [(&str, &str); 2] = [("9000", "8123"), ("9440", "8443")];

/// A database of a `ClickHouse` server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClickHouse {
    /// The path and the query select the database.
    target: Target,
}

impl ClickHouse {
    /// Parses an address: `http://`, `https://` or `clickhouse://`, with the database in the path or a parameter, and
    /// user and password before the host or in parameters. The ports of the native protocol are replaced by those of
    /// the HTTP interface.
    ///
    /// # Errors
    ///
    /// Fails if the text is not such an address.
    pub(super) fn parse(dsn: &str) -> Result<Self, DsnError> {
        let (scheme, rest) = dsn.trim().split_once("://").ok_or(DsnError::NoAddress)?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let parameter = |name: &str| {
            let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
            pairs
                .filter(|(have, value)| *have == name && !value.is_empty())
                .map(|(_, value)| value)
                .next_back()
        };
        let is_native = matches!(scheme, "clickhouse" | "tcp");
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) => {
                (host, port)
            }
            _ => (authority, ""),
        };
        let is_secure =
            scheme == "https" || (is_native && (parameter("secure") == Some("true") || port == "9440"));
        let port = match PORTS.iter().find(|(native, _)| *native == port) {
            Some((_, http)) if is_native => http,
            None if is_native && port.is_empty() => {
                if is_secure {
                    "8443"
                } else {
                    "8123"
                }
            }
            _ => port,
        };
        let scheme = match scheme {
            "http" | "https" => scheme,
            _ if is_native => {
                if is_secure {
                    "https"
                } else {
                    "http"
                }
            }
            _ => return Err(DsnError::Scheme),
        };
        let colon = if port.is_empty() { "" } else { ":" };
        let target = Target::parse(&format!("{scheme}://{host}{colon}{port}/"))?;
        let target = match (parameter("username"), parameter("password")) {
            (None, None) => target,
            (name, password) => target.with_user(name.unwrap_or("default"), password.unwrap_or_default()),
        };
        let path = path.trim_matches('/');
        let database = parameter("database").unwrap_or(if path.is_empty() { "default" } else { path });
        if database.bytes().any(|byte| !byte.is_ascii_alphanumeric() && !matches!(byte, b'_' | b'-' | b'%')) {
            return Err(DsnError::Database);
        }
        Ok(Self { target: target.with_path(format!("/?database={database}")) })
    }

    pub(super) fn target(&self) -> &Target {
        &self.target
    }

    /// Inserts logs. If this fails, creates the table and tries once more.
    ///
    /// # Errors
    ///
    /// Fails if the server does not confirm all of them.
    pub(super) async fn push(&self, client: &Client, logs: &[FedLog]) -> Result<(), PushError> {
        let rows = Bytes::from(rows(logs));
        let path = self.target.path();
        let insert =
            self.target.with_path(format!("{path}&date_time_input_format=best_effort&query={INSERT}"));
        let headers = HeaderMap::new();
        let Err(failed) = client.post(&insert, &headers, rows.clone()).await else { return Ok(()) };
        client
            .post(&self.target, &headers, Bytes::from_static(CREATE_TABLE.as_bytes()))
            .await
            .map_err(|_| failed)?;
        Ok(client.post(&insert, &headers, rows).await?)
    }
}

/// Returns the logs as lines of JSON.
fn rows(logs: &[FedLog]) -> Vec<u8> {
    let mut json = Json::with_capacity(Numbers::Plain, logs.len() * 1_024);
    for fed in logs {
        let entry = &fed.log.entry;
        json.raw("{\"ledger\":").plain_string(fed.ledger.as_str());
        json.raw(",\"id\":").integer(entry.id.get());
        json.raw(",\"type\":").plain_string(entry.payload.type_name());
        json.raw(",\"date\":").time(entry.date);
        let mut data = Json::new(Numbers::Plain);
        let effective_volumes = keeps_effective_volumes(fed.features);
        write_data(&mut data, &fed.log, LogShape { whole_reverts: true, effective_volumes });
        json.raw(",\"data\":").string(&String::from_utf8_lossy(&data.into_bytes())).raw("}\n");
    }
    json.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_lead_to_the_http_interface() {
        for (dsn, wanted) in [
            ("http://h:8123", "http://h:8123/?database=default"),
            ("https://h/db", "https://h/?database=db"),
            ("clickhouse://h", "http://h:8123/?database=default"),
            ("clickhouse://h:9000/db", "http://h:8123/?database=db"),
            ("clickhouse://h:9440/db?dial_timeout=200ms", "https://h:8443/?database=db"),
            ("clickhouse://h:8124?secure=true&database=db", "https://h:8124/?database=db"),
            ("clickhouse://u:p@[::1]:9000", "http://[::1]:8123/?database=default"),
            ("tcp://h:9000?database=a&username=u&password=p", "http://h:8123/?database=a"),
        ] {
            let (found, wanted) = (ClickHouse::parse(dsn).expect(dsn).target, Target::parse(wanted));
            let wanted = wanted.expect("a target");
            assert_eq!(
                (found.is_secure(), found.host(), found.port(), found.path()),
                (wanted.is_secure(), wanted.host(), wanted.port(), wanted.path()),
                "{dsn}"
            );
        }
        for dsn in [
            "",
            "h:9000",
            "ftp://h",
            "clickhouse://",
            "clickhouse://h:99999",
            "http://h/a%20b/c",
            "http://h/a;b",
        ] {
            assert!(ClickHouse::parse(dsn).is_err(), "{dsn}");
        }
    }
}

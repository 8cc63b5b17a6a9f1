//! Parses the configuration of an exporter.

use std::path::PathBuf;
use std::time::Duration;

use serde::de::MapAccess;
use serde_json::value::RawValue;

use super::clickhouse::ClickHouse;
use super::elasticsearch::{Elasticsearch, INDEX};
use super::error::{ConfigError, ExporterError, NoFolder};
use crate::duration;
use crate::http::json::{self, Digits, Fields, Object, Text};
use crate::limits::{
    EXPORTER_CONFIG_BYTES_MAX, EXPORTER_FILE_BYTES_MIN, EXPORTER_FILE_NAME_MAX, PIPELINE_FLUSH_MAX,
    PIPELINE_ITEMS_MAX,
};
use crate::outbound::{OutboundPolicy, Target};

/// The limits that the operator sets for exporters.
#[derive(Clone, Debug)]
pub(crate) struct ExporterPolicy {
    /// The addresses that exporters may post to.
    pub(crate) outbound: OutboundPolicy,
    /// The folder in which exporters may write files. Without a folder they must not write any.
    pub(crate) folder: Option<PathBuf>,
}

/// How a pipeline collects logs before a push.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Batching {
    /// Maximum number of logs in a push.
    pub(crate) items: usize,
    /// How long a push waits for more logs.
    pub(crate) interval: Duration,
}

impl Default for Batching {
    fn default() -> Self {
        Self { items: 100, interval: Duration::from_secs(1) }
    }
}

/// The settings of the file driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileConfig {
    /// The file name without its extension.
    pub(crate) name: String,
    /// The size at which the next file starts.
    pub(crate) bytes_max: u64,
    /// Maximum number of files to keep, including the current one. `None` keeps all.
    pub(crate) files_max: Option<u64>,
}

/// The destination of an exporter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Driver {
    /// Posts arrays of logs.
    Http(Target),
    /// Inserts rows into a table of `ClickHouse`.
    ClickHouse(ClickHouse),
    /// Indexes documents of Elasticsearch.
    Elasticsearch(Elasticsearch),
    /// Appends lines to files.
    File(FileConfig),
    /// Prints one line per log to standard output.
    Stdout,
    /// Discards the logs.
    Noop,
}

/// The complete configuration of an exporter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Setup {
    pub(crate) driver: Driver,
    pub(crate) batching: Batching,
}

const FILE_BYTES: u64 = 100 << 20;

/// Maximum number of characters of an unknown driver's name that an error repeats.
const SHOWN_CHARS_MAX: usize = 100;

#[derive(Default)]
struct ConfigBody<'a> {
    url: Text<'a>,
    dsn: Text<'a>,
    endpoint: Text<'a>,
    index: Text<'a>,
    authentication: Option<Object<Authentication<'a>>>,
    name: Text<'a>,
    bytes_max: Option<&'a str>,
    files_max: Option<&'a str>,
    batching: BatchingBody<'a>,
}

#[derive(Default)]
struct BatchingBody<'a> {
    items: Option<&'a str>,
    interval: Text<'a>,
}

#[derive(Default)]
struct Authentication<'a> {
    username: Text<'a>,
    password: Text<'a>,
    by_aws: bool,
}

impl<'de> Fields<'de> for Authentication<'de> {
    fn field<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<bool, A::Error> {
        match name {
            "username" => self.username = map.next_value()?,
            "password" => self.password = map.next_value()?,
            "awsEnabled" => self.by_aws = map.next_value::<Option<bool>>()?.unwrap_or_default(),
            _ => return Ok(false),
        }
        Ok(true)
    }
}

impl<'de> Fields<'de> for BatchingBody<'de> {
    fn field<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<bool, A::Error> {
        match name {
            "maxItems" => self.items = map.next_value::<Digits<'de>>()?.0,
            "flushInterval" => self.interval = map.next_value()?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

impl<'de> Fields<'de> for ConfigBody<'de> {
    fn field<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<bool, A::Error> {
        match name {
            "url" => self.url = map.next_value()?,
            "dsn" => self.dsn = map.next_value()?,
            "endpoint" => self.endpoint = map.next_value()?,
            "index" => self.index = map.next_value()?,
            "authentication" => self.authentication = map.next_value()?,
            "name" => self.name = map.next_value()?,
            "maxBytes" => self.bytes_max = map.next_value::<Digits<'de>>()?.0,
            "maxFiles" => self.files_max = map.next_value::<Digits<'de>>()?.0,
            "batching" => self.batching = map.next_value::<Object<_>>()?.0,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

impl Setup {
    /// Parses the name of a driver and its configuration, which is a JSON object or absent.
    ///
    /// # Errors
    ///
    /// Fails if the driver is unknown or its configuration is invalid.
    pub(crate) fn read(
        driver: &str,
        config: Option<&RawValue>,
        policy: &ExporterPolicy,
    ) -> Result<Self, ExporterError> {
        let shown = || driver.chars().take(SHOWN_CHARS_MAX).collect();
        Self::parse(driver, config, policy).map_err(|reason| ExporterError { driver: shown(), reason })
    }

    fn parse(driver: &str, config: Option<&RawValue>, policy: &ExporterPolicy) -> Result<Self, ConfigError> {
        let text = config.map_or("null", RawValue::get);
        if text.len() > EXPORTER_CONFIG_BYTES_MAX {
            return Err(ConfigError::TooLong);
        }
        let config = || json::first::<Object<ConfigBody<'_>>>(text.as_bytes()).map(|Object(config)| config);
        let (driver, config) = match driver {
            "http" => {
                let config = config()?;
                if config.url.0.is_empty() {
                    return Err(ConfigError::Empty("url"));
                }
                let target = Target::parse(&config.url.0)?;
                policy.outbound.allow(&target)?;
                (Driver::Http(target), config)
            }
            "file" => {
                let config = config()?;
                if policy.folder.is_none() {
                    return Err(NoFolder.into());
                }
                (Driver::File(file(&config)?), config)
            }
            "stdout" => (Driver::Stdout, config()?),
            "noop" => (Driver::Noop, config()?),
            "clickhouse" => {
                let config = config()?;
                if config.dsn.0.is_empty() {
                    return Err(ConfigError::Empty("dsn"));
                }
                let clickhouse = ClickHouse::parse(&config.dsn.0)?;
                policy.outbound.allow(clickhouse.target())?;
                (Driver::ClickHouse(clickhouse), config)
            }
            "elasticsearch" => {
                let config = config()?;
                let elasticsearch = elasticsearch(&config)?;
                policy.outbound.allow(elasticsearch.target())?;
                (Driver::Elasticsearch(elasticsearch), config)
            }
            _ => return Err(ConfigError::UnknownDriver),
        };
        Ok(Self { driver, batching: batching(&config.batching)? })
    }
}

fn batching(body: &BatchingBody<'_>) -> Result<Batching, ConfigError> {
    let mut batching = Batching::default();
    if let Some(items) = body.items {
        batching.items = match items.parse() {
            Ok(0) => batching.items,
            Ok(items @ 1..=PIPELINE_ITEMS_MAX) => items,
            _ => return Err(ConfigError::Items),
        };
    }
    if !body.interval.0.is_empty() {
        batching.interval = duration::parse(&body.interval.0)?;
        if batching.interval > PIPELINE_FLUSH_MAX {
            return Err(ConfigError::IntervalTooLong);
        }
    }
    Ok(batching)
}

fn elasticsearch(body: &ConfigBody<'_>) -> Result<Elasticsearch, ConfigError> {
    if body.endpoint.0.is_empty() {
        return Err(ConfigError::Empty("endpoint"));
    }
    let mut user = None;
    if let Some(Object(authentication)) = &body.authentication {
        if authentication.by_aws {
            return Err(ConfigError::AwsSignature);
        }
        user = match (authentication.username.0.as_ref(), authentication.password.0.as_ref()) {
            ("", "") => None,
            (name, password) if !name.is_empty() && !password.is_empty() => Some((name, password)),
            _ => return Err(ConfigError::IncompleteUser),
        };
    }
    let index = if body.index.0.is_empty() { INDEX } else { &body.index.0 };
    Elasticsearch::new(&body.endpoint.0, user, index)
}

fn file(body: &ConfigBody<'_>) -> Result<FileConfig, ConfigError> {
    let name = body.name.0.as_ref();
    let is_name = (1..=EXPORTER_FILE_NAME_MAX).contains(&name.len())
        && !name.starts_with('.')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'));
    if !is_name {
        return Err(ConfigError::FileName);
    }
    let bytes_max = match body.bytes_max.map(str::parse) {
        None => FILE_BYTES,
        Some(Ok(bytes)) if bytes >= EXPORTER_FILE_BYTES_MIN => bytes,
        Some(_) => return Err(ConfigError::FileBytes),
    };
    let files_max = match body.files_max.map(str::parse) {
        None | Some(Ok(0)) => None,
        Some(Ok(files)) => Some(files),
        Some(Err(_)) => return Err(ConfigError::FileCount),
    };
    Ok(FileConfig { name: name.to_owned(), bytes_max, files_max })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(driver: &str, config: &str) -> Result<Setup, ExporterError> {
        let policy = ExporterPolicy { outbound: OutboundPolicy::Any, folder: Some(PathBuf::from("x")) };
        let config: Box<RawValue> = serde_json::from_str(config).expect("JSON");
        Setup::read(driver, Some(&config), &policy)
    }

    #[test]
    fn reads_the_configuration_of_each_driver() {
        let http = read(
            "http",
            r#"{"url":"http://s:1/x","batching":{"maxItems":7,"flushInterval":"250ms"},"more":1}"#,
        );
        let http = http.expect("a valid exporter");
        assert_eq!(http.driver, Driver::Http(Target::parse("http://s:1/x").expect("a target")));
        assert_eq!(http.batching, Batching { items: 7, interval: Duration::from_millis(250) });
        let file =
            read("file", r#"{"name":"main.2024","maxBytes":4096,"maxFiles":3}"#).expect("a valid exporter");
        let expected = FileConfig { name: "main.2024".to_owned(), bytes_max: 4096, files_max: Some(3) };
        assert_eq!((file.driver, file.batching), (Driver::File(expected), Batching::default()));
        assert_eq!(read("stdout", "null").expect("a valid exporter").driver, Driver::Stdout);
        assert_eq!(read("noop", "{}").expect("a valid exporter").driver, Driver::Noop);
    }

    #[test]
    fn errors_name_the_driver() {
        for (driver, config) in [
            ("http", "null"),
            ("http", "{}"),
            ("http", "[]"),
            ("http", r#"{"url":1}"#),
            ("http", r#"{"url":"ftp://x"}"#),
            ("http", r#"{"url":"http://x","batching":{"maxItems":-1}}"#),
            ("http", r#"{"url":"http://x","batching":{"maxItems":1000000}}"#),
            ("http", r#"{"url":"http://x","batching":{"flushInterval":"soon"}}"#),
            ("http", r#"{"url":"http://x","batching":{"flushInterval":"2h"}}"#),
            ("file", "{}"),
            ("file", r#"{"name":"../x"}"#),
            ("file", r#"{"name":".x"}"#),
            ("file", r#"{"name":"a/b"}"#),
            ("file", r#"{"name":"x","maxBytes":1}"#),
            ("file", r#"{"name":"x","maxFiles":-1}"#),
            ("clickhouse", "{}"),
            ("clickhouse", r#"{"dsn":7}"#),
            ("clickhouse", r#"{"dsn":"nowhere"}"#),
            ("elasticsearch", "{}"),
            ("elasticsearch", r#"{"endpoint":"nowhere"}"#),
            ("elasticsearch", r#"{"endpoint":"http://h","index":"Upper"}"#),
            ("elasticsearch", r#"{"endpoint":"http://h","authentication":{"username":"u"}}"#),
            ("elasticsearch", r#"{"endpoint":"http://h","authentication":{"password":"p"}}"#),
            ("elasticsearch", r#"{"endpoint":"http://h","authentication":{"awsEnabled":true}}"#),
            ("nosuch", "{}"),
            ("", "{}"),
        ] {
            let error = read(driver, config).expect_err(config).to_string();
            assert!(error.starts_with(&format!("driver '{driver}' invalid: ")), "{error}");
        }
        let policy = ExporterPolicy { outbound: OutboundPolicy::Public, folder: None };
        let config: Box<RawValue> =
            serde_json::from_str(r#"{"url":"http://127.0.0.1","dsn":"clickhouse://127.0.0.1","endpoint":"http://127.0.0.1","name":"x"}"#).expect("JSON");
        for driver in ["http", "clickhouse", "elasticsearch", "file"] {
            assert!(Setup::read(driver, Some(&config), &policy).is_err());
        }
    }
}

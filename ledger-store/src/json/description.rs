//! The first line of an export, which describes the ledger: its bucket, features and metadata.

use ledger_core::{BucketName, Features, FirstId, JsonReader, JsonWriter, LedgerOptions, Switch};

use super::DEPTH_MAX;
use super::log_reader::{LogFault, LogTextError, read_metadata, shortened};
use crate::feature::Feature;
use crate::query::LedgerInfo;

/// Writes `{"ledger":{…}}`: the members of a ledger in API v2, plus `firstId` and `legacyHashes`.
pub fn write_description(json: &mut JsonWriter, ledger: &LedgerInfo) {
    json.raw("{\"ledger\":{\"name\":").plain_string(ledger.name.as_str());
    json.raw(",\"bucket\":").plain_string(ledger.bucket.as_str());
    json.raw(",\"addedAt\":").time(ledger.added_at);
    json.raw(",\"firstId\":").integer(ledger.first_id.get());
    json.raw(",\"legacyHashes\":").boolean(ledger.features.legacy_hashes == Switch::On);
    json.raw(",\"metadata\":").metadata(&ledger.metadata);
    json.raw(",\"features\":");
    write_features(json, &ledger.features);
    json.raw("}}");
}

/// Writes the features of a ledger as an object, by their names in API v2.
///
/// ```
/// use ledger_core::{Features, JsonWriter};
/// let mut json = JsonWriter::with_capacity(100);
/// ledger_store::json::write_features(&mut json, &Features::default());
/// let text = String::from_utf8(json.into_bytes()).expect("a text");
/// assert!(text.contains(r#""HASH_LOGS":"SYNC""#));
/// ```
pub fn write_features(json: &mut JsonWriter, features: &Features) {
    json.raw("{").list(Feature::ALL, |json, feature| {
        json.plain_string(feature.name()).raw(":").plain_string(feature.value(features));
    });
    json.raw("}");
}

/// Reads the description of a ledger. Returns `None` if the text is another JSON object, such as a log.
///
/// # Errors
///
/// [`LogTextError`] with the first defect of the description.
pub fn read_description(text: &str) -> Result<Option<LedgerOptions>, LogTextError> {
    let mut options = None;
    let mut reader = JsonReader::new(text, DEPTH_MAX);
    reader.object(|reader, name| {
        let value = reader.raw()?;
        if name == "ledger" && value.starts_with('{') {
            options = Some(read_options(&mut JsonReader::new(value, DEPTH_MAX))?);
        }
        Ok::<_, LogFault>(())
    })?;
    Ok(options)
}

/// Reads the value of `ledger`. Skips its name and date: the caller names the new ledger.
fn read_options(reader: &mut JsonReader<'_>) -> Result<LedgerOptions, LogFault> {
    let mut options = LedgerOptions::default();
    reader.object(|reader, name| {
        match name {
            "bucket" => options.bucket = BucketName::parse(&reader.text()?)?,
            "firstId" => {
                options.first_id = if reader.digits()? == Some("0") { FirstId::Zero } else { FirstId::One };
            }
            "legacyHashes" => {
                let is_on = reader.raw()? == "true";
                options.features.legacy_hashes = if is_on { Switch::On } else { Switch::Off };
            }
            "metadata" => options.metadata = read_metadata(reader)?,
            "features" => read_features(reader, &mut options.features)?,
            _ => reader.skip()?,
        }
        Ok::<_, LogFault>(())
    })?;
    Ok(options)
}

fn read_features(reader: &mut JsonReader<'_>, features: &mut Features) -> Result<(), LogFault> {
    reader.object(|reader, name| {
        let value = reader.text()?;
        let is_set = Feature::parse(name).is_some_and(|feature| feature.set(features, &value));
        if is_set { Ok(()) } else { Err(LogFault::Feature(shortened(&format!("{name}={value}")))) }
    })
}

//! The parameters of stored queries, as schemas and requests state them.

use ledger_core::schema::SchemaError;
use ledger_core::{Json, Timestamp};

use crate::query::{Direction, Expand, TimeAxis};

/// The parameters of a stored query. A missing one has the default of the list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueryParams {
    /// Number of items in a page.
    pub page_size: Option<u32>,
    /// The order, in the form `field:direction`. See [`parse_sort`].
    pub sort: Option<String>,
    /// The volumes to include.
    pub expand: Option<Expand>,
    /// Counts transactions from this date on. For lists of volumes.
    pub start: Option<Timestamp>,
    /// The date as of which to answer.
    pub end: Option<Timestamp>,
    /// Number of leading address segments by which accounts are grouped. For lists of volumes.
    pub group_by: Option<u32>,
    /// The date of a transaction that the other dates refer to. For lists of volumes.
    pub axis: Option<TimeAxis>,
}

impl QueryParams {
    /// Reads the parameters from an object, from `null` or from nothing. Ignores unknown members.
    ///
    /// # Errors
    ///
    /// [`SchemaError`] for a parameter of the wrong type.
    pub fn of(json: Option<&Json>) -> Result<Self, SchemaError> {
        let json = match json {
            None | Some(Json::Null) => return Ok(Self::default()),
            Some(object @ Json::Object(_)) => object,
            Some(_) => return Err(SchemaError::new("'params' must be an object")),
        };
        let page_size = integer(json, "pageSize")?.map(u32::try_from).transpose();
        Ok(Self {
            page_size: page_size.map_err(|_| SchemaError::new("invalid 'pageSize'"))?,
            sort: text(json, "sort")?.map(str::to_owned),
            expand: expand(json)?,
            start: date(json, "startTime")?,
            end: date(json, "endTime")?,
            group_by: integer(json, "groupBy")?
                .map(|segments| u32::try_from(segments.max(0)).unwrap_or(u32::MAX)),
            axis: match json.get("insertionDate") {
                None | Some(Json::Null) => None,
                Some(Json::Boolean(true)) => Some(TimeAxis::Inserted),
                Some(Json::Boolean(false)) => Some(TimeAxis::Effective),
                Some(_) => return Err(SchemaError::new("'insertionDate' must be a boolean")),
            },
        })
    }

    /// Returns these parameters, overridden by those in `over`.
    ///
    /// ```
    /// use ledger_store::{QueryParams, ledger_core::Json};
    /// let stored = QueryParams::of(Some(&Json::parse(r#"{"pageSize": 50, "sort": "address:desc"}"#)?))?;
    /// let smaller = QueryParams { page_size: Some(10), ..QueryParams::default() };
    /// let params = stored.with(smaller);
    /// assert_eq!((params.page_size, params.sort.as_deref()), (Some(10), Some("address:desc")));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn with(self, over: Self) -> Self {
        Self {
            page_size: over.page_size.or(self.page_size),
            sort: over.sort.or(self.sort),
            expand: over.expand.or(self.expand),
            start: over.start.or(self.start),
            end: over.end.or(self.end),
            group_by: over.group_by.or(self.group_by),
            axis: over.axis.or(self.axis),
        }
    }
}

/// Parses an order of the form `field:direction`. Fields may be in camel case or in snake case. Without a direction, the
/// order has the direction `default`. An empty text has no field.
///
/// ```
/// use ledger_store::{AccountOrder, Direction, LogQuery, VolumesQuery, parse_sort};
/// let parsed = parse_sort("firstUsage:desc", &AccountOrder::FIELDS, Direction::Ascending);
/// assert_eq!(parsed, Ok((Some(AccountOrder::FirstUsage), Direction::Descending)));
/// assert!(parse_sort("balance", &AccountOrder::FIELDS, Direction::Ascending).is_err());
/// // Logs and volumes have one order, so a field only gives the direction.
/// let newest = parse_sort("id:desc", &LogQuery::SORT_FIELDS, Direction::Ascending);
/// assert_eq!(newest, Ok((Some(()), Direction::Descending)));
/// assert!(parse_sort("account", &VolumesQuery::SORT_FIELDS, Direction::Ascending).is_ok());
/// ```
///
/// # Errors
///
/// [`SchemaError`] for a field that is not in `fields`, and for an unknown direction.
pub fn parse_sort<O: Copy>(
    sort: &str,
    fields: &[(&str, O)],
    default: Direction,
) -> Result<(Option<O>, Direction), SchemaError> {
    if sort.is_empty() {
        return Ok((None, default));
    }
    let (field, direction) = match sort.split_once(':') {
        None => (sort, default),
        Some((field, word)) => {
            let invalid = || SchemaError::new(format!("invalid order: {word}"));
            (field, Direction::parse(word).ok_or_else(invalid)?)
        }
    };
    let name = snake_case(field);
    match fields.iter().find(|(sortable, _)| *sortable == name) {
        Some((_, order)) => Ok((Some(*order), direction)),
        None => Err(SchemaError::new(format!("field {field} is not paginated"))),
    }
}

fn snake_case(field: &str) -> String {
    let mut name = String::with_capacity(field.len() + 2);
    for c in field.chars() {
        if c.is_ascii_uppercase() {
            name.push('_');
        }
        name.push(c.to_ascii_lowercase());
    }
    name
}

fn text<'a>(json: &'a Json, name: &str) -> Result<Option<&'a str>, SchemaError> {
    match json.get(name) {
        None | Some(Json::Null) => Ok(None),
        Some(Json::Text(text)) => Ok(Some(text)),
        Some(_) => Err(SchemaError::new(format!("'{name}' must be a string"))),
    }
}

fn date(json: &Json, name: &str) -> Result<Option<Timestamp>, SchemaError> {
    let Some(text) = text(json, name)?.filter(|text| !text.is_empty()) else { return Ok(None) };
    let invalid = |error| SchemaError::new(format!("invalid '{name}': parsing time \"{text}\": {error}"));
    Timestamp::parse(text).map(Some).map_err(invalid)
}

fn integer(json: &Json, name: &str) -> Result<Option<i64>, SchemaError> {
    match json.get(name) {
        None | Some(Json::Null) => Ok(None),
        Some(Json::Number(digits)) => match digits.parse() {
            Ok(number) => Ok(Some(number)),
            Err(_) => Err(SchemaError::new(format!("invalid '{name}'"))),
        },
        Some(_) => Err(SchemaError::new(format!("'{name}' must be an integer"))),
    }
}

/// Reads the list of expansions. Ignores unknown words.
fn expand(json: &Json) -> Result<Option<Expand>, SchemaError> {
    let words = match json.get("expand") {
        None | Some(Json::Null) => return Ok(None),
        Some(Json::Array(words)) => words.as_slice(),
        Some(_) => return Err(SchemaError::new("'expand' must be an array")),
    };
    let mut expand = Expand::default();
    for word in words {
        match word.as_text() {
            Some("volumes") => expand.volumes = true,
            Some("effectiveVolumes") => expand.effective_volumes = true,
            Some(_) => {}
            None => return Err(SchemaError::new("'expand' must be an array of strings")),
        }
    }
    Ok(Some(expand))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::TransactionOrder;

    #[test]
    fn reports_each_fault() {
        for (params, message) in [
            ("[]", "'params' must be an object"),
            (r#"{"pageSize": "1"}"#, "'pageSize' must be an integer"),
            (r#"{"pageSize": -1}"#, "invalid 'pageSize'"),
            (r#"{"pageSize": 4294967296}"#, "invalid 'pageSize'"),
            (r#"{"groupBy": 1.5}"#, "invalid 'groupBy'"),
            (r#"{"sort": 1}"#, "'sort' must be a string"),
            (r#"{"endTime": "noon"}"#, "invalid 'endTime': parsing time \"noon\": "),
            (r#"{"expand": "volumes"}"#, "'expand' must be an array"),
            (r#"{"expand": [1]}"#, "'expand' must be an array of strings"),
            (r#"{"insertionDate": 1}"#, "'insertionDate' must be a boolean"),
        ] {
            let json = Json::parse(params).expect("JSON");
            let error = QueryParams::of(Some(&json)).expect_err(params).to_string();
            assert!(error.starts_with(message), "{params}: {error}");
        }
    }

    #[test]
    fn given_params_override_stored_ones() {
        let params = |text| QueryParams::of(Some(&Json::parse(text).expect("JSON"))).expect("parameters");
        let stored = params(r#"{"pageSize": 5, "sort": "id:asc", "groupBy": 9999999999, "more": 1}"#);
        assert_eq!(stored.group_by, Some(u32::MAX));
        let both = stored.with(params(r#"{"pageSize": 7, "insertionDate": true}"#));
        assert_eq!((both.page_size, both.sort.as_deref()), (Some(7), Some("id:asc")));
        assert_eq!(both.axis, Some(TimeAxis::Inserted));
    }

    #[test]
    fn parses_orders() {
        let parse = |sort| parse_sort(sort, &TransactionOrder::FIELDS, Direction::Descending);
        let (ascending, descending) = (Direction::Ascending, Direction::Descending);
        assert_eq!(parse(""), Ok((None, descending)));
        assert_eq!(parse("id"), Ok((Some(TransactionOrder::Id), descending)));
        assert_eq!(parse("revertedAt:ASC"), Ok((Some(TransactionOrder::RevertedAt), ascending)));
        assert_eq!(parse("updated_at"), Ok((Some(TransactionOrder::UpdatedAt), descending)));
        for wrong in ["amount", "id:", "id:up", ":asc"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}

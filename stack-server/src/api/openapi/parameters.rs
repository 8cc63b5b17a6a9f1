//! Parameters and bodies that several v2 operations share.

use crate::api::openapi::description::Content::Json;
use crate::api::openapi::description::{Body, DATE, Parameter, SWITCH, TEXT, query};

pub(super) const JSON: &str = "application/json";

pub(super) const METADATA: Body = Body { required: true, contents: &[(JSON, Json("V2MetadataInput"))] };

pub(super) const QUERY: Parameter = query(
    "query",
    TEXT,
    "The filter as JSON text, for clients that can send no body. It goes before the body.",
);
pub(super) const PAGES: [Parameter; 2] = [
    query(
        "pageSize",
        r#"{"type":"integer","minimum":0,"maximum":4294967295}"#,
        "Rows of a page. More than the server's maximum is the maximum; 0 is the default.",
    ),
    query(
        "cursor",
        TEXT,
        "A cursor of an earlier answer. It holds the whole query: beside it only `pageSize` counts.",
    ),
];
pub(super) const SORT: Parameter = query("sort", TEXT, "A field with `:asc` or `:desc`.");
pub(super) const PIT: Parameter = query("pit", DATE, "As of this date.");
pub(super) const OOT: Parameter = query("oot", DATE, "Read as a date, and without effect here.");
pub(super) const EXPAND: Parameter = query(
    "expand",
    r#"{"type":"array","items":{"type":"string","examples":["volumes","effectiveVolumes"]}}"#,
    "`volumes`, `effectiveVolumes`; others are ignored.",
);
/// The parameters that select the balances to sum.
pub(super) const OF_BALANCES: [Parameter; 5] = [
    PIT,
    OOT,
    query("useInsertionDate", SWITCH, "`pit` is about when it was recorded, not about when it took effect."),
    query("use_insertion_date", SWITCH, "The same."),
    QUERY,
];
/// The parameters that select the volumes to list.
pub(super) const OF_VOLUMES: [Parameter; 8] = [
    SORT,
    query("startTime", DATE, "What moved from then on."),
    query("endTime", DATE, "What moved up to then."),
    query("oot", DATE, "Another name of `startTime`."),
    query("pit", DATE, "Another name of `endTime`."),
    query("insertionDate", SWITCH, "The dates are about when it was recorded."),
    query("groupBy", r#"{"type":"integer"}"#, "Joins accounts by so many first segments; 0 joins none."),
    QUERY,
];
pub(super) const DRY_RUN: Parameter =
    query("dryRun", SWITCH, "Checks and computes everything, answers the same, and stores nothing.");
pub(super) const SCHEMA_VERSION: Parameter =
    query("schemaVersion", TEXT, "The version of the ledger's schema by which the request is judged.");
pub(super) const FORCE: Parameter = query("force", SWITCH, "Sources may go below zero.");

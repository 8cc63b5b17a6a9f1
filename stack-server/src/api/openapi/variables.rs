//! Variable segments of paths.

use serde_json::{Value, json};

use crate::api::routes::Route;
use crate::api::routing::reserved;

/// Describes a variable segment of the path.
pub(crate) fn variable(name: &str, route: &Route) -> Value {
    let schema = match name {
        "ledger" => json!({
            "$ref": "#/components/schemas/LedgerName",
            "not": {"enum": reserved(route.mount)}
        }),
        "address" => json!({"$ref": "#/components/schemas/Address"}),
        "exporterID" | "pipelineID" => json!({"type": "string", "format": "uuid"}),
        "id" | "txid" => json!({"$ref": "#/components/schemas/Id"}),
        _ => json!({"type": "string", "minLength": 1}),
    };
    let mut parameter = json!({"name": name, "in": "path", "required": true, "schema": schema});
    if let Some(example) = example(name) {
        parameter["example"] = example;
    }
    parameter
}

/// Returns the example of a variable. It names the same things as `examples.json`.
fn example(name: &str) -> Option<Value> {
    let text = match name {
        "id" | "txid" => return Some(json!(1)),
        "ledger" => "main",
        "address" => "users:001",
        "key" => "kind",
        "bucket" => "tenant-1",
        "version" => "v1",
        "query" => "users",
        "exporterID" => "0b6f3c5e-5b0a-4b1e-9d8b-1f3f0f5a7c21",
        "pipelineID" => "7c9d1f42-3f6e-4a8c-8f0d-2a6b9e4c5d30",
        "connector" => "GENERIC",
        "connectorId" => CONNECTOR,
        "accountId" => ACCOUNT,
        "paymentId" => PAYMENT,
        "taskId" => "83e1b4d6-d382-4396-9f03-91b181d2f4a9",
        "transferId" => TRANSFER,
        "bankAccountId" => "1c7a4d6f-6c1b-4c2f-8e9c-2a4a1a6b8d32",
        "poolId" => "2d8b5e70-7d2c-4d30-9fad-3b5b2b7c9e43",
        "clientId" => "billing",
        "secretId" => "4fad7092-9f4e-4f52-9bcf-5d7d4d9eb065",
        "scopeId" => "50be81a3-a05f-4063-8cd0-6e8e5eafc176",
        "transientScopeId" => "72d0a3c5-c271-4285-8ef2-80a070c1e398",
        "userId" => "61cf92b4-b160-4174-9de1-7f9f6fb0d287",
        "keyId" => "1",
        _ => return None,
    };
    Some(json!(text))
}

/// The id of the installed connector: its provider and the number of the installation, in base64.
const CONNECTOR: &str =
    "eyJQcm92aWRlciI6IkdFTkVSSUMiLCJSZWZlcmVuY2UiOiIyZjFjMWEzZS05YTM5LTRkNjItOGE1ZS02ZjRmMmI3YzlkMTAifQ";
/// Ids of records of that connector, which contain its id.
const ACCOUNT: &str = "eyJDb25uZWN0b3JJRCI6eyJQcm92aWRlciI6IkdFTkVSSUMiLCJSZWZlcmVuY2UiOiIyZjFjMWEzZS05YTM5LTRkNjItOGE1ZS02ZjRmMmI3YzlkMTAifSwiUmVmZXJlbmNlIjoiYWNjLTEifQ";
const PAYMENT: &str = "eyJDb25uZWN0b3JJRCI6eyJQcm92aWRlciI6IkdFTkVSSUMiLCJSZWZlcmVuY2UiOiIyZjFjMWEzZS05YTM5LTRkNjItOGE1ZS02ZjRmMmI3YzlkMTAifSwiUmVmZXJlbmNlIjoicGF5LTEiLCJUeXBlIjoiUEFZLUlOIn0";
const TRANSFER: &str = "eyJDb25uZWN0b3JJRCI6eyJQcm92aWRlciI6IkdFTkVSSUMiLCJSZWZlcmVuY2UiOiIyZjFjMWEzZS05YTM5LTRkNjItOGE1ZS02ZjRmMmI3YzlkMTAifSwiUmVmZXJlbmNlIjoicGF5b3V0LTEifQ";

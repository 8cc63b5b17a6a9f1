//! The groups of operations in the order in which the document and its page show them.

use serde_json::{Value, json};

/// The groups with their descriptions: the ledger first, the service itself last.
const TAGS: [(&str, &str); 18] = [
    ("Ledgers", "Ledgers and their buckets."),
    ("Transactions", "Movements of amounts between accounts, alone or in bulk."),
    ("Accounts", "Accounts, and sums of their volumes and balances."),
    ("Logs", "The log of every write: lists, exports, imports and a stream of events."),
    ("Schemas", "Charts of accounts, transaction templates and stored queries."),
    ("Pipelines", "Delivery of logs to other systems; only with --experimental-exporters."),
    ("First generation", "Version 1 of the ledger API, over the same ledgers."),
    ("Payments", "Payments of all connectors."),
    ("Payment accounts", "Accounts at providers, bank accounts and pools."),
    ("Transfer initiations", "Transfers and payouts that connectors carry out."),
    ("Connectors", "Installation and work of connectors, and the rules that post their payments."),
    ("Generic connector API", "The records of the payments API as a provider for other stacks."),
    ("Clients", "Clients of the authorization server and their secrets."),
    ("Scopes", "Scopes that clients may ask for."),
    ("Users", "Users who logged in through the identity provider."),
    ("OAuth", "Endpoints of OAuth 2 and OpenID Connect."),
    ("Authorization", "State and signing keys of the authorization server."),
    ("Service", "Release, health and description of the server."),
];

/// Returns the groups as the document lists them.
pub(crate) fn tags() -> Value {
    TAGS.iter().map(|(name, description)| json!({"name": name, "description": description})).collect()
}

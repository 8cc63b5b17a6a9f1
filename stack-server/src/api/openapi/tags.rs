//! The groups of operations in the order in which the document and its page show them.

use serde_json::{Value, json};

/// The group of the operations below a second prefix.
pub(crate) const ALIASES: &str = "Aliases";

/// The groups with their descriptions, in the order in which someone new meets them.
const TAGS: [(&str, &str); 20] = [
    ("Ledgers", "Ledgers: create one, then write transactions into it."),
    ("Transactions", "Movements of amounts between accounts, alone or in bulk."),
    ("Accounts", "Accounts, and sums of their volumes and balances."),
    ("Logs", "The log of every write: lists, exports, imports and a stream of events."),
    ("Schemas", "Charts of accounts, transaction templates and stored queries."),
    ("Buckets", "Buckets of ledgers, which are deleted and restored together."),
    ("Pipelines", "Delivery of logs to other systems; only with --experimental-exporters."),
    ("API v1", "The ledger's API v1, over the same ledgers."),
    ("Connectors", "Installation and work of connectors, and the rules that post their payments."),
    ("Payments", "Payments of all connectors."),
    ("Payment accounts", "Accounts at providers, bank accounts and pools."),
    ("Transfer initiations", "Transfers and payouts that connectors carry out."),
    ("Generic connector API", "The records of the payments API as a provider for other stacks."),
    ("Clients", "Clients of the authorization server and their secrets."),
    ("Scopes", "Scopes that clients may ask for."),
    ("Users", "Users who logged in through the identity provider."),
    ("OAuth", "Endpoints of OAuth 2 and OpenID Connect."),
    ("Authorization", "State and signing keys of the authorization server."),
    ("Service", "Release, health and description of the server."),
    (ALIASES, "The operations of the ledger once more, below the paths of the stack's gateway."),
];

/// Returns the groups as the document lists them.
pub(crate) fn tags() -> Value {
    TAGS.iter().map(|(name, description)| json!({"name": name, "description": description})).collect()
}

/// Returns the place of a group in the document. A group that has no description comes last.
pub(crate) fn rank(group: &str) -> usize {
    TAGS.iter().position(|(name, _)| *name == group).unwrap_or(TAGS.len())
}

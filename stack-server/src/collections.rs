//! The collections of documents that this server stores. The numbers are stored, so the meaning of a number must never
//! change.

use ledger_store::Collection;

const fn collection(number: u32) -> Collection {
    match Collection::new(number) {
        Some(collection) => collection,
        None => panic!("the number is the store's own"),
    }
}

/// Positions of event publishers, by the publisher's name.
pub(crate) const PUBLISHERS: Collection = collection(32);

/// Exporters by id.
pub(crate) const EXPORTERS: Collection = collection(33);

/// Pipelines by id.
pub(crate) const PIPELINES: Collection = collection(34);

/// Positions of pipelines, by id and run.
pub(crate) const PIPELINE_POSITIONS: Collection = collection(35);

/// Clients of the authorization server by id, with their secrets.
pub(crate) const AUTH_CLIENTS: Collection = collection(64);

/// Scopes of the authorization server by id.
pub(crate) const AUTH_SCOPES: Collection = collection(65);

/// Users of the authorization server by id.
pub(crate) const AUTH_USERS: Collection = collection(66);

/// Keys that sign tokens, by key id. Their private parts are sealed.
pub(crate) const AUTH_KEYS: Collection = collection(67);

/// The sealed pepper of tags and hashes, by name.
pub(crate) const AUTH_VAULT: Collection = collection(68);

/// Records of tokens, sessions and assertions that are refused before they expire.
pub(crate) const AUTH_REFUSED: Collection = collection(69);

/// Authorizations that wait for a login or for the exchange of their code, by id.
pub(crate) const AUTH_PENDING: Collection = collection(70);

/// Sessions of users, which refresh tokens continue, by id.
pub(crate) const AUTH_SESSIONS: Collection = collection(71);

/// Installations of connectors by id.
pub(crate) const CONNECTORS: Collection = collection(72);

/// Tasks by installation and id.
pub(crate) const TASKS: Collection = collection(73);

/// Payments by installation, type and reference.
pub(crate) const PAYMENTS: Collection = collection(74);

/// Accounts at providers by installation and reference.
pub(crate) const PAYMENT_ACCOUNTS: Collection = collection(75);

/// Balances of accounts at providers by account, asset and date.
pub(crate) const PAYMENT_BALANCES: Collection = collection(76);

/// Bank accounts by id.
pub(crate) const BANK_ACCOUNTS: Collection = collection(77);

/// Pools by id.
pub(crate) const POOLS: Collection = collection(78);

/// Members of pools by pool and account.
pub(crate) const POOL_MEMBERS: Collection = collection(79);

/// Transfer initiations by installation and reference.
pub(crate) const TRANSFER_INITIATIONS: Collection = collection(80);

/// Transfers of the payments API of stack 1.10, by installation and id.
pub(crate) const TRANSFERS: Collection = collection(81);

/// Events of payments that are not delivered yet, by publisher and number.
pub(crate) const PAYMENT_EVENTS: Collection = collection(82);

/// Posting rules, by installation.
pub(crate) const POSTING_RULES: Collection = collection(83);

/// Postings of payments, by installation, type and reference.
pub(crate) const POSTINGS: Collection = collection(84);

//! The descriptions of the v1 operations.

use crate::api::openapi::description::{
    BIGINT_AS_STRING, Body, Content, DATE, Description, IDEMPOTENCY_KEY, Parameter, ResponseHeader, SWITCH,
    TEXT, query,
};
use crate::api::operations::V1;
use crate::http::error::Code;

use Code::{CompilationFailed, Conflict, InsufficientFund, NotFound, Validation};
use Content::{Cursor, Data, Empty, Json};

const GROUP: &str = "API v1";
const JSON: &str = "application/json";

const METADATA: Body = Body { required: true, contents: &[(JSON, Json("V1Metadata"))] };

const SIZE: &str = r#"{"type":"integer","minimum":0,"maximum":4294967295}"#;
const OPERATOR: &str = r#"{"type":"string","enum":["e","ne","gt","gte","lt","lte"]}"#;
const PAGES: [Parameter; 5] = [
    query("pageSize", SIZE, "Rows of a page, at most 1000; 15 unless told."),
    query("page_size", SIZE, "Its older name."),
    query("cursor", TEXT, "A cursor of an earlier answer. No parameter of the list may stand beside it."),
    query("pagination_token", TEXT, "Its older name."),
    query("after", TEXT, "Only what comes behind this."),
];
const WINDOW: [Parameter; 4] = [
    query("startTime", DATE, "From then on."),
    query("start_time", DATE, "Its older name."),
    query("endTime", DATE, "Before then."),
    query("end_time", DATE, "Its older name."),
];
/// `metadata[key]=value`: any number of keys.
const METADATA_FILTER: Parameter = query(
    "metadata",
    r#"{"type":"object","additionalProperties":{"type":"string"}}"#,
    "`metadata[key]=value`: what has this value under this key.",
);
const ADDRESS: Parameter = query("address", TEXT, "A regular expression on the whole address.");
const BALANCE: [Parameter; 3] = [
    query("balance", r#"{"type":"integer"}"#, "Some balance is at least so high."),
    query("balanceOperator", OPERATOR, "How it compares, instead of at least."),
    query("balance_operator", OPERATOR, "Its older name."),
];
const SIDES: [Parameter; 4] = [
    query("reference", TEXT, "With this reference."),
    query("account", TEXT, "With an account that matches on either side."),
    query("source", TEXT, "With a source that matches."),
    query("destination", TEXT, "With a destination that matches."),
];

const PREVIEW: Parameter =
    query("preview", SWITCH, "Checks and computes everything, answers the same, and stores nothing.");

/// Returns the description of an operation.
pub(crate) fn describe(operation: V1) -> Description {
    let new = |id, summary| Description::new(id, GROUP, summary);
    match operation {
        V1::LedgerInfo => new("getLedgerInfo", "What a ledger tells of its storage")
            .details(
                "Answers the name of the ledger and the migrations that clients of 1.10 look for. An \
                 unwritten ledger has no migrations.",
            )
            .answers(200, "Its name and migrations", Data("V1LedgerInfo")),
        V1::Stats => new("readStats", "Counts transactions and accounts")
            .details(
                "Answers how many transactions and accounts the ledger holds; both are 0 for a ledger \
                 without writes.",
            )
            .answers(200, "The counts", Data("Stats")),
        V1::ListAccounts => new("listAccounts", "Lists accounts, last address first")
            .details(
                "Answers a page of the accounts that match all given parameters, with a cursor for the \
                 next page.",
            )
            .reads(&PAGES)
            .reads(&[ADDRESS, METADATA_FILTER])
            .reads(&BALANCE)
            .answers(200, "A page of accounts", Cursor("V1Account")),
        V1::CountAccounts => new("countAccounts", "Counts accounts")
            .details(
                "Answers how many accounts match all given parameters, in the header `Count` and without \
                 a body.",
            )
            .reads(&[ADDRESS, METADATA_FILTER])
            .reads(&BALANCE)
            .answers(200, "The count is in the header", Empty)
            .shows(&[ResponseHeader::Count])
            .answers(204, "The same, to clients that expect it", Empty)
            .shows(&[ResponseHeader::Count]),
        V1::ReadAccount => new("getAccount", "Reads an account; one that was never used is empty")
            .details("Answers the account with its metadata, volumes and balances.")
            .reads(&[BIGINT_AS_STRING])
            .answers(200, "The account", Data("V1AccountWithVolumes")),
        V1::SetAccountMetadata => new("addMetadataToAccount", "Adds metadata to an account")
            .details(
                "Merges the given keys into the metadata of an account in one log. Values may be of any \
                 JSON type but null.",
            )
            .reads(&[PREVIEW, IDEMPOTENCY_KEY])
            .takes(METADATA)
            .answers(204, "It is set", Empty)
            .shows(&[ResponseHeader::IdempotencyHit]),
        V1::DeleteAccountMetadata => new("deleteAccountMetadata", "Removes metadata of an account")
            .details("Removes one key from the metadata of an account and records a log of it.")
            .reads(&[PREVIEW, IDEMPOTENCY_KEY])
            .answers(204, "It is not there", Empty)
            .shows(&[ResponseHeader::IdempotencyHit]),
        V1::ListTransactions => new("listTransactions", "Lists transactions, newest first")
            .details(
                "Answers a page of the transactions that match all given parameters, with a cursor for \
                 the next page.",
            )
            .reads(&PAGES)
            .reads(&SIDES)
            .reads(&WINDOW)
            .reads(&[METADATA_FILTER, BIGINT_AS_STRING])
            .answers(200, "A page of transactions", Cursor("V1Transaction")),
        V1::CountTransactions => new("countTransactions", "Counts transactions")
            .details(
                "Answers how many transactions match all given parameters, in the header `Count` and \
                 without a body.",
            )
            .reads(&SIDES)
            .reads(&WINDOW)
            .reads(&[METADATA_FILTER])
            .answers(200, "The count is in the header", Empty)
            .shows(&[ResponseHeader::Count])
            .answers(204, "The same, to clients that expect it", Empty)
            .shows(&[ResponseHeader::Count]),
        V1::CreateTransaction => new("createTransaction", "Creates a transaction")
            .details(
                "Records the postings, or those that a script makes, as one transaction: everything is \
                 committed together or nothing is. The first write creates the ledger.",
            )
            .reads(&[PREVIEW, IDEMPOTENCY_KEY, BIGINT_AS_STRING])
            .takes(Body { required: true, contents: &[(JSON, Json("V1CreateTransactionRequest"))] })
            .answers(200, "The transaction, in a list", Data("V1TransactionList"))
            .shows(&[ResponseHeader::IdempotencyHit])
            .refuses(&[InsufficientFund, Conflict, CompilationFailed, Code::MetadataOverride]),
        V1::CreateBatch => new("CreateTransactions", "Creates several transactions, all of them or none")
            .details(
                "Records the given transactions in their order as one commit. If one of them is refused, \
                 none is recorded.",
            )
            .reads(&[IDEMPOTENCY_KEY, BIGINT_AS_STRING])
            .takes(Body { required: true, contents: &[(JSON, Json("V1BatchRequest"))] })
            .answers(200, "The transactions", Data("V1TransactionList"))
            .shows(&[ResponseHeader::IdempotencyHit])
            .refuses(&[InsufficientFund, Conflict]),
        V1::ReadTransaction => new("getTransaction", "Reads a transaction")
            .details("Answers one transaction with its postings, metadata and volumes.")
            .reads(&[BIGINT_AS_STRING])
            .answers(200, "The transaction", Data("V1Transaction"))
            .refuses(&[NotFound]),
        V1::RevertTransaction => new("revertTransaction", "Reverts a transaction")
            .details(
                "Records a new transaction with the postings of the original in the opposite direction, \
                 and marks the original as reverted, in one commit.",
            )
            .reads(&[
                query("disableChecks", SWITCH, "Accounts may end below zero."),
                PREVIEW,
                IDEMPOTENCY_KEY,
                BIGINT_AS_STRING,
            ])
            .answers(201, "The new transaction", Data("V1Transaction"))
            .shows(&[ResponseHeader::IdempotencyHit])
            .answers(200, "The same, to clients of 1.10", Data("V1Transaction"))
            .shows(&[ResponseHeader::IdempotencyHit])
            .refuses(&[NotFound, InsufficientFund, Conflict]),
        V1::SetTransactionMetadata => new("addMetadataOnTransaction", "Adds metadata to a transaction")
            .details(
                "Merges the given keys into the metadata of a transaction in one log. Postings never \
                 change.",
            )
            .reads(&[PREVIEW, IDEMPOTENCY_KEY])
            .takes(METADATA)
            .answers(204, "It is set", Empty)
            .shows(&[ResponseHeader::IdempotencyHit])
            .refuses(&[NotFound]),
        V1::DeleteTransactionMetadata => {
            new("deleteTransactionMetadata", "Removes metadata of a transaction")
                .details("Removes one key from the metadata of a transaction and records a log of it.")
                .reads(&[PREVIEW, IDEMPOTENCY_KEY])
                .answers(204, "It is not there", Empty)
                .shows(&[ResponseHeader::IdempotencyHit])
                .refuses(&[NotFound])
        }
        V1::RunScript => new("runScript", "Runs a script; every outcome is answered with 200")
            .details(
                "Runs the script and records its postings as one transaction, or nothing if it fails. The \
                 answer holds either the transaction or an error code.",
            )
            .reads(&[PREVIEW, IDEMPOTENCY_KEY, BIGINT_AS_STRING])
            .takes(Body { required: true, contents: &[(JSON, Json("V1ScriptRequest"))] })
            .answers(200, "What became of it", Json("V1ScriptResponse"))
            .shows(&[ResponseHeader::IdempotencyHit]),
        V1::ReadMapping => new("getMapping", "Reads the mapping of a ledger")
            .details(
                "Answers the contracts of the ledger: rules that balances of accounts must meet after a \
                 write.",
            )
            .answers(200, "The mapping", Data("V1Mapping")),
        V1::UpdateMapping => new("updateMapping", "Replaces the mapping of a ledger")
            .details(
                "Replaces all contracts of the ledger at once. Transactions that were recorded before are \
                 not checked again.",
            )
            .takes(Body { required: true, contents: &[(JSON, Json("V1Mapping"))] })
            .answers(200, "The mapping", Data("V1Mapping")),
        V1::ListBalances => new("getBalances", "Lists balances by account")
            .details(
                "Answers a page of accounts with their balance in every asset, and a cursor for the next \
                 page.",
            )
            .reads(&PAGES)
            .reads(&[ADDRESS, BIGINT_AS_STRING])
            .answers(200, "A page of balances", Cursor("V1AccountBalances")),
        V1::AggregatedBalances => new("getBalancesAggregated", "Sums balances by asset")
            .details("Answers the sum of the balances of all accounts that match the address, by asset.")
            .reads(&[ADDRESS, BIGINT_AS_STRING])
            .answers(200, "The sums", Data("AssetBalances")),
        V1::ListLogs => new("listLogs", "Lists logs, newest first")
            .details(
                "Answers a page of the log of the ledger between the given dates: one entry for each \
                 write, chained by hashes.",
            )
            .reads(&PAGES)
            .reads(&WINDOW)
            .answers(200, "A page of logs", Cursor("V1Log")),
    }
    // Every operation checks the name of the ledger.
    .refuses(&[Validation])
}

//! The descriptions of the v2 operations.

use crate::api::openapi::description::{
    BIGINT_AS_STRING, Body, Content, Description, IDEMPOTENCY_KEY, ResponseHeader, SWITCH, TEXT, filter,
    header, query,
};
use crate::api::openapi::parameters::{
    DRY_RUN, EXPAND, FORCE, JSON, METADATA, OF_BALANCES, OF_VOLUMES, OOT, PAGES, PIT, QUERY, SCHEMA_VERSION,
    SORT,
};
use crate::api::openapi::pipelines;
use crate::api::operations::V2;
use crate::http::error::Code;

use Code::{
    AlreadyRevert, BulkSizeExceeded, CompilationFailed, Conflict, Import, InsufficientFund, InterpreterParse,
    InterpreterRuntime, LedgerAlreadyExists, LedgerNotFound, MetadataOverride, NoPostings, NotFound,
    SchemaAlreadyExists, SchemaNotSpecified, Validation,
};
use Content::{Cursor, Data, Empty, Json, Text};

const LEDGERS: &str = "Ledgers";
const BUCKETS: &str = "Buckets";
const ACCOUNTS: &str = "Accounts";
const TRANSACTIONS: &str = "Transactions";
const LOGS: &str = "Logs";
const SCHEMAS: &str = "Schemas";

/// Returns the description of an operation.
pub(crate) fn describe(operation: V2) -> Description {
    let new = Description::new;
    match operation {
        V2::ListLedgers => new("v2ListLedgers", LEDGERS, "Lists ledgers")
            .details(
                "Answers a page of the ledgers that match the filter, with a cursor for the next page. \
                 Ledgers of deleted buckets are left out unless asked for.",
            )
            .reads(&PAGES)
            .reads(&[SORT, QUERY, query("includeDeleted", SWITCH, "Those of deleted buckets too.")])
            .takes(filter!("LedgersFilter"))
            .answers(200, "A page of ledgers", Cursor("V2Ledger"))
            .refuses(&[Validation]),
        V2::CreateLedger => new("v2CreateLedger", LEDGERS, "Creates a ledger")
            .details(
                "Creates an empty ledger with the given bucket, metadata and features. A name that is \
                 taken is refused, and no body means the defaults.",
            )
            .takes(Body { required: false, contents: &[(JSON, Json("V2CreateLedgerRequest"))] })
            .answers(204, "It is there", Empty)
            .refuses(&[Validation, LedgerAlreadyExists]),
        V2::ReadLedger => new("v2GetLedger", LEDGERS, "Reads a ledger")
            .details("Answers one ledger with its bucket, metadata and features.")
            .answers(200, "The ledger", Data("V2Ledger"))
            .refuses(&[NotFound]),
        V2::SetLedgerMetadata => new("v2UpdateLedgerMetadata", LEDGERS, "Adds metadata to a ledger")
            .details(
                "Merges the given keys into the metadata of a ledger in one write. Keys that are not \
                 named keep their values.",
            )
            .takes(METADATA)
            .answers(204, "It is set", Empty)
            .refuses(&[Validation, LedgerNotFound]),
        V2::DeleteLedgerMetadata => new("v2DeleteLedgerMetadata", LEDGERS, "Removes metadata of a ledger")
            .details(
                "Removes one key from the metadata of a ledger. It answers the same if the key is absent.",
            )
            .answers(204, "It is not there", Empty)
            .refuses(&[LedgerNotFound]),
        V2::LedgerInfo => new("v2GetLedgerInfo", LEDGERS, "What a ledger tells of its storage")
            .details(
                "Answers the name of the ledger and an empty list of migrations, because the store has \
                 none to run.",
            )
            .answers(200, "Its name and migrations, of which there are none", Data("V2LedgerInfo"))
            .refuses(&[LedgerNotFound]),
        V2::LedgerStats => new("v2ReadStats", LEDGERS, "Counts transactions and accounts")
            .details("Answers how many transactions and accounts the ledger holds.")
            .answers(200, "The counts", Data("Stats"))
            .refuses(&[LedgerNotFound]),
        V2::Bulk => new("v2CreateBulk", TRANSACTIONS, "Executes several commands in order")
            .details(
                "Runs the elements in their order and answers one result for each. With `atomic` all \
                 elements are committed together or none is; otherwise each is a write of its own, and \
                 the first failure stops the rest unless `continueOnFailure` is set.",
            )
            .reads(&[
                query("continueOnFailure", SWITCH, "Whether a failed element stops those behind it."),
                query("atomic", SWITCH, "All of them or none."),
                query("parallel", SWITCH, "Accepted; elements run in order all the same. Not with `atomic`."),
                SCHEMA_VERSION,
            ])
            .takes(Body {
                required: true,
                contents: &[
                    (JSON, Json("V2BulkRequest")),
                    ("application/vnd.formance.ledger.api.v2.bulk+json-stream", Text("")),
                    ("application/vnd.formance.ledger.api.v2.bulk+script-stream", Text("")),
                ],
            })
            .answers(200, "Every element succeeded", Json("V2BulkResponse"))
            .answers(400, "An element failed", Json("V2BulkResponse"))
            .refuses(&[NotFound, Validation, LedgerNotFound, BulkSizeExceeded])
            .refuses_with(412, Validation),
        V2::ListAccounts => new("v2ListAccounts", ACCOUNTS, "Lists accounts")
            .details(
                "Answers a page of the accounts that match the filter, with a cursor for the next page. \
                 With `pit` the accounts are shown as they were at that date.",
            )
            .reads(&PAGES)
            .reads(&[SORT, EXPAND, PIT, OOT, QUERY, BIGINT_AS_STRING])
            .takes(filter!("AccountsFilter"))
            .answers(200, "A page of accounts", Cursor("V2Account"))
            .refuses(&[Validation, LedgerNotFound]),
        V2::CountAccounts => new("v2CountAccounts", ACCOUNTS, "Counts accounts")
            .details("Answers how many accounts match the filter, in the header `Count` and without a body.")
            .reads(&[PIT, OOT, QUERY])
            .takes(filter!("AccountsFilter"))
            .answers(204, "The count is in the header", Empty)
            .shows(&[ResponseHeader::Count])
            .refuses(&[Validation, LedgerNotFound]),
        V2::ReadAccount => new("v2GetAccount", ACCOUNTS, "Reads an account")
            .details(
                "Answers one account with its metadata, and with its volumes where `expand` asks for \
                 them.",
            )
            .reads(&[EXPAND, PIT, OOT, BIGINT_AS_STRING])
            .answers(200, "The account", Data("V2Account"))
            .refuses(&[Validation, NotFound, LedgerNotFound]),
        V2::SetAccountMetadata => new("v2AddMetadataToAccount", ACCOUNTS, "Adds metadata to an account")
            .details(
                "Merges the given keys into the metadata of an account in one log. The account may be one \
                 without transactions.",
            )
            .reads(&[DRY_RUN, SCHEMA_VERSION, IDEMPOTENCY_KEY])
            .takes(METADATA)
            .answers(204, "It is set", Empty)
            .shows(&[ResponseHeader::IdempotencyHit])
            .refuses(&[SchemaNotSpecified, NotFound, Validation, LedgerNotFound]),
        V2::DeleteAccountMetadata => {
            new("v2DeleteAccountMetadata", ACCOUNTS, "Removes metadata of an account")
                .details("Removes one key from the metadata of an account and records a log of it.")
                .reads(&[DRY_RUN, SCHEMA_VERSION, IDEMPOTENCY_KEY])
                .answers(204, "It is not there", Empty)
                .shows(&[ResponseHeader::IdempotencyHit])
                .refuses(&[SchemaNotSpecified, NotFound, Validation, LedgerNotFound])
        }
        V2::ListTransactions => new("v2ListTransactions", TRANSACTIONS, "Lists transactions")
            .details(
                "Answers a page of the transactions that match the filter, newest first unless told \
                 otherwise, with a cursor for the next page.",
            )
            .reads(&PAGES)
            .reads(&[
                SORT,
                query(
                    "order",
                    TEXT,
                    "`effective`: by the date of effect instead of by id. Other values are ignored.",
                ),
                query("reverse", SWITCH, "The other way round."),
                EXPAND,
                PIT,
                OOT,
                QUERY,
                BIGINT_AS_STRING,
            ])
            .takes(filter!("TransactionsFilter"))
            .answers(200, "A page of transactions", Cursor("V2Transaction"))
            .refuses(&[Validation, LedgerNotFound]),
        V2::CountTransactions => new("v2CountTransactions", TRANSACTIONS, "Counts transactions")
            .details(
                "Answers how many transactions match the filter, in the header `Count` and without a \
                 body.",
            )
            .reads(&[PIT, OOT, QUERY])
            .takes(filter!("TransactionsFilter"))
            .answers(204, "The count is in the header", Empty)
            .shows(&[ResponseHeader::Count])
            .refuses(&[Validation, LedgerNotFound]),
        V2::CreateTransaction => new("v2CreateTransaction", TRANSACTIONS, "Creates a transaction")
            .details(
                "Records the postings, or those that a script makes, as one transaction: all postings and \
                 the metadata are committed together or nothing is. It answers the transaction after it \
                 is durable.",
            )
            .reads(&[DRY_RUN, FORCE, SCHEMA_VERSION, IDEMPOTENCY_KEY, BIGINT_AS_STRING])
            .takes(Body { required: true, contents: &[(JSON, Json("V2CreateTransactionRequest"))] })
            .answers(200, "The transaction", Data("V2Transaction"))
            .shows(&[ResponseHeader::IdempotencyHit])
            .refuses(&[
                SchemaNotSpecified,
                NotFound,
                Validation,
                InsufficientFund,
                Conflict,
                NoPostings,
                CompilationFailed,
                InterpreterParse,
                InterpreterRuntime,
                MetadataOverride,
                LedgerNotFound,
            ]),
        V2::ReadTransaction => new("v2GetTransaction", TRANSACTIONS, "Reads a transaction")
            .details(
                "Answers one transaction with its postings and metadata, and with volumes where `expand` \
                 asks for them.",
            )
            .reads(&[EXPAND, PIT, OOT, BIGINT_AS_STRING])
            .answers(200, "The transaction", Data("V2Transaction"))
            .refuses(&[Validation, NotFound, LedgerNotFound]),
        V2::RevertTransaction => new("v2RevertTransaction", TRANSACTIONS, "Reverts a transaction")
            .details(
                "Records a new transaction with the postings of the original in the opposite direction, \
                 and marks the original as reverted, in one commit. A transaction can be reverted once.",
            )
            .reads(&[
                DRY_RUN,
                FORCE,
                query("atEffectiveDate", SWITCH, "Dated as the original is."),
                SCHEMA_VERSION,
                IDEMPOTENCY_KEY,
                BIGINT_AS_STRING,
            ])
            .takes(Body { required: false, contents: &[(JSON, Json("V2RevertRequest"))] })
            .answers(201, "The new transaction", Data("V2Transaction"))
            .shows(&[ResponseHeader::IdempotencyHit])
            .refuses(&[
                SchemaNotSpecified,
                Validation,
                NotFound,
                AlreadyRevert,
                InsufficientFund,
                LedgerNotFound,
            ]),
        V2::SetTransactionMetadata => {
            new("v2AddMetadataOnTransaction", TRANSACTIONS, "Adds metadata to a transaction")
                .details(
                    "Merges the given keys into the metadata of a transaction in one log. Postings never \
                     change.",
                )
                .reads(&[DRY_RUN, SCHEMA_VERSION, IDEMPOTENCY_KEY])
                .takes(METADATA)
                .answers(204, "It is set", Empty)
                .shows(&[ResponseHeader::IdempotencyHit])
                .refuses(&[SchemaNotSpecified, Validation, NotFound, LedgerNotFound])
        }
        V2::DeleteTransactionMetadata => {
            new("v2DeleteTransactionMetadata", TRANSACTIONS, "Removes metadata of a transaction")
                .details("Removes one key from the metadata of a transaction and records a log of it.")
                .reads(&[DRY_RUN, SCHEMA_VERSION, IDEMPOTENCY_KEY])
                .answers(204, "It is removed", Empty)
                .shows(&[ResponseHeader::IdempotencyHit])
                .refuses(&[SchemaNotSpecified, Validation, NotFound, LedgerNotFound])
        }
        V2::AggregatedBalances => new("v2GetBalancesAggregated", ACCOUNTS, "Sums balances by asset")
            .details(
                "Answers the sum of the balances of all accounts that match the filter, by asset. With \
                 `pit` the balances are those of that date.",
            )
            .reads(&OF_BALANCES)
            .reads(&[BIGINT_AS_STRING])
            .takes(filter!("BalancesFilter"))
            .answers(200, "The sums", Data("AssetBalances"))
            .refuses(&[Validation, LedgerNotFound]),
        V2::ListVolumes => new("v2GetVolumesWithBalances", ACCOUNTS, "Lists volumes by account and asset")
            .details(
                "Answers a page of input, output and balance by account and asset, over all time or \
                 between two dates. `groupBy` adds up accounts with the same first segments.",
            )
            .reads(&PAGES)
            .reads(&OF_VOLUMES)
            .reads(&[BIGINT_AS_STRING])
            .takes(filter!("VolumesFilter"))
            .answers(200, "A page of rows", Cursor("V2Volume"))
            .refuses(&[Validation, LedgerNotFound]),
        V2::ListLogs => new("v2ListLogs", LOGS, "Lists logs, newest first")
            .details("Answers a page of the log of the ledger: one entry for each write, chained by hashes.")
            .reads(&PAGES)
            .reads(&[SORT, QUERY, BIGINT_AS_STRING])
            .takes(filter!("LogsFilter"))
            .answers(200, "A page of logs", Cursor("V2Log"))
            .refuses(&[Validation, LedgerNotFound]),
        V2::ExportLogs => new("v2ExportLogs", LOGS, "All logs, oldest first, one a line")
            .details(
                "Streams every log of the ledger as lines of JSON in the order of their ids. The stream \
                 shows the state at its start; later writes are not in it.",
            )
            .answers(200, "The logs, streamed", Text("application/octet-stream"))
            .refuses(&[LedgerNotFound]),
        V2::ImportLogs => {
            new("v2ImportLogs", LOGS, "Takes in the logs of an export; into an unused ledger only")
                .details(
                    "Reads lines that an export wrote and records them with their ids and dates. It stops at \
                     the first log that does not fit, and names it.",
                )
                .takes(Body { required: false, contents: &[("application/octet-stream", Text(""))] })
                .answers(204, "They are there", Empty)
                .refuses(&[Validation, Import, LedgerNotFound])
        }
        V2::StreamEvents => {
            new("v2StreamEvents", LOGS, "The events of a ledger, as they come (server-sent events)")
                .details(
                    "Holds the connection open and sends an event for each write after it is durable. A \
                     client that reconnects with the last id it saw misses nothing.",
                )
                .reads(&[
                    header(
                        "Last-Event-ID",
                        TEXT,
                        "Events after the log with this id. It goes before the parameters.",
                    ),
                    query("lastEventId", TEXT, "The same, for clients that cannot set the header."),
                    query(
                        "from",
                        r#"{"type":"string","enum":["","now","first"]}"#,
                        "Where to begin without an id: at what comes (`now`), or at the first log (`first`).",
                    ),
                    query("type", TEXT, "Events of these types alone, divided by commas."),
                ])
                .answers(200, "Events, until the client goes or the server stops", Text("text/event-stream"))
                .refuses(&[Validation, LedgerNotFound])
        }
        V2::ListExporters
        | V2::CreateExporter
        | V2::ReadExporter
        | V2::UpdateExporter
        | V2::DeleteExporter
        | V2::ListPipelines
        | V2::CreatePipeline
        | V2::ReadPipeline
        | V2::DeletePipeline
        | V2::StartPipeline
        | V2::StopPipeline
        | V2::ResetPipeline => pipelines::describe(operation),
        V2::InsertSchema => new("v2InsertSchema", SCHEMAS, "Adds a version of a ledger's schema")
            .details(
                "Checks the chart, the templates and the queries, and stores them as a new version of the \
                 schema. A version never changes afterwards.",
            )
            .reads(&[DRY_RUN, IDEMPOTENCY_KEY])
            .takes(Body { required: true, contents: &[(JSON, Json("V2SchemaData"))] })
            .answers(204, "It is there", Empty)
            .shows(&[ResponseHeader::IdempotencyHit])
            .refuses(&[Validation, SchemaAlreadyExists, LedgerNotFound]),
        V2::ReadSchema => new("v2GetSchema", SCHEMAS, "Reads a version of a ledger's schema")
            .details("Answers one version of the schema with its chart, its templates and its queries.")
            .answers(200, "The version", Data("V2Schema"))
            .refuses(&[NotFound, LedgerNotFound]),
        V2::ListSchemas => {
            new("v2ListSchemas", SCHEMAS, "Lists the versions of a ledger's schema, newest first")
                .details("Answers a page of the versions of the schema, with a cursor for the next page.")
                .reads(&PAGES)
                .reads(&[
                    SORT,
                    query("order", TEXT, "`asc` or `desc`, by date; other values are refused."),
                    QUERY,
                ])
                .takes(filter!("SchemasFilter"))
                .answers(200, "A page of versions", Cursor("V2Schema"))
                .refuses(&[Validation, LedgerNotFound])
        }
        V2::RunQuery => new("v2RunQuery", SCHEMAS, "Runs a stored query of a schema")
            .details(
                "Fills the variables into a query that the schema stores and answers a page of its \
                 resource. It writes nothing.",
            )
            .reads(&[
                query(
                    "schemaVersion",
                    r#"{"type":"string","examples":["v1"]}"#,
                    "The version of the ledger's schema that has the query. It must be given.",
                ),
                BIGINT_AS_STRING,
            ])
            .takes(Body { required: false, contents: &[(JSON, Json("V2RunQueryRequest"))] })
            .answers(200, "A page of what it lists", Json("V2RunQueryResponse"))
            .refuses(&[Validation, LedgerNotFound]),
        V2::ExplainAccounts => new("explainAccounts", ACCOUNTS, "How a list of accounts is found")
            .details(
                "Runs the list with the same parameters and filter, and answers how it was found instead \
                 of the accounts.",
            )
            .reads(&PAGES)
            .reads(&[SORT, EXPAND, PIT, OOT, QUERY])
            .takes(filter!("AccountsFilter"))
            .answers(200, "The index, and how many rows were looked at", Data("V2Explanation"))
            .refuses(&[Validation, LedgerNotFound]),
        V2::ExplainTransactions => {
            new("explainTransactions", TRANSACTIONS, "How a list of transactions is found")
                .details(
                    "Runs the list with the same parameters and filter, and answers how it was found instead \
                     of the transactions.",
                )
                .reads(&PAGES)
                .reads(&[
                    SORT,
                    query("order", TEXT, "As of the list; other values are ignored."),
                    query("reverse", SWITCH, "As of the list."),
                    EXPAND,
                    PIT,
                    OOT,
                    QUERY,
                ])
                .takes(filter!("TransactionsFilter"))
                .answers(200, "The index, and how many rows were looked at", Data("V2Explanation"))
                .refuses(&[Validation, LedgerNotFound])
        }
        V2::ExplainVolumes => new("explainVolumes", ACCOUNTS, "How a list of volumes is found")
            .details(
                "Runs the list with the same parameters and filter, and answers how it was found instead \
                 of the volumes.",
            )
            .reads(&PAGES)
            .reads(&OF_VOLUMES)
            .takes(filter!("VolumesFilter"))
            .answers(200, "The index, and how many rows were looked at", Data("V2Explanation"))
            .refuses(&[Validation, LedgerNotFound]),
        V2::ExplainBalances => new("explainBalances", ACCOUNTS, "How sums of balances are found")
            .details(
                "Computes the sums with the same parameters and filter, and answers how they were found \
                 instead of the sums.",
            )
            .reads(&OF_BALANCES)
            .takes(filter!("BalancesFilter"))
            .answers(200, "The index, and how many rows were looked at", Data("V2Explanation"))
            .refuses(&[Validation, LedgerNotFound]),
        V2::ExplainLogs => new("explainLogs", LOGS, "How a list of logs is found")
            .details(
                "Runs the list with the same parameters and filter, and answers how it was found instead \
                 of the logs.",
            )
            .reads(&PAGES)
            .reads(&[SORT, QUERY])
            .takes(filter!("LogsFilter"))
            .answers(200, "The index, and how many rows were looked at", Data("V2Explanation"))
            .refuses(&[Validation, LedgerNotFound]),
        V2::DeleteBucket => new("v2DeleteBucket", BUCKETS, "Hides all ledgers of a bucket")
            .details(
                "Marks the bucket as deleted, which hides all of its ledgers at once. It can be restored \
                 until the retention period is over.",
            )
            .answers(204, "They are hidden", Empty),
        V2::RestoreBucket => new("v2RestoreBucket", BUCKETS, "Shows the ledgers of a hidden bucket again")
            .details(
                "Takes back the deletion of a bucket, so that all of its ledgers answer again. A bucket \
                 that was removed for good is refused.",
            )
            .answers(204, "They are shown", Empty)
            .refuses(&[NotFound]),
    }
}

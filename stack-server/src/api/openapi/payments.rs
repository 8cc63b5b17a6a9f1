//! The descriptions of the operations of the payments API.

use crate::api::openapi::description::{Body, Content, DATE, Description, Parameter, TEXT, filter, query};
use crate::api::operations::{Generic, Payments};
use crate::http::error::Code;

use Code::{NotFound, Validation};
use Content::{Cursor, Data, Empty, Json};

const PAYMENTS: &str = "Payments";
const ACCOUNTS: &str = "Payment accounts";
const TRANSFERS: &str = "Transfer initiations";
const CONNECTORS: &str = "Connectors";
const JSON: &str = "application/json";

/// Creates a required body.
macro_rules! body {
    ($schema:literal) => {
        Body { required: true, contents: &[(JSON, Json($schema))] }
    };
}

const SIZE: &str = r#"{"type":"integer","minimum":0,"maximum":4294967295}"#;
const PAGES: [Parameter; 3] = [
    query("pageSize", SIZE, "Rows of a page. More than 1000 is 1000; 0 is the default, 15."),
    query(
        "cursor",
        TEXT,
        "A cursor of an earlier answer. It holds the whole query: nothing beside it counts.",
    ),
    query(
        "sort",
        r#"{"type":"array","items":{"type":"string","examples":["createdAt:desc"]}}"#,
        "Fields, each with `:asc` or `:desc`. Newest first unless told.",
    ),
];
const QUERY: Parameter = query(
    "query",
    TEXT,
    "The filter as JSON text, for clients that can send no body. A body goes before it.",
);
const OF_BALANCES: [Parameter; 4] = [
    query("asset", TEXT, "Only balances of this asset."),
    query("from", DATE, "What was valid then or later."),
    query("to", DATE, "What was valid then or earlier; now unless told."),
    query("limit", SIZE, "Rows of a page, before `pageSize`."),
];

/// Returns the description of an operation.
pub(crate) fn describe(operation: Payments) -> Description {
    use Payments as P;
    let new = |id, group, summary| Description::new(id, group, summary).refuses(&[Validation]);
    match operation {
        P::ListPayments => new("listPayments", PAYMENTS, "Lists payments")
            .details(
                "Answers a page of the payments of all connectors that match the filter, with a cursor \
                 for the next page.",
            )
            .reads(&PAGES)
            .reads(&[QUERY])
            .takes(filter!("PaymentsFilter"))
            .answers(200, "A page of payments", Cursor("Payment")),
        P::CreatePayment => new("createPayment", PAYMENTS, "Creates a payment by hand")
            .details(
                "Stores a payment that no connector reported, under the connector that the request names, \
                 and answers it.",
            )
            .takes(body!("PaymentRequest"))
            .answers(200, "The payment", Data("Payment")),
        P::ReadPayment => new("getPayment", PAYMENTS, "Reads a payment")
            .details("Answers one payment with its adjustments and the provider's own data.")
            .answers(200, "The payment", Data("Payment"))
            .refuses(&[NotFound]),
        P::SetPaymentMetadata => new("updateMetadata", PAYMENTS, "Adds metadata to a payment")
            .details("Merges the given keys into the metadata of a payment, in one write.")
            .takes(body!("V2MetadataInput"))
            .answers(204, "It is set", Empty)
            .refuses(&[NotFound]),
        P::ExplainPayment
        | P::ReadPostingRule
        | P::SetPostingRule
        | P::DeletePostingRule
        | P::RunPostings => postings(operation),
        P::ListAccounts | P::CreateAccount | P::ReadAccount | P::ListBalances => accounts(operation),
        P::ListBankAccounts
        | P::CreateBankAccount
        | P::ReadBankAccount
        | P::ForwardBankAccount
        | P::SetBankAccountMetadata => bank_accounts(operation),
        P::ListPools
        | P::CreatePool
        | P::ReadPool
        | P::DeletePool
        | P::AddPoolAccount
        | P::RemovePoolAccount
        | P::PoolBalances => pools(operation),
        P::ListInitiations
        | P::CreateInitiation
        | P::ReadInitiation
        | P::DeleteInitiation
        | P::SetInitiationStatus
        | P::RetryInitiation
        | P::ReverseInitiation => initiations(operation),
        P::ListConnectors
        | P::ListConfigs
        | P::Install
        | P::Uninstall
        | P::ReadConfig
        | P::UpdateConfig
        | P::Reset
        | P::ListTasks
        | P::ReadTask
        | P::StripeTransfer
        | P::CreateTransfer
        | P::ListTransfers => connectors(operation),
    }
}

/// Returns the description of an operation on postings of payments.
fn postings(operation: Payments) -> Description {
    use Payments as P;
    let new = |id, group, summary| Description::new(id, group, summary).refuses(&[Validation, NotFound]);
    match operation {
        P::ReadPostingRule => new("getPostingRule", CONNECTORS, "Reads how payments become transactions")
            .details(
                "Answers the ledger, the script and the account prefix by which payments of the connector \
                 become transactions.",
            )
            .answers(200, "The rule", Data("PostingRule")),
        P::SetPostingRule => {
            new("setPostingRule", CONNECTORS, "Turns payments into transactions from now on")
                .details(
                    "Checks the script and stores the rule. Payments that arrive later become transactions; \
                     earlier ones do when a run is asked for.",
                )
                .takes(body!("PostingRuleRequest"))
                .answers(200, "The rule", Data("PostingRule"))
        }
        P::DeletePostingRule => {
            new("deletePostingRule", CONNECTORS, "Ends that payments become transactions")
                .details("Deletes the rule. Payments that arrive later are stored without a transaction.")
                .answers(204, "It is deleted; the transactions stay", Empty)
        }
        P::RunPostings => new("runPostings", CONNECTORS, "Posts earlier payments, and refused ones")
            .details(
                "Looks at a bounded number of payments and records those that the ledger does not hold \
                 yet. It can be repeated: a payment is never recorded twice.",
            )
            .reads(&[query("after", TEXT, "The payment after which to go on: `after` of the answer before.")])
            .answers(200, "How many payments the ledger holds now", Data("PostingRun")),
        _ => new("explainPayment", PAYMENTS, "Says which transactions a payment made, and why none")
            .details(
                "Answers the transactions that the rule made of a payment, and the reason if the ledger \
                 does not hold its present state. It writes nothing.",
            )
            .answers(200, "The transactions, newest first", Data("PaymentExplanation")),
    }
}

/// Returns the description of an operation of the generic connector API.
pub(crate) fn generic(operation: Generic) -> Description {
    let new = |id, summary| Description::new(id, "Generic connector API", summary).refuses(&[Validation]);
    let pages = [
        query(
            "pageSize",
            r#"{"type":"integer","minimum":1}"#,
            "Rows of a page, at most 1000; 100 unless told.",
        ),
        query("page", r#"{"type":"integer","minimum":1}"#, "The number of the page, from 1."),
        query("sort", TEXT, "A field with `:asc` or `:desc`."),
    ];
    let created = query("createdAtFrom", DATE, "What was created then or later.");
    match operation {
        Generic::Accounts => new("getAccounts", "Lists own accounts")
            .details(
                "Answers a page of the internal accounts that this server knows, in the form that generic \
                 connectors read.",
            )
            .reads(&pages)
            .reads(&[created])
            .answers(200, "The accounts", Json("GenericAccounts")),
        Generic::Balances => new("getAccountBalances", "Reads the balances of an account")
            .details("Answers the present balance of one account in every currency.")
            .answers(200, "The balances", Json("GenericBalances"))
            .refuses(&[NotFound]),
        Generic::Beneficiaries => new("getBeneficiaries", "Lists counterparties")
            .details(
                "Answers a page of the external accounts that this server knows, in the form that generic \
                 connectors read.",
            )
            .reads(&pages)
            .reads(&[created])
            .answers(200, "The counterparties", Json("GenericBeneficiaries")),
        Generic::Transactions => new("getTransactions", "Lists transactions")
            .details(
                "Answers a page of the payments that this server knows, in the form that generic \
                 connectors read.",
            )
            .reads(&pages)
            .reads(&[query("updatedAtFrom", DATE, "What changed then or later.")])
            .answers(200, "The transactions", Json("GenericTransactions")),
    }
}

/// Returns the description of an operation on accounts at providers.
fn accounts(operation: Payments) -> Description {
    use Payments as P;
    let new = |id, summary| Description::new(id, ACCOUNTS, summary).refuses(&[Validation]);
    match operation {
        P::ListAccounts => new("paymentslistAccounts", "Lists accounts at providers")
            .details(
                "Answers a page of the accounts of all connectors that match the filter, with a cursor \
                 for the next page.",
            )
            .reads(&PAGES)
            .reads(&[QUERY])
            .takes(filter!("PaymentsAccountsFilter"))
            .answers(200, "A page of accounts", Cursor("PaymentsAccount")),
        P::CreateAccount => new("createAccount", "Creates an account by hand")
            .details(
                "Stores an account that no connector reported, under the connector that the request \
                 names, and answers it.",
            )
            .takes(body!("PaymentsAccountRequest"))
            .answers(200, "The account", Data("PaymentsAccount")),
        P::ReadAccount => new("paymentsgetAccount", "Reads an account at a provider")
            .details("Answers one account with its pools and the provider's own data.")
            .answers(200, "The account", Data("PaymentsAccount"))
            .refuses(&[NotFound]),
        _ => new("getAccountBalances", "Lists the balances of an account")
            .details(
                "Answers a page of the balances that the connector saw, each with the time for which it \
                 held.",
            )
            .reads(&PAGES)
            .reads(&OF_BALANCES)
            .answers(200, "A page of balances", Cursor("PaymentsBalance"))
            .refuses(&[NotFound]),
    }
}

fn bank_accounts(operation: Payments) -> Description {
    use Payments as P;
    let new = |id, summary| Description::new(id, ACCOUNTS, summary).refuses(&[Validation]);
    match operation {
        P::ListBankAccounts => new("listBankAccounts", "Lists bank accounts")
            .details(
                "Answers a page of bank accounts that match the filter. Their numbers are not part of \
                 lists.",
            )
            .reads(&PAGES)
            .reads(&[QUERY])
            .takes(filter!("EmptyFilter"))
            .answers(200, "A page of bank accounts", Cursor("BankAccount")),
        P::CreateBankAccount => new("createBankAccount", "Creates a bank account")
            .details(
                "Encrypts the numbers of a bank account, stores it and answers it. If a connector is \
                 named, the account is also forwarded to it.",
            )
            .takes(body!("BankAccountRequest"))
            .answers(200, "The bank account", Data("BankAccount"))
            .refuses(&[NotFound]),
        P::ForwardBankAccount => {
            new("forwardBankAccount", "Makes an account of a bank account at a provider")
                .details(
                    "Makes an account of the connector that stands for the bank account, and links the two. \
                     The provider gets the numbers when money is sent to that account.",
                )
                .takes(body!("ForwardBankAccountRequest"))
                .answers(200, "The bank account", Data("BankAccount"))
                .refuses(&[NotFound])
        }
        P::SetBankAccountMetadata => new("updateBankAccountMetadata", "Adds metadata to a bank account")
            .details("Merges the given keys into the metadata of a bank account.")
            .takes(body!("BankAccountMetadataRequest"))
            .answers(204, "It is set", Empty)
            .refuses(&[NotFound]),
        _ => new("getBankAccount", "Reads a bank account, with its numbers masked")
            .details("Answers one bank account with the accounts that connectors made of it.")
            .answers(200, "The bank account", Data("BankAccount"))
            .refuses(&[NotFound]),
    }
}

fn pools(operation: Payments) -> Description {
    use Payments as P;
    let new = |id, summary| Description::new(id, ACCOUNTS, summary).refuses(&[Validation]);
    match operation {
        P::ListPools => new("listPools", "Lists pools of accounts")
            .details("Answers a page of the pools that match the filter, with a cursor for the next page.")
            .reads(&PAGES)
            .reads(&[QUERY])
            .takes(filter!("EmptyFilter"))
            .answers(200, "A page of pools", Cursor("Pool")),
        P::CreatePool => new("createPool", "Creates a pool of accounts")
            .details("Stores a pool with a name and the accounts that it begins with, and answers it.")
            .takes(body!("PoolRequest"))
            .answers(200, "The pool", Data("Pool")),
        P::DeletePool => new("deletePool", "Deletes a pool")
            .details("Deletes the pool. Its accounts and their balances stay.")
            .answers(204, "It is gone", Empty)
            .refuses(&[NotFound]),
        P::AddPoolAccount => new("addAccountToPool", "Adds an account to a pool")
            .details("Adds one account to the pool. Its balances count from then on.")
            .takes(body!("PoolAccountRequest"))
            .answers(204, "It is added", Empty)
            .refuses(&[NotFound]),
        P::RemovePoolAccount => new("removeAccountFromPool", "Removes an account from a pool")
            .details("Takes one account out of the pool. Its balances do not count from then on.")
            .answers(204, "It is not in it", Empty)
            .refuses(&[NotFound]),
        P::PoolBalances => new("getPoolBalances", "Sums the balances of a pool's accounts at a time")
            .details(
                "Adds up the balances that the pool's accounts had at the given time and answers one sum \
                 for each asset.",
            )
            .reads(&[query(
                "at",
                r##"{"$ref":"#/components/schemas/Timestamp","examples":["2024-05-01T10:00:00Z"]}"##,
                "The time. It must be given.",
            )])
            .answers(200, "The sums", Data("PoolBalances"))
            .refuses(&[NotFound]),
        _ => new("getPool", "Reads a pool")
            .details("Answers one pool with the ids of its accounts.")
            .answers(200, "The pool", Data("Pool"))
            .refuses(&[NotFound]),
    }
}

fn initiations(operation: Payments) -> Description {
    use Payments as P;
    let new = |id, summary| Description::new(id, TRANSFERS, summary).refuses(&[Validation]);
    match operation {
        P::ListInitiations => new("listTransferInitiations", "Lists transfer initiations")
            .details(
                "Answers a page of transfer initiations that match the filter, without their payments and \
                 steps.",
            )
            .reads(&PAGES)
            .reads(&[QUERY])
            .takes(filter!("TransferInitiationsFilter"))
            .answers(200, "A page of transfer initiations", Cursor("TransferInitiation")),
        P::CreateInitiation => new("createTransferInitiation", "Asks for a transfer or a payout")
            .details(
                "Stores a transfer or payout under a unique reference. It waits for validation unless \
                 `validated` is set; then the connector carries it out in the background.",
            )
            .takes(body!("TransferInitiationRequest"))
            .answers(200, "The transfer initiation", Data("TransferInitiation"))
            .refuses(&[NotFound]),
        P::DeleteInitiation => new("deleteTransferInitiation", "Deletes what waits for validation")
            .details(
                "Deletes a transfer initiation that waits for validation. One that was validated is \
                 refused.",
            )
            .answers(204, "It is gone", Empty)
            .refuses(&[NotFound]),
        P::SetInitiationStatus => new("udpateTransferInitiationStatus", "Validates or rejects")
            .details(
                "Validates a waiting transfer initiation, which hands it to the connector, or rejects it \
                 for good.",
            )
            .takes(body!("TransferInitiationStatusRequest"))
            .answers(204, "It is", Empty)
            .refuses(&[NotFound]),
        P::RetryInitiation => new("retryTransferInitiation", "Tries again what has failed")
            .details(
                "Hands a failed transfer initiation to the connector once more, which works in the \
                 background.",
            )
            .answers(204, "It is tried", Empty)
            .refuses(&[NotFound]),
        P::ReverseInitiation => new("reverseTransferInitiation", "Takes back what was transferred")
            .details(
                "Asks the connector to return all or part of what was transferred, which happens in the \
                 background.",
            )
            .takes(body!("TransferReversalRequest"))
            .answers(204, "It is asked for", Empty)
            .refuses(&[NotFound]),
        _ => new("getTransferInitiation", "Reads a transfer initiation with its steps")
            .details("Answers one transfer initiation with its status, its payments and every step so far.")
            .answers(200, "The transfer initiation", Data("TransferInitiation"))
            .refuses(&[NotFound]),
    }
}

fn connectors(operation: Payments) -> Description {
    use Payments as P;
    let new = |id, summary| Description::new(id, CONNECTORS, summary);
    let of_one = |id, summary| new(id, summary).refuses(&[Validation, NotFound]);
    let config = Body { required: false, contents: &[(JSON, Json("ConnectorConfig"))] };
    match operation {
        P::ListConnectors => new("listAllConnectors", "Lists installed connectors")
            .details("Answers every installed connector with its provider, id and name.")
            .answers(200, "The connectors", Data("ConnectorList")),
        P::ListConfigs => new("listConfigsAvailableConnectors", "Lists what can be installed")
            .details(
                "Answers the parameters of every available connector: their types, whether they are \
                 required, and their defaults.",
            )
            .answers(200, "Parameters by connector", Data("ConnectorCatalogue")),
        P::Install => of_one("installConnector", "Installs a connector")
            .details(
                "Checks the configuration, stores it with its secrets encrypted, and starts to read from \
                 the provider in the background.",
            )
            .takes(config)
            .answers(201, "Its id", Data("ConnectorInstalled"))
            .answers(204, "It is installed; for clients of 1.10", Empty),
        P::Uninstall => of_one("uninstallConnector", "Removes a connector with all that it brought in")
            .details(
                "Stops the connector and deletes it with its accounts, payments and tasks. Transactions \
                 that came of them stay in the ledger.",
            )
            .answers(204, "It is gone", Empty),
        P::ReadConfig => of_one("readConnectorConfig", "Reads a configuration")
            .details(
                "Answers the configuration of an installation. Secrets in it are masked where the \
                 server is told to redact configurations.",
            )
            .answers(200, "The configuration", Data("ConnectorConfig")),
        P::UpdateConfig => of_one("updateConnectorConfig", "Replaces a configuration")
            .details("Checks and stores the new configuration, with which the connector goes on.")
            .takes(config)
            .answers(204, "It is replaced", Empty),
        P::Reset => of_one("resetConnector", "Removes a connector and installs it again")
            .details("Deletes all that the connector brought in, and installs it with the same values.")
            .answers(204, "It is installed again, with another id", Empty),
        P::ListTasks => of_one("listConnectorTasks", "Lists the tasks of a connector")
            .details("Answers a page of the units of work of a connector with their states and errors.")
            .reads(&PAGES)
            .reads(&[QUERY])
            .answers(200, "A page of tasks", Cursor("ConnectorTask")),
        P::ReadTask => of_one("getConnectorTask", "Reads a task of a connector")
            .details("Answers one unit of work of a connector with its state and its error.")
            .answers(200, "The task", Data("ConnectorTask")),
        P::StripeTransfer => new("connectorsStripeTransfer", "Transfers by the provider's own call")
            .details(
                "Asks the only Stripe connector for a transfer and answers the object of the provider. It \
                 waits for the provider.",
            )
            .refuses(&[Validation])
            .takes(body!("ConnectorTransferRequest"))
            .answers(200, "The provider's transfer", Data("AnyObject")),
        P::CreateTransfer => of_one("connectorsTransfer", "Transfers between accounts of a connector")
            .details(
                "Asks the connector to move money and answers the id of the transfer, which is carried \
                 out in the background.",
            )
            .takes(body!("ConnectorTransferRequest"))
            .answers(200, "Its id", Json("ConnectorTransferCreated")),
        _ => of_one("listConnectorsTransfers", "Lists the transfers of a connector")
            .details("Answers the transfers that the connector was asked for, with their states.")
            .answers(200, "The transfers", Data("ConnectorTransferList")),
    }
}

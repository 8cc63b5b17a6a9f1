//! The operations of the payments API, described.

use crate::api::openapi::description::{Body, Content, DATE, Description, Parameter, TEXT, query};
use crate::api::operations::{Generic, Payments};
use crate::http::error::Code;

use Code::{NotFound, Validation};
use Content::{Cursor, Data, Empty, Json};

const PAYMENTS: &str = "Payments";
const ACCOUNTS: &str = "Payment accounts";
const TRANSFERS: &str = "Transfer initiations";
const CONNECTORS: &str = "Connectors";
const JSON: &str = "application/json";

/// A body that must be there.
macro_rules! body {
    ($schema:literal) => {
        Body { required: true, contents: &[(JSON, Json($schema))] }
    };
}

/// A filter, which is read on GET too.
const FILTER: Body = Body { required: false, contents: &[(JSON, Json("V2Filter"))] };

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

/// The description of an operation.
pub(crate) fn describe(operation: Payments) -> Description {
    use Payments as P;
    let new = |id, group, summary| Description::new(id, group, summary).refuses(&[Validation]);
    match operation {
        P::ListPayments => new("listPayments", PAYMENTS, "Lists payments")
            .reads(&PAGES)
            .reads(&[QUERY])
            .takes(FILTER)
            .answers(200, "A page of payments", Cursor("Payment")),
        P::CreatePayment => new("createPayment", PAYMENTS, "Creates a payment by hand")
            .takes(body!("PaymentRequest"))
            .answers(200, "The payment", Data("Payment")),
        P::ReadPayment => new("getPayment", PAYMENTS, "Reads a payment")
            .answers(200, "The payment", Data("Payment"))
            .refuses(&[NotFound]),
        P::SetPaymentMetadata => new("updateMetadata", PAYMENTS, "Adds metadata to a payment")
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

/// The description of an operation that leads from payments to the ledger.
fn postings(operation: Payments) -> Description {
    use Payments as P;
    let new = |id, group, summary| Description::new(id, group, summary).refuses(&[Validation, NotFound]);
    match operation {
        P::ReadPostingRule => new("getPostingRule", CONNECTORS, "Reads how payments become transactions")
            .answers(200, "The rule", Data("PostingRule")),
        P::SetPostingRule => {
            new("setPostingRule", CONNECTORS, "Turns payments into transactions from now on")
                .takes(body!("PostingRuleRequest"))
                .answers(200, "The rule", Data("PostingRule"))
        }
        P::DeletePostingRule => new(
            "deletePostingRule",
            CONNECTORS,
            "Ends that payments become transactions",
        )
        .answers(204, "It is deleted; the transactions stay", Empty),
        P::RunPostings => new("runPostings", CONNECTORS, "Posts earlier payments, and refused ones")
            .reads(&[query("after", TEXT, "The payment after which to go on: `after` of the answer before.")])
            .answers(200, "How many payments the ledger holds now", Data("PostingRun")),
        _ => new("explainPayment", PAYMENTS, "Says which transactions a payment made, and why none").answers(
            200,
            "The transactions, newest first",
            Data("PaymentExplanation"),
        ),
    }
}

/// The description of an operation of the generic connector API.
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
            .reads(&pages)
            .reads(&[created])
            .answers(200, "The accounts", Json("GenericAccounts")),
        Generic::Balances => new("getAccountBalances", "Reads the balances of an account")
            .answers(200, "The balances", Json("GenericBalances"))
            .refuses(&[NotFound]),
        Generic::Beneficiaries => new("getBeneficiaries", "Lists counterparties")
            .reads(&pages)
            .reads(&[created])
            .answers(200, "The counterparties", Json("GenericBeneficiaries")),
        Generic::Transactions => new("getTransactions", "Lists transactions")
            .reads(&pages)
            .reads(&[query("updatedAtFrom", DATE, "What changed then or later.")])
            .answers(200, "The transactions", Json("GenericTransactions")),
    }
}

/// The description of an operation on accounts at providers.
fn accounts(operation: Payments) -> Description {
    use Payments as P;
    let new = |id, summary| Description::new(id, ACCOUNTS, summary).refuses(&[Validation]);
    match operation {
        P::ListAccounts => new("paymentslistAccounts", "Lists accounts at providers")
            .reads(&PAGES)
            .reads(&[QUERY])
            .takes(FILTER)
            .answers(200, "A page of accounts", Cursor("PaymentsAccount")),
        P::CreateAccount => new("createAccount", "Creates an account by hand")
            .takes(body!("PaymentsAccountRequest"))
            .answers(200, "The account", Data("PaymentsAccount")),
        P::ReadAccount => new("paymentsgetAccount", "Reads an account at a provider")
            .answers(200, "The account", Data("PaymentsAccount"))
            .refuses(&[NotFound]),
        _ => new("getAccountBalances", "Lists the balances of an account")
            .reads(&PAGES)
            .reads(&OF_BALANCES)
            .answers(200, "A page of balances", Cursor("PaymentsBalance")),
    }
}

fn bank_accounts(operation: Payments) -> Description {
    use Payments as P;
    let new = |id, summary| Description::new(id, ACCOUNTS, summary).refuses(&[Validation]);
    match operation {
        P::ListBankAccounts => new("listBankAccounts", "Lists bank accounts")
            .reads(&PAGES)
            .reads(&[QUERY])
            .takes(FILTER)
            .answers(200, "A page of bank accounts", Cursor("BankAccount")),
        P::CreateBankAccount => new("createBankAccount", "Creates a bank account")
            .takes(body!("BankAccountRequest"))
            .answers(200, "The bank account", Data("BankAccount"))
            .refuses(&[NotFound]),
        P::ForwardBankAccount => {
            new("forwardBankAccount", "Makes an account of a bank account at a provider")
                .takes(body!("ForwardBankAccountRequest"))
                .answers(200, "The bank account", Data("BankAccount"))
                .refuses(&[NotFound])
        }
        P::SetBankAccountMetadata => new("updateBankAccountMetadata", "Adds metadata to a bank account")
            .takes(body!("BankAccountMetadataRequest"))
            .answers(204, "It is set", Empty)
            .refuses(&[NotFound]),
        _ => new("getBankAccount", "Reads a bank account, with its numbers masked")
            .answers(200, "The bank account", Data("BankAccount"))
            .refuses(&[NotFound]),
    }
}

fn pools(operation: Payments) -> Description {
    use Payments as P;
    let new = |id, summary| Description::new(id, ACCOUNTS, summary).refuses(&[Validation]);
    match operation {
        P::ListPools => new("listPools", "Lists pools of accounts")
            .reads(&PAGES)
            .reads(&[QUERY])
            .takes(FILTER)
            .answers(200, "A page of pools", Cursor("Pool")),
        P::CreatePool => new("createPool", "Creates a pool of accounts").takes(body!("PoolRequest")).answers(
            200,
            "The pool",
            Data("Pool"),
        ),
        P::DeletePool => {
            new("deletePool", "Deletes a pool").answers(204, "It is gone", Empty).refuses(&[NotFound])
        }
        P::AddPoolAccount => new("addAccountToPool", "Adds an account to a pool")
            .takes(body!("PoolAccountRequest"))
            .answers(204, "It is added", Empty)
            .refuses(&[NotFound]),
        P::RemovePoolAccount => new("removeAccountFromPool", "Removes an account from a pool")
            .answers(204, "It is not in it", Empty)
            .refuses(&[NotFound]),
        P::PoolBalances => new("getPoolBalances", "Sums the balances of a pool's accounts at a time")
            .reads(&[query("at", DATE, "The time.")])
            .answers(200, "The sums", Data("PoolBalances"))
            .refuses(&[NotFound]),
        _ => new("getPool", "Reads a pool").answers(200, "The pool", Data("Pool")).refuses(&[NotFound]),
    }
}

fn initiations(operation: Payments) -> Description {
    use Payments as P;
    let new = |id, summary| Description::new(id, TRANSFERS, summary).refuses(&[Validation]);
    match operation {
        P::ListInitiations => new("listTransferInitiations", "Lists transfer initiations")
            .reads(&PAGES)
            .reads(&[QUERY])
            .takes(FILTER)
            .answers(200, "A page of transfer initiations", Cursor("TransferInitiation")),
        P::CreateInitiation => new("createTransferInitiation", "Asks for a transfer or a payout")
            .takes(body!("TransferInitiationRequest"))
            .answers(200, "The transfer initiation", Data("TransferInitiation"))
            .refuses(&[NotFound]),
        P::DeleteInitiation => new("deleteTransferInitiation", "Deletes what waits for validation")
            .answers(204, "It is gone", Empty)
            .refuses(&[NotFound]),
        P::SetInitiationStatus => new("udpateTransferInitiationStatus", "Validates or rejects")
            .takes(body!("TransferInitiationStatusRequest"))
            .answers(204, "It is", Empty)
            .refuses(&[NotFound]),
        P::RetryInitiation => new("retryTransferInitiation", "Tries again what has failed")
            .answers(204, "It is tried", Empty)
            .refuses(&[NotFound]),
        P::ReverseInitiation => new("reverseTransferInitiation", "Takes back what was transferred")
            .takes(body!("TransferReversalRequest"))
            .answers(204, "It is asked for", Empty)
            .refuses(&[NotFound]),
        _ => new("getTransferInitiation", "Reads a transfer initiation with its steps")
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
        P::ListConnectors => new("listAllConnectors", "Lists installed connectors").answers(
            200,
            "The connectors",
            Data("ConnectorList"),
        ),
        P::ListConfigs => new("listConfigsAvailableConnectors", "Lists what can be installed").answers(
            200,
            "Parameters by connector",
            Data("ConnectorCatalogue"),
        ),
        P::Install => of_one("installConnector", "Installs a connector")
            .takes(config)
            .answers(201, "Its id", Data("ConnectorInstalled"))
            .answers(204, "It is installed; for clients of 1.10", Empty),
        P::Uninstall => of_one("uninstallConnector", "Removes a connector with all that it brought in")
            .answers(204, "It is gone", Empty),
        P::ReadConfig => of_one("readConnectorConfig", "Reads a configuration").answers(
            200,
            "The configuration",
            Data("ConnectorConfig"),
        ),
        P::UpdateConfig => of_one("updateConnectorConfig", "Replaces a configuration").takes(config).answers(
            204,
            "It is replaced",
            Empty,
        ),
        P::Reset => of_one("resetConnector", "Removes a connector and installs it again").answers(
            204,
            "It is installed again, with another id",
            Empty,
        ),
        P::ListTasks => of_one("listConnectorTasks", "Lists the tasks of a connector")
            .reads(&PAGES)
            .reads(&[QUERY])
            .answers(200, "A page of tasks", Cursor("ConnectorTask")),
        P::ReadTask => of_one("getConnectorTask", "Reads a task of a connector").answers(
            200,
            "The task",
            Data("ConnectorTask"),
        ),
        P::StripeTransfer => new("connectorsStripeTransfer", "Transfers by the provider's own call")
            .refuses(&[Validation])
            .takes(body!("ConnectorTransferRequest"))
            .answers(200, "The provider's transfer", Data("AnyObject")),
        P::CreateTransfer => of_one("connectorsTransfer", "Transfers between accounts of a connector")
            .takes(body!("ConnectorTransferRequest"))
            .answers(200, "Its id", Json("ConnectorTransferCreated")),
        _ => of_one("listConnectorsTransfers", "Lists the transfers of a connector").answers(
            200,
            "The transfers",
            Data("ConnectorTransferList"),
        ),
    }
}

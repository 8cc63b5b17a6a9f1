//! Codes and texts of refused commands, as clients of API v2 know them. `api::ledger_v1::error` has those of v1.

use ledger_core::script::ErrorClass;
use ledger_core::{AccountAddress, ErrorWording, Rejection};

use super::error::{ApiError, Code};

impl From<Rejection> for ApiError {
    fn from(rejection: Rejection) -> Self {
        Self::new(code(&rejection), text(&rejection))
    }
}

fn code(rejection: &Rejection) -> Code {
    match rejection {
        Rejection::IdempotencyMismatch { .. }
        | Rejection::TooManyPreconditions { .. }
        | Rejection::TooManyPostings { .. }
        | Rejection::MetadataTooLarge { .. }
        | Rejection::TransactionTooLarge { .. }
        | Rejection::PastDate { .. }
        | Rejection::TooManyAssets
        | Rejection::TemplateWithoutVersion { .. }
        | Rejection::TemplateNotFound { .. }
        | Rejection::TemplateRequired { .. }
        | Rejection::AccountExists { .. }
        | Rejection::AccountOutsideChart { .. } => Code::Validation,
        Rejection::SchemaNotSpecified => Code::SchemaNotSpecified,
        Rejection::SchemaExists { .. } => Code::SchemaAlreadyExists,
        Rejection::Script { error, wording } => script_code(error.kind.class(), *wording),
        Rejection::MetadataOverride { .. } => Code::MetadataOverride,
        Rejection::TransactionNotFound { .. }
        | Rejection::MetadataKeyNotFound { .. }
        | Rejection::AccountNotFound { .. }
        | Rejection::SchemaNotFound { .. }
        | Rejection::SchemaUnreadable { .. } => Code::NotFound,
        Rejection::AlreadyReverted { .. } => Code::AlreadyRevert,
        Rejection::InsufficientFunds { .. } => Code::InsufficientFund,
        Rejection::NoPostings => Code::NoPostings,
        Rejection::ReferenceTaken { .. } => Code::Conflict,
    }
}

/// Returns the code of a failed script. Only clients that chose the interpreter know its codes.
fn script_code(class: ErrorClass, wording: ErrorWording) -> Code {
    match (class, wording) {
        (ErrorClass::Funds, _) => Code::InsufficientFund,
        (ErrorClass::Syntax, ErrorWording::Interpreter) => Code::InterpreterParse,
        (_, ErrorWording::Interpreter) => Code::InterpreterRuntime,
        (_, ErrorWording::Machine) => Code::CompilationFailed,
    }
}

/// Returns the text for clients. Those of refusals that other servers of API v2 know are theirs, because clients search
/// them. The library has the others.
fn text(rejection: &Rejection) -> String {
    if let Some(accounts) = rejection.accounts_without_funds() {
        let accounts: Vec<&str> = accounts.iter().map(AccountAddress::as_str).collect();
        return format!("account(s) @{} had/have insufficient funds", accounts.join("|@"));
    }
    match rejection {
        Rejection::IdempotencyMismatch { key, computed, stored } => format!(
            "invalid idempotency hash when using idempotency key '{key}', has computed '{computed}' but '{stored}' \
             is stored"
        ),
        Rejection::TransactionNotFound { .. } => "not found".to_owned(),
        Rejection::AlreadyReverted { id } => format!("already reverted, id: {}", id.get()),
        Rejection::NoPostings => "numscript execution returned no postings".to_owned(),
        Rejection::ReferenceTaken { reference } => format!("duplicate reference \"{reference}\""),
        Rejection::MetadataOverride { key } => format!("cannot override metadata '{key}'"),
        other => other.to_string(),
    }
}

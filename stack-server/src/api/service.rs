//! The routes for the version and the health of the service.

use hyper::StatusCode;
use ledger_core::schema::Enforcement;
use ledger_core::{ErrorWording, FilterOf, LedgerName};
use ledger_store::{Deleted, Direction, PageRequest, Start};

use crate::api::context::Context;
use crate::api::operations::{HealthForm, InfoForm};
use crate::auth::Service;
use crate::http::error::ApiError;
use crate::http::response::{Json, Reply};
use crate::settings::{Compat, Settings};

/// The version of the API that the server reports. Clients choose their behaviour by it.
const API_VERSION: &str = "v2.0.0";

/// Maximum number of ledger names in a response. The list of ledgers has pages.
const LEDGERS_TOLD_MAX: usize = 1_000;

pub(crate) async fn info(context: &Context<'_>, form: InfoForm) -> Result<Reply, ApiError> {
    let ledgers = if is_trusted(context).await { ledgers(context)? } else { Vec::new() };
    let mut json = context.json();
    match form {
        InfoForm::Bare => write_bare(json.raw("{")),
        InfoForm::Release => {
            json.raw("{\"version\":").plain_string(API_VERSION);
        }
        InfoForm::Wrapped => write_wrapped(json.raw("{"), context, form, &ledgers),
        InfoForm::Hybrid => {
            write_bare(json.raw("{"));
            write_wrapped(json.raw(","), context, form, &ledgers);
        }
    }
    json.raw("}");
    Ok(json.reply(StatusCode::OK))
}

/// Returns whether the client may see names of ledgers and file paths. If the server requires tokens, the token must
/// allow reads.
async fn is_trusted(context: &Context<'_>) -> bool {
    match context.app.guard() {
        None => true,
        Some(guard) => guard.may_read(context.headers, Service::Ledger).await,
    }
}

fn ledgers(context: &Context<'_>) -> Result<Vec<LedgerName>, ApiError> {
    let page = PageRequest { size: LEDGERS_TOLD_MAX, direction: Direction::Ascending, start: Start::First };
    let ledgers = context.app.snapshot().ledgers(&page, &FilterOf::all(), Deleted::Hidden)?;
    Ok(ledgers.items.into_iter().map(|ledger| ledger.name).collect())
}

fn write_bare(json: &mut Json) {
    json.raw("\"server\":\"ledger\",\"version\":").plain_string(API_VERSION);
}

fn write_wrapped(json: &mut Json, context: &Context<'_>, form: InfoForm, ledgers: &[LedgerName]) {
    let settings = context.app.settings();
    json.raw("\"data\":{");
    match settings.compat {
        Compat::V1_10 => {
            json.raw("\"server\":\"numary-ledger\",\"version\":\"v1.10.14\"");
        }
        Compat::V2_0 | Compat::V2_4 => write_bare(json),
    }
    json.raw(",\"config\":{\"storage\":{\"driver\":\"redb\",\"ledgers\":[");
    json.list(ledgers, |json, name| {
        json.plain_string(name.as_str());
    });
    json.raw("]}");
    // Later v2 clients read these members as well.
    if form == InfoForm::Hybrid {
        let mode = match settings.schema_enforcement {
            Enforcement::Audit => "audit",
            Enforcement::Strict => "strict",
        };
        json.raw(",\"schemaEnforcementMode\":").plain_string(mode);
    }
    json.raw("}");
    if form == InfoForm::Hybrid {
        json.raw(",\"experimentalFeatures\":");
        write_experimental_features(json, settings);
    }
    json.raw("}");
}

/// Writes the names of the enabled experimental flags, or `null` if none is enabled.
fn write_experimental_features(json: &mut Json, settings: &Settings) {
    let flags = [
        ("experimental-features", settings.experimental_features),
        ("experimental-exporters", settings.experimental_exporters),
        ("experimental-numscript-interpreter", settings.script_wording == ErrorWording::Interpreter),
    ];
    let on: Vec<&str> = flags.iter().filter(|(_, is_on)| *is_on).map(|(name, _)| *name).collect();
    if on.is_empty() {
        json.raw("null");
        return;
    }
    json.raw("[").list(&on, |json, name| {
        json.plain_string(name);
    });
    json.raw("]");
}

/// Returns why the store accepts no writes, as far as the client may know. `None` if it accepts them.
pub(crate) async fn stopped(context: &Context<'_>) -> Option<String> {
    let reason = context.app.store().status().stopped?;
    Some(public_reason(reason, is_trusted(context).await))
}

/// Hides a reason from clients that are not trusted, because it contains file paths.
fn public_reason(reason: String, is_trusted: bool) -> String {
    if is_trusted { reason } else { "the server takes no writes".to_owned() }
}

pub(crate) async fn health(context: &Context<'_>, form: HealthForm) -> Reply {
    let stopped = stopped(context).await;
    let mut json = context.json();
    json.raw("{");
    let failed = match form {
        HealthForm::Alive => StatusCode::OK,
        HealthForm::Checks => StatusCode::INTERNAL_SERVER_ERROR,
        HealthForm::Ready => StatusCode::SERVICE_UNAVAILABLE,
    };
    let check = match form {
        HealthForm::Alive => None,
        // Monitors of later servers of this API look for this check by its name.
        HealthForm::Checks => Some("storage-driver-up-to-date"),
        HealthForm::Ready => Some("storage"),
    };
    if let Some(check) = check {
        json.plain_string(check).raw(":").string(stopped.as_deref().unwrap_or("OK"));
    }
    json.raw("}");
    json.reply(if stopped.is_some() { failed } else { StatusCode::OK })
}

pub(crate) fn versions(context: &Context<'_>) -> Reply {
    let healthy = context.app.store().status().stopped.is_none();
    let mut json = context.json();
    json.raw("{\"region\":\"local\",\"env\":\"local\",\"versions\":[");
    let services = [Some("ledger"), Some("payments"), context.app.authority().map(|_| "auth")];
    json.list(services.into_iter().flatten(), |json, name| {
        json.raw("{\"name\":").plain_string(name).raw(",\"version\":").plain_string(API_VERSION);
        json.raw(",\"health\":").boolean(healthy).raw("}");
    });
    json.raw("]}");
    json.reply(StatusCode::OK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_strangers_no_paths() {
        let reason = || "writing /data/journal/1: no space".to_owned();
        assert_eq!(public_reason(reason(), true), reason());
        assert_eq!(public_reason(reason(), false), "the server takes no writes");
    }
}

//! Several commands in one request.
//!
//! Elements are decided in order, each seeing what those before it did; `parallel` is accepted and changes
//! nothing, since the writer takes one command at a time anyway. One element that makes no command at all (a
//! posting with an invalid address, say) fails at its place, like one that the rules refuse.

use hyper::StatusCode;
use hyper::header::CONTENT_TYPE;
use ledger_core::LogPayload;
use ledger_store::{Atomicity, Detail, Mode, Outcome, Receipt, Request, Submission};

use crate::api::context::Context;
use crate::api::ledger_v2::bulk_elements::{self, Action, Elements, too_long, yield_to_others};
use crate::api::ledger_v2::transactions::answers_effective_volumes;
use crate::api::ledger_v2::{bulk_script, write};
use crate::http::error::{ApiError, Code, Profile};
use crate::http::response::{Json, Numbers, Reply};
use crate::limits::{ATOMIC_COMMANDS_MAX, COMMANDS_PER_PART};
use crate::shapes::transaction::write_recorded;

const JSON_ARRAY: &str = "application/json";
const FORM: &str = "application/x-www-form-urlencoded";
const JSON_STREAM: &str = "application/vnd.formance.ledger.api.v2.bulk+json-stream";
const SCRIPT_STREAM: &str = "application/vnd.formance.ledger.api.v2.bulk+script-stream";

/// About the length of the result of a transaction with one posting.
const RESULT_BYTES: usize = 1_024;

pub(crate) async fn bulk(context: &Context<'_>) -> Result<Reply, ApiError> {
    let atomic = context.query.flag("atomic");
    let prepared = if atomic && context.query.flag("parallel") {
        let message = "atomic and parallel options are mutually exclusive";
        Err(ApiError::refused(StatusCode::PRECONDITION_FAILED, message))
    } else {
        elements(context).await
    };
    let Elements { actions, mut requests, fault } =
        prepared.map_err(|error| context.or_ledger_not_found(error))?;
    if requests.is_empty() {
        context.ledger()?;
    }
    if atomic && requests.len() > ATOMIC_COMMANDS_MAX {
        return Err(too_long(ATOMIC_COMMANDS_MAX));
    }
    let each = if context.query.flag("continueOnFailure") {
        Atomicity::Independent
    } else {
        Atomicity::StopAtRefusal
    };
    set_schema_version(context, &mut requests).map_err(|error| context.or_ledger_not_found(error))?;
    let answers = if !atomic {
        run(context, requests, each, Mode::Commit).await?
    } else if fault.is_some() || requests.iter().any(Result::is_err) {
        // What cannot succeed as a whole is shown as it would have gone, and not done.
        run(context, requests, each, Mode::DryRun).await?
    } else {
        all_or_nothing(context, requests.into_iter().flatten().collect(), each).await?
    };
    reply(context, &actions, &answers, fault.as_ref()).await
}

/// Reads the body by its content type. Stack 2.0 knew one form only, and did not look: its clients may
/// say anything but the names of the streams. A form is what `curl -d` says unless told otherwise.
async fn elements(context: &Context<'_>) -> Result<Elements, ApiError> {
    let content_type = context.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
    let content_type = content_type.split(';').next().unwrap_or("").trim();
    match (content_type, context.profile) {
        (JSON_STREAM, _) => {
            Ok(bulk_elements::stream(&context.body, context.app.settings().script_wording).await)
        }
        (SCRIPT_STREAM, _) => Ok(bulk_script::elements(&context.body, context.app.settings().script_wording)),
        ("" | JSON_ARRAY | FORM, _) | (_, Profile::Stack) => {
            let settings = context.app.settings();
            bulk_elements::array(&context.body, settings.script_wording, settings.bulk_max_size)
        }
        (other, _) => {
            let other: String = other.chars().take(100).collect();
            Err(ApiError::validation(format!("unsupported content type: {other}")))
        }
    }
}

/// Gives every command the schema version that the request names.
fn set_schema_version(
    context: &Context<'_>,
    requests: &mut [Result<Request, ApiError>],
) -> Result<(), ApiError> {
    if let Some(version) = context.schema_version()? {
        for request in requests.iter_mut().flatten() {
            request.schema_version = Some(Box::new(version.clone()));
        }
    }
    Ok(())
}

/// Parses the body once more, after all of its elements were submitted as commands.
async fn parse_again(context: &Context<'_>) -> Result<Vec<Request>, ApiError> {
    let mut requests = elements(context).await?.requests;
    set_schema_version(context, &mut requests)?;
    requests.into_iter().collect()
}

/// The result of an element.
enum Answer {
    Done(Receipt),
    Failed(ApiError),
    /// Not tried since another failed.
    Cancelled,
}

impl From<Outcome> for Answer {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Done(receipt) => Self::Done(receipt),
            Outcome::Refused(rejection) => Self::Failed(rejection.into()),
            Outcome::Cancelled => Self::Cancelled,
            Outcome::Failed(error) => Self::failed(error.into()),
        }
    }
}

impl Answer {
    /// The result of an element that a fault of the server stopped. The response to the bulk does not report the cause.
    fn failed(error: ApiError) -> Self {
        error.log_cause();
        Self::Failed(error)
    }
}

/// Executes elements, some of which may have failed before they were commands, and each of which stands for itself or
/// for those behind it.
async fn run(
    context: &Context<'_>,
    elements: Vec<Result<Request, ApiError>>,
    atomicity: Atomicity,
    mode: Mode,
) -> Result<Vec<Answer>, ApiError> {
    if atomicity == Atomicity::Independent {
        let (requests, failed) = split_elements(elements);
        let mut answers = submit_in_parts(context, requests, atomicity, mode).await?.into_iter();
        let whole = failed.into_iter().map(|failed| match failed {
            Some(error) => Some(Answer::Failed(error)),
            None => answers.next(),
        });
        return whole.collect::<Option<_>>().ok_or_else(lost);
    }
    let count = elements.len();
    let mut failed = None;
    let until_failed =
        |element: Result<Request, ApiError>| element.map_err(|error| failed = Some(error)).ok();
    let requests: Vec<Request> = elements.into_iter().map_while(until_failed).collect();
    let mut answers = submit_in_parts(context, requests, Atomicity::StopAtRefusal, mode).await?;
    if let Some(error) = failed {
        let all_done = answers.iter().all(|answer| matches!(answer, Answer::Done(_)));
        answers.push(if all_done { Answer::Failed(error) } else { Answer::Cancelled });
    }
    answers.resize_with(count, || Answer::Cancelled);
    Ok(answers)
}

/// Submits an atomic bulk. If an element is refused, the response shows the elements before it as if they were done,
/// and with `continueOnFailure` those after it too. The store reports only that they were undone, so a dry run computes
/// them.
async fn all_or_nothing(
    context: &Context<'_>,
    requests: Vec<Request>,
    each: Atomicity,
) -> Result<Vec<Answer>, ApiError> {
    let mut answers = submit(context, requests, Atomicity::AllOrNothing, Mode::Commit).await?;
    let Some(refused) = answers.iter().position(|answer| matches!(answer, Answer::Failed(_))) else {
        return Ok(answers);
    };
    // Refusals are rare. A copy of the commands would cost every bulk that succeeds.
    let mut others = parse_again(context).await?;
    let behind = others.split_off(refused).split_off(1);
    if each == Atomicity::Independent {
        others.extend(behind);
    }
    let mut shown = submit(context, others, each, Mode::DryRun).await?;
    let behind = shown.split_off(refused);
    answers.splice(..refused, shown);
    let at = refused + 1;
    answers.splice(at..at + behind.len(), behind);
    Ok(answers)
}

type SplitElements = (Vec<Request>, Vec<Option<ApiError>>);

/// Separates commands from elements that are none; the second list has an entry for every element.
fn split_elements(elements: Vec<Result<Request, ApiError>>) -> SplitElements {
    let mut requests = Vec::with_capacity(elements.len());
    let failed = elements.into_iter().map(|element| match element {
        Ok(request) => {
            requests.push(request);
            None
        }
        Err(error) => Some(error),
    });
    let failed = failed.collect();
    (requests, failed)
}

/// Submits commands that need not happen together in parts, so that writes of others get in between. A dry run is one
/// part, since each command sees those before it.
async fn submit_in_parts(
    context: &Context<'_>,
    requests: Vec<Request>,
    atomicity: Atomicity,
    mode: Mode,
) -> Result<Vec<Answer>, ApiError> {
    if mode == Mode::DryRun || requests.len() <= COMMANDS_PER_PART {
        return submit(context, requests, atomicity, mode).await;
    }
    let count = requests.len();
    let mut answers: Vec<Answer> = Vec::with_capacity(count);
    let mut requests = requests.into_iter();
    while requests.len() > 0 {
        let part: Vec<Request> = requests.by_ref().take(COMMANDS_PER_PART).collect();
        let (from, size) = (answers.len(), part.len());
        match submit(context, part, atomicity, mode).await {
            Ok(part) => answers.extend(part),
            Err(error) if from == 0 => return Err(error),
            // The parts before it have happened, so this is an outcome of its elements and not of the whole bulk.
            Err(error) => {
                error.log_cause();
                answers.extend((0..size).map(|_| Answer::Failed(error.clone())));
            }
        }
        let is_done = answers[from..].iter().all(|answer| matches!(answer, Answer::Done(_)));
        if atomicity == Atomicity::StopAtRefusal && !is_done {
            break;
        }
    }
    answers.resize_with(count, || Answer::Cancelled);
    Ok(answers)
}

async fn submit(
    context: &Context<'_>,
    requests: Vec<Request>,
    atomicity: Atomicity,
    mode: Mode,
) -> Result<Vec<Answer>, ApiError> {
    if requests.is_empty() {
        context.ledger()?;
        return Ok(Vec::new());
    }
    let count = requests.len();
    let ledger = context.ledger_name()?;
    let submission = Submission { ledger, requests, atomicity, mode, detail: Detail::Entry };
    let outcomes = context.app.submit(submission).await?;
    if outcomes.len() != count {
        return Err(lost());
    }
    Ok(outcomes.into_iter().map(Answer::from).collect())
}

fn lost() -> ApiError {
    ApiError::fault("the outcomes of a bulk do not match its commands")
}

async fn reply(
    context: &Context<'_>,
    actions: &[Action],
    answers: &[Answer],
    fault: Option<&ApiError>,
) -> Result<Reply, ApiError> {
    let profile = context.profile;
    // Clients of stack 2.0 expect the list to end with the element that failed.
    let shown = match profile {
        Profile::Stack => answers.iter().take_while(|answer| !matches!(answer, Answer::Cancelled)).count(),
        Profile::Ledger => answers.len(),
    };
    // Amounts in a bulk stay numbers whatever the caller's header says.
    let mut json = Json::with_capacity(Numbers::Plain, shown * RESULT_BYTES);
    let with_log_ids = context.reads_later_forms();
    let effective_kept = answers_effective_volumes(context);
    json.raw("{\"data\":[");
    for (at, (action, answer)) in actions.iter().zip(&answers[..shown]).enumerate() {
        json.raw(if at == 0 { "{" } else { ",{" });
        let log = match answer {
            Answer::Done(receipt) => {
                write_done(&mut json, *action, receipt, effective_kept)?;
                receipt.log.get()
            }
            Answer::Failed(error) => {
                write_failed(&mut json, error.code.text(profile), &error.message);
                0
            }
            Answer::Cancelled => {
                write_failed(&mut json, Code::Internal.text(profile), "context canceled");
                0
            }
        };
        // Strict clients of stack 2.0 refuse an element with a member that they do not know.
        if with_log_ids {
            json.raw(",\"logID\":").integer(log);
        }
        json.raw("}");
        yield_to_others(at).await;
    }
    json.raw("]");
    if let Some(fault) = fault {
        json.raw(",\"errorCode\":").plain_string(fault.code.text(profile));
        json.raw(",\"errorMessage\":").string(&fault.message);
    }
    json.raw("}");
    let succeeded = fault.is_none() && answers.iter().all(|answer| matches!(answer, Answer::Done(_)));
    Ok(json.reply(if succeeded { StatusCode::OK } else { StatusCode::BAD_REQUEST }))
}

fn write_done(
    json: &mut Json,
    action: Action,
    receipt: &Receipt,
    effective_kept: bool,
) -> Result<(), ApiError> {
    if let LogPayload::NewTransaction { transaction, effective_volumes, .. }
    | LogPayload::RevertedTransaction { transaction, effective_volumes, .. } =
        &write::entry(receipt)?.payload
    {
        json.raw("\"data\":");
        write_recorded(json, transaction, effective_volumes.as_deref(), effective_kept);
        json.raw(",");
    }
    json.raw("\"responseType\":").plain_string(action.text());
    Ok(())
}

fn write_failed(json: &mut Json, code: &str, description: &str) {
    json.raw("\"errorCode\":").plain_string(code);
    json.raw(",\"errorDescription\":").string(description);
    json.raw(",\"responseType\":\"ERROR\"");
}

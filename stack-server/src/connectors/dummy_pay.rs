//! DUMMY-PAY: a provider that consists of JSON files in a directory of the server.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ledger_core::{Balance, Timestamp};

use crate::connectors::config::{Parameter, ParameterType, Values, Visibility, optional, required};
use crate::connectors::definition::{Capabilities, Definition};
use crate::connectors::error::ConfigError;
use crate::connectors::http::ProviderAccess;
use crate::connectors::{
    Connector, ConnectorFuture, Failure, NewTask, Order, OrderResult, Page, Restart, TaskContext, object,
};
use crate::http::response::{Json, Numbers};
use crate::payments::account::NewAccount;
use crate::payments::codec::Metadata;
use crate::payments::enumerations::{AccountType, PaymentStatus, PaymentType, Scheme};
use crate::payments::event::write_metadata;
use crate::payments::ids::AccountId;
use crate::payments::ingest::Batch;
use crate::payments::payment::NewPayment;
use crate::payments::task::NO_STATE;
use crate::uuid::Uuid;

mod file;

const PROVIDER: &str = "DUMMY-PAY";

pub(crate) const DEFINITION: Definition = Definition {
    provider: PROVIDER,
    parameters: PARAMETERS,
    period: "filePollingPeriod",
    slots: 10,
    capabilities: Capabilities { pays: false, reverses: false, transfers: false, bank_accounts: false },
    build: &build,
    clean: Some(clean),
};

const PARAMETERS: &[Parameter] = &[
    optional("name", ParameterType::Text, PROVIDER),
    required("directory", ParameterType::Text, ""),
    required("filePollingPeriod", ParameterType::Duration, "10s"),
    optional("prefixFileToIngest", ParameterType::Text, ""),
    optional("numberOfAccountsPreGenerated", ParameterType::Number, "0"),
    optional("numberOfPaymentsPreGenerated", ParameterType::Number, "0"),
    Parameter {
        visibility: Visibility::Nowhere,
        ..optional("fileGenerationPeriod", ParameterType::Duration, "0s")
    },
];

/// Prefix of the names of generated files.
const GENERATED: &str = "dummypay-generated-file-";

/// Maximum number of files to write, and of tasks to start, in one step.
const STEP: u32 = 100;

/// Maximum number of files to generate. They are test data of an operator.
const GENERATED_MAX: u64 = 1_000_000;

/// Maximum size of a file in bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;

const ASSET: &str = "DUMMYCOIN";

struct DummyPay {
    directory: PathBuf,
    prefix: String,
    period: Duration,
    /// Interval between generated payments after the installation; zero disables them.
    generation_period: Duration,
    accounts: u64,
    payments: u64,
    /// References of the generated accounts.
    generated: Mutex<Vec<String>>,
    /// The listed files, each with the number of its page.
    listed: Mutex<BTreeMap<String, u64>>,
}

fn build(values: &Values, access: &ProviderAccess) -> Result<Arc<dyn Connector>, ConfigError> {
    let (accounts, payments) =
        (values.number("numberOfAccountsPreGenerated"), values.number("numberOfPaymentsPreGenerated"));
    if accounts > GENERATED_MAX || payments > GENERATED_MAX {
        return Err(ConfigError::TooManyGenerated(GENERATED_MAX));
    }
    Ok(Arc::new(DummyPay {
        directory: access.directory(values.text("directory")).map_err(|reason| reason.of("directory"))?,
        prefix: values.text("prefixFileToIngest").to_owned(),
        period: values.duration("filePollingPeriod"),
        generation_period: values.duration("fileGenerationPeriod"),
        accounts,
        payments,
        generated: Mutex::default(),
        listed: Mutex::default(),
    }))
}

/// Deletes the generated files, and no others.
fn clean(values: &Values) {
    let Ok(entries) = fs::read_dir(values.text("directory")) else { return };
    for entry in entries.flatten() {
        if entry.file_name().to_str().is_some_and(|name| name.starts_with(GENERATED)) {
            // A file that cannot be deleted does not matter: nobody reads it again.
            let _ = fs::remove_file(entry.path());
        }
    }
}

fn descriptor(name: &str, key: &str, file: &str) -> String {
    let mut json = Json::new(Numbers::Plain);
    json.raw("{\"name\":").string(name).raw(",\"key\":").string(key).raw(",\"fileName\":").string(file);
    json.raw("}");
    json.into_string()
}

impl Connector for DummyPay {
    fn first_tasks(&self) -> Vec<NewTask> {
        let generation = descriptor("Generate files into a directory", "init-directory", "");
        let reading = descriptor("Read Files from directory", "read-files", "");
        let mut new_tasks = vec![
            NewTask { is_synchronous: true, ..NewTask::once(generation, Restart::Never) },
            NewTask::periodic(reading),
        ];
        if !self.generation_period.is_zero() {
            let lasting = descriptor("Generate files into a directory", "generate-files", "");
            new_tasks.push(NewTask::periodic(lasting));
        }
        new_tasks
    }

    fn check(&self) -> Result<(), Failure> {
        fs::create_dir_all(&self.directory).map_err(|error| failed(&self.directory, &error))
    }

    fn poll<'a>(&'a self, context: &'a TaskContext) -> ConnectorFuture<'a, Page> {
        Box::pin(async move {
            match context.descriptor_member("key").as_str() {
                "init-directory" => self.generate(context),
                "read-files" => self.list(context),
                "generate-files" => self.generate_more(context),
                "ingest" => self.ingest(context),
                other => Err(Failure::permanent(format!("there is no task {other:?}"))),
            }
        })
    }

    fn pay<'a>(&'a self, _: &'a Order) -> ConnectorFuture<'a, OrderResult> {
        Box::pin(async { Err(Failure::permanent("this connector moves no money")) })
    }
}

fn failed(path: &Path, error: &std::io::Error) -> Failure {
    Failure::retryable(format!("{}: {error}", path.display()))
}

/// Returns random bytes for choices.
fn random() -> Result<[u8; 8], Failure> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(|error| Failure::retryable(error.to_string()))?;
    Ok(bytes)
}

fn new_reference() -> Result<String, Failure> {
    Uuid::random().map(|uuid| uuid.to_string()).map_err(|error| Failure::retryable(error.to_string()))
}

impl DummyPay {
    /// Creates the directory and writes some of the requested files. The page contains their accounts and payments.
    fn generate(&self, context: &TaskContext) -> Result<Page, Failure> {
        fs::create_dir_all(&self.directory).map_err(|error| failed(&self.directory, &error))?;
        let done = |name: &str| context.state_member(name).parse::<u64>().unwrap_or(0);
        let (mut accounts, mut payments) = (done("accounts"), done("payments"));
        let mut batch = Batch::default();
        let nanoseconds = context.now.as_micros() * 1_000;
        for _ in 0..STEP {
            let name = nanoseconds + (accounts + payments).cast_signed();
            if accounts < self.accounts {
                batch.accounts.push(self.generate_account(name, context.now)?);
                accounts += 1;
            } else if payments < self.payments {
                batch.payments.push(self.generate_payment(name, context)?);
                payments += 1;
            } else {
                return Ok(Page { batch, state: Some(NO_STATE.to_owned()), ..Page::default() });
            }
        }
        let state = Some(format!("{{\"accounts\":\"{accounts}\",\"payments\":\"{payments}\"}}"));
        let has_more = accounts < self.accounts || payments < self.payments;
        let state = if has_more { state } else { Some(NO_STATE.to_owned()) };
        Ok(Page { batch, state, has_more, ..Page::default() })
    }

    /// Writes one payment for each generation period that has passed since the last one.
    fn generate_more(&self, context: &TaskContext) -> Result<Page, Failure> {
        let now = context.now.as_micros();
        let period = i64::try_from(self.generation_period.as_micros()).unwrap_or(i64::MAX);
        if period == 0 {
            return Ok(Page::default());
        }
        let last = context.state_member("generatedAt").parse::<i64>().unwrap_or(now - period);
        let due = ((now - last) / period).clamp(0, i64::from(STEP));
        let mut page = Page::default();
        for number in 0..due {
            page.batch.payments.push(self.generate_payment(now * 1_000 + number, context)?);
        }
        // After a long downtime, do not generate the missed payments.
        let generated_at = if due == i64::from(STEP) { now } else { last + due * period };
        page.state = Some(object(&[("generatedAt", &generated_at.to_string())]));
        Ok(page)
    }

    fn generate_account(&self, name: i64, now: Timestamp) -> Result<NewAccount, Failure> {
        let [choice, ..] = random()?;
        let account = NewAccount {
            reference: new_reference()?,
            created_at: now,
            default_asset: ASSET.to_owned(),
            name: format!("account-{name}"),
            kind: if choice % 2 == 0 { AccountType::Internal } else { AccountType::External },
            metadata: Metadata::new(),
            raw: None,
        };
        let mut json = Json::new(Numbers::Plain);
        json.raw("{\"reference\":").string(&account.reference).raw(",\"createdAt\":").time(now);
        json.raw(",\"defaultAsset\":").string(ASSET).raw(",\"accountName\":").string(&account.name);
        json.raw(",\"type\":").plain_string(account.kind.name()).raw(",\"metadata\":{}}");
        let raw = self.write("account", name, json)?;
        self.generated.lock().unwrap_or_else(PoisonError::into_inner).push(account.reference.clone());
        Ok(NewAccount { raw: Some(raw), ..account })
    }

    fn generate_payment(&self, name: i64, context: &TaskContext) -> Result<NewPayment, Failure> {
        let [kind, status, scheme, side, which, low, high, more] = random()?;
        let amount = u32::from_le_bytes([low, high, more, 0]) % 10_000;
        let generated = self.generated.lock().unwrap_or_else(PoisonError::into_inner);
        let account = (!generated.is_empty())
            .then(|| context.account(&generated[usize::from(which) % generated.len()]))
            .flatten();
        drop(generated);
        let (source, destination) = if side % 2 == 0 { (account, None) } else { (None, account) };
        let payment = NewPayment {
            kind: match kind % 12 {
                0..3 => PaymentType::Payout,
                3 => PaymentType::Transfer,
                _ => PaymentType::PayIn,
            },
            reference: new_reference()?,
            source,
            destination,
            status: match status % 12 {
                0..3 => PaymentStatus::Pending,
                3 => PaymentStatus::Failed,
                4..6 => PaymentStatus::Cancelled,
                _ => PaymentStatus::Succeeded,
            },
            initial_amount: Balance::from(i64::from(amount)),
            amount: Balance::from(i64::from(amount)),
            scheme: SCHEMES[usize::from(scheme) % SCHEMES.len()],
            asset: ASSET.to_owned(),
            created_at: context.now,
            raw: None,
            adjustments: vec![],
            metadata: Metadata::new(),
            revision: None,
        };
        let mut json = Json::new(Numbers::Plain);
        write_payment(&mut json, &payment);
        let raw = self.write("payment", name, json)?;
        Ok(NewPayment { raw: Some(raw), ..payment })
    }

    /// Writes a generated file. Returns the part of it that is the provider's record.
    fn write(&self, kind: &str, name: i64, record: Json) -> Result<String, Failure> {
        let record = record.into_string();
        let path = self.directory.join(format!("{GENERATED}{kind}-{name}.json"));
        let text = format!("{{\"kind\":\"{kind}\",\"{kind}\":{record}}}\n");
        fs::write(&path, text).map_err(|error| failed(&path, &error))?;
        Ok(record)
    }

    /// Starts a task for each file that has none. The state counts the pages with files, so that it tells which of
    /// them are recorded.
    fn list(&self, context: &TaskContext) -> Result<Page, Failure> {
        let entries = fs::read_dir(&self.directory).map_err(|error| failed(&self.directory, &error))?;
        let mut listed = self.listed.lock().unwrap_or_else(PoisonError::into_inner);
        let recorded = context.state_member("pages").parse::<u64>().unwrap_or(0);
        listed.retain(|_, number| *number <= recorded);
        let mut page = Page::default();
        for entry in entries {
            let entry = entry.map_err(|error| failed(&self.directory, &error))?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            let is_file = fs::metadata(entry.path()).is_ok_and(|found| found.is_file());
            let is_wanted = is_file && !name.starts_with(GENERATED) && name.starts_with(&self.prefix);
            if !is_wanted || listed.contains_key(&name) {
                continue;
            }
            if page.children.len() >= STEP as usize {
                page.has_more = true;
                break;
            }
            let task = descriptor("Ingest accounts and payments from read files", "ingest", &name);
            page.children.push(NewTask::once(task, Restart::Never));
            listed.insert(name, recorded + 1);
        }
        if !page.children.is_empty() {
            page.state = Some(object(&[("pages", &(recorded + 1).to_string())]));
        }
        Ok(page)
    }

    /// Records the content of a file.
    fn ingest(&self, context: &TaskContext) -> Result<Page, Failure> {
        let path = self.directory.join(context.descriptor_member("fileName"));
        let found = fs::metadata(&path)
            .map_err(|error| Failure::permanent(format!("{}: {error}", path.display())))?;
        if found.len() > FILE_BYTES_MAX {
            return Err(Failure::permanent(format!(
                "{} is longer than {FILE_BYTES_MAX} bytes",
                path.display()
            )));
        }
        let text = fs::read(&path).map_err(|error| failed(&path, &error))?;
        match file::parse(&text, context) {
            Ok(batch) => Ok(Page { batch, ..Page::default() }),
            Err(reason) => {
                let reason = format!("{}: {reason}", path.display());
                // The file may be incomplete because another process is writing it.
                let age = found.modified().ok().and_then(|at| at.elapsed().ok());
                let is_young = age.is_some_and(|age| age < self.period);
                Err(if is_young { Failure::retryable(reason) } else { Failure::permanent(reason) })
            }
        }
    }
}

const SCHEMES: [Scheme; 10] = [
    Scheme::Mastercard,
    Scheme::Visa,
    Scheme::Discover,
    Scheme::Jcb,
    Scheme::Unionpay,
    Scheme::Amex,
    Scheme::Diners,
    Scheme::SepaDebit,
    Scheme::SepaCredit,
    Scheme::ApplePay,
];

fn write_payment(json: &mut Json, payment: &NewPayment) {
    let id = |account: &Option<AccountId>| account.as_ref().map(AccountId::text).unwrap_or_default();
    json.raw("{\"reference\":").string(&payment.reference).raw(",\"createdAt\":").time(payment.created_at);
    json.raw(",\"amount\":").balance(&payment.amount).raw(",\"asset\":").string(&payment.asset);
    json.raw(",\"type\":").plain_string(payment.kind.name());
    json.raw(",\"status\":").plain_string(payment.status.name());
    json.raw(",\"scheme\":").plain_string(payment.scheme.name());
    json.raw(",\"sourceAccountId\":").plain_string(&id(&payment.source));
    json.raw(",\"destinationAccountId\":").plain_string(&id(&payment.destination)).raw(",\"metadata\":");
    write_metadata(json, &payment.metadata);
    json.raw("}");
}

#[cfg(test)]
mod tests;

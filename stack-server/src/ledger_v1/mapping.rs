//! The mapping of a ledger: read, replaced, and made into rules.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use hyper::StatusCode;
use ledger_core::{
    AddressExpression, Contract, LegacyRules, Mapping, PastDates, Rule, Rules, write_json_text,
};
use ledger_store::LedgerView;
use serde::de::MapAccess;
use serde_json::value::RawValue;

use crate::call::Call;
use crate::error::ApiError;
use crate::json::{self, Array, Fields, Object, Text, canonical, field};
use crate::ledger_v1::{expression, ledger};
use crate::limits::MAPPING_BYTES_MAX;
use crate::response::Reply;

/// A mapping as it was sent.
#[derive(Default)]
struct MappingBody<'a> {
    contracts: Vec<ContractBody<'a>>,
}

impl<'de> Fields<'de> for MappingBody<'de> {
    fn field<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<bool, A::Error> {
        match field(name, &["contracts"]) {
            Some("contracts") => {
                let Array(contracts) = map.next_value::<Array<Object<ContractBody<'de>>>>()?;
                self.contracts = contracts.into_iter().map(|Object(contract)| contract).collect();
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// A contract as it was sent.
#[derive(Default)]
struct ContractBody<'a> {
    name: Text<'a>,
    account: Text<'a>,
    rule: Option<&'a RawValue>,
}

impl<'de> Fields<'de> for ContractBody<'de> {
    fn field<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<bool, A::Error> {
        match field(name, &["name", "account", "expr"]) {
            Some("name") => self.name = map.next_value()?,
            Some("account") => self.account = map.next_value()?,
            Some("expr") => self.rule = Some(map.next_value()?),
            _ => return Ok(false),
        }
        Ok(true)
    }
}

impl ContractBody<'_> {
    /// The contract; `None` for one without effect.
    fn to_contract(&self) -> Result<Option<Contract>, ApiError> {
        let pattern = self.account.0.replace('*', ".*");
        let accounts = AddressExpression::anywhere(&pattern)
            .map_err(|error| ApiError::validation(format!("invalid account pattern: {error}")))?;
        let rule = expression::parse(self.rule)?;
        Ok(rule.map(|rule: Rule| Contract { accounts, rule }))
    }

    /// The contract as it is kept and shown.
    fn write_to(&self, out: &mut Vec<u8>) -> Result<(), ApiError> {
        out.extend_from_slice(b"{\"name\":");
        write_json_text(&self.name.0, out);
        out.extend_from_slice(b",\"account\":");
        write_json_text(&self.account.0, out);
        out.extend_from_slice(b",\"expr\":");
        let rule =
            self.rule.map(canonical).transpose().map_err(|error| ApiError::validation(error.to_string()))?;
        out.extend_from_slice(rule.as_deref().unwrap_or("{}").as_bytes());
        out.push(b'}');
        Ok(())
    }
}

fn contracts<'a>(text: &'a [u8]) -> Result<Vec<ContractBody<'a>>, ApiError> {
    match json::first::<Object<MappingBody<'a>>>(text) {
        Ok(Object(body)) => Ok(body.contracts),
        Err(error) => Err(ApiError::validation(format!("invalid mapping format: {error}"))),
    }
}

fn mapping(contracts: &[ContractBody<'_>]) -> Result<Mapping, ApiError> {
    let contracts = contracts.iter().filter_map(|contract| contract.to_contract().transpose());
    Ok(Mapping::new(contracts.collect::<Result<_, _>>()?))
}

const NO_CONTRACTS: &str = "{\"contracts\":[]}";

pub(crate) fn read(call: &Call<'_>) -> Result<Reply, ApiError> {
    let ledger = ledger::view(call)?;
    let text = ledger.as_ref().and_then(LedgerView::mapping);
    Ok(answer(call, text.map_or(NO_CONTRACTS, |text| text)))
}

pub(crate) async fn update(call: &Call<'_>) -> Result<Reply, ApiError> {
    let contracts = contracts(&call.body)?;
    mapping(&contracts)?;
    let mut text = b"{\"contracts\":[".to_vec();
    for (at, contract) in contracts.iter().enumerate() {
        if at > 0 {
            text.push(b',');
        }
        contract.write_to(&mut text)?;
    }
    text.extend_from_slice(b"]}");
    if text.len() > MAPPING_BYTES_MAX {
        return Err(ApiError::validation(format!("a mapping has at most {MAPPING_BYTES_MAX} bytes")));
    }
    let text = String::from_utf8(text).map_err(|error| ApiError::validation(error.to_string()))?;
    let name = ledger::ensured(call).await?.info().name.clone();
    let reply = answer(call, &text);
    call.app.blocking(move |store| Ok(store.set_mapping(&name, text)?)).await?;
    Ok(reply)
}

fn answer(call: &Call<'_>, text: &str) -> Reply {
    let mut json = call.json();
    json.raw("{\"data\":").raw(text).raw("}");
    json.reply(StatusCode::OK)
}

/// Rules are kept for so many ledgers with a mapping; beyond that all are made anew.
const KNOWN_MAX: usize = 1_024;

/// The rules of ledgers, so that a mapping is compiled once and not with every write.
#[derive(Default)]
pub(crate) struct KnownRules(Mutex<HashMap<u32, (Arc<str>, Rules)>>);

impl KnownRules {
    /// The rules of a ledger as it is; those of one that is not there have no contracts.
    ///
    /// # Errors
    ///
    /// `INTERNAL` if the mapping that is stored is none.
    pub(crate) fn of(&self, ledger: Option<&LedgerView>, past_dates: PastDates) -> Result<Rules, ApiError> {
        let Some((id, text)) = ledger.and_then(|ledger| Some((ledger.info().id, ledger.mapping()?))) else {
            return Ok(Rules::Legacy(Arc::new(LegacyRules { past_dates, ..LegacyRules::default() })));
        };
        // What a thread that panicked left behind is whole: entries are put in one step.
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, rules)) = known.get(&id)
            && Arc::ptr_eq(of, text)
        {
            return Ok(rules.clone());
        }
        let mapping = contracts(text.as_bytes())
            .and_then(|contracts| mapping(&contracts))
            .map_err(|error| ApiError::fault(&format!("a stored mapping: {}", error.message)))?;
        let rules = Rules::Legacy(Arc::new(LegacyRules { mapping, past_dates }));
        if known.len() >= KNOWN_MAX {
            known.clear();
        }
        known.insert(id, (text.clone(), rules.clone()));
        Ok(rules)
    }
}

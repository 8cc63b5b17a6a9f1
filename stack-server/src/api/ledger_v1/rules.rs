//! Parses the mapping of a ledger, and caches the resulting v1 rules.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use ledger_core::{
    AddressExpression, Contract, LegacyRules, Mapping, PastDates, Rule, Rules, write_json_text,
};
use ledger_store::LedgerView;
use serde::de::MapAccess;
use serde_json::value::RawValue;

use crate::api::ledger_v1::expression;
use crate::http::error::ApiError;
use crate::http::json::{self, Array, Fields, Object, Text, canonical, field};

/// A mapping in a request body.
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

/// A contract in a request body.
#[derive(Default)]
pub(crate) struct ContractBody<'a> {
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
    /// Converts the contract at index `at` of the body. Returns `None` if the contract has no effect.
    fn to_contract(&self, at: usize) -> Result<Option<Contract>, ApiError> {
        let pattern = self.account.0.replace('*', ".*");
        let accounts = AddressExpression::anywhere(&pattern).map_err(|error| {
            ApiError::validation(format!("contracts[{at}].account: invalid account pattern: {error}"))
        })?;
        let rule = expression::parse(self.rule)
            .map_err(|error| ApiError::validation(format!("contracts[{at}].expr: {}", error.message)))?;
        Ok(rule.map(|rule: Rule| Contract { accounts, rule }))
    }

    /// Writes the contract in its stored form, which is also its form in responses.
    pub(crate) fn write_to(&self, out: &mut Vec<u8>) -> Result<(), ApiError> {
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

pub(crate) fn contracts<'a>(text: &'a [u8]) -> Result<Vec<ContractBody<'a>>, ApiError> {
    match json::first::<Object<MappingBody<'a>>>(text) {
        Ok(Object(body)) => Ok(body.contracts),
        Err(error) => Err(ApiError::validation(format!("invalid mapping format: {error}"))),
    }
}

pub(crate) fn mapping(contracts: &[ContractBody<'_>]) -> Result<Mapping, ApiError> {
    let contracts = contracts.iter().enumerate();
    let contracts = contracts.filter_map(|(at, contract)| contract.to_contract(at).transpose());
    Ok(Mapping::new(contracts.collect::<Result<_, _>>()?))
}

/// Maximum number of ledgers whose rules are cached. A full cache is emptied.
const KNOWN_MAX: usize = 1_024;

/// A cache of the rules of ledgers. Writes would otherwise parse the mapping each time.
#[derive(Default)]
pub(crate) struct KnownRules(Mutex<HashMap<u32, (Arc<str>, Rules)>>);

impl KnownRules {
    /// Returns the current rules of a ledger. A ledger that does not exist has no contracts.
    ///
    /// # Errors
    ///
    /// Returns `INTERNAL` if the stored mapping is malformed.
    pub(crate) fn of(&self, ledger: Option<&LedgerView>, past_dates: PastDates) -> Result<Rules, ApiError> {
        let Some((id, text)) = ledger.and_then(|ledger| Some((ledger.info().id, ledger.mapping()?))) else {
            return Ok(Rules::Legacy(Arc::new(LegacyRules { past_dates, ..LegacyRules::default() })));
        };
        // A panic cannot leave the map half changed, because each entry is inserted in one step.
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

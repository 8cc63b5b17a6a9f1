//! Providers that can be installed and configured, and from which nothing is fetched yet: WISE, MODULR, CURRENCY-CLOUD
//! and BANKING-CIRCLE. Their only task fails and says so. Accounts and payments are made by hand meanwhile.

use std::sync::Arc;

use crate::connectors::config::{Kind, Parameter, Shown, Values, optional, required};
use crate::connectors::http::Tools;
use crate::connectors::registry::{Abilities, Row, SLOTS};
use crate::connectors::{Connector, Failure, Order, Page, Paid, Pending, Start, Work};

struct Configured(&'static str);

impl Connector for Configured {
    fn first_tasks(&self) -> Vec<Start> {
        let name = "Main task to periodically fetch accounts and transactions";
        vec![Start::periodic(format!("{{\"name\":\"{name}\",\"key\":\"main\"}}"))]
    }

    fn poll<'a>(&'a self, _: &'a Work) -> Pending<'a, Page> {
        Box::pin(async { Err(Failure::final_(format!("this release fetches nothing from {}", self.0))) })
    }

    fn pay<'a>(&'a self, _: &'a Order) -> Pending<'a, Paid> {
        Box::pin(async { Err(Failure::final_(format!("this release moves no money at {}", self.0))) })
    }
}

const fn row(
    provider: &'static str,
    parameters: &'static [Parameter],
    build: &'static crate::connectors::registry::Build,
) -> Row {
    let abilities = Abilities { pays: false, reverses: false, transfers: false, bank_accounts: false };
    Row { provider, parameters, period: "pollingPeriod", slots: SLOTS, abilities, build, clean: None }
}

const POLLING: Parameter = optional("pollingPeriod", Kind::Duration, "2m0s");

pub(crate) const WISE: Row = row(
    "WISE",
    &[optional("name", Kind::Text, "WISE"), required("apiKey", Kind::Text, ""), POLLING],
    &|_: &Values, _: &Tools| Ok(Arc::new(Configured("WISE"))),
);

pub(crate) const MODULR: Row = row(
    "MODULR",
    &[
        optional("name", Kind::Text, "MODULR"),
        required("apiKey", Kind::Text, ""),
        required("apiSecret", Kind::Text, ""),
        optional("endpoint", Kind::Text, "https://api-sandbox.modulrfinance.com"),
        POLLING,
        Parameter { shown: Shown::CatalogueOnly, ..optional("pageSize", Kind::Number, "100") },
    ],
    &|_: &Values, _: &Tools| Ok(Arc::new(Configured("MODULR"))),
);

pub(crate) const CURRENCY_CLOUD: Row = row(
    "CURRENCY-CLOUD",
    &[
        optional("name", Kind::Text, "CURRENCY-CLOUD"),
        required("loginID", Kind::Text, ""),
        required("apiKey", Kind::Text, ""),
        optional("endpoint", Kind::Text, "https://devapi.currencycloud.com"),
        POLLING,
    ],
    &|_: &Values, _: &Tools| Ok(Arc::new(Configured("CURRENCY-CLOUD"))),
);

pub(crate) const BANKING_CIRCLE: Row = row(
    "BANKING-CIRCLE",
    &[
        optional("name", Kind::Text, "BANKING-CIRCLE"),
        required("username", Kind::Text, ""),
        required("password", Kind::Text, ""),
        required("endpoint", Kind::Text, ""),
        required("authorizationEndpoint", Kind::Text, ""),
        required("userCertificate", Kind::LongText, ""),
        required("userCertificateKey", Kind::LongText, ""),
        POLLING,
    ],
    &|_: &Values, _: &Tools| Ok(Arc::new(Configured("BANKING-CIRCLE"))),
);

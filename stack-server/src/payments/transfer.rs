//! Transfers of the payments API of stack 1.10 between accounts of one connector.

use std::sync::Arc;

use ledger_core::{Balance, Timestamp};
use ledger_store::{Collection, DocumentKey, ReadError, Snapshot};

use crate::collections::TRANSFERS;
use crate::payments::codec::{Decoder, Encoder, date_key};
use crate::payments::enumerations::TransferStatus;
use crate::payments::ids::ConnectorId;
use crate::payments::record::{self, Record, ordered};
use crate::uuid::Uuid;

/// Index of transfers by installation and creation date.
const BY_DATE: u32 = 1;

/// A transfer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Transfer {
    pub(crate) id: Uuid,
    pub(crate) connector: ConnectorId,
    pub(crate) created_at: Timestamp,
    pub(crate) amount: Balance,
    pub(crate) asset: String,
    pub(crate) source: String,
    pub(crate) destination: String,
    pub(crate) status: TransferStatus,
    pub(crate) error: String,
    /// The provider's id of the transfer; empty until it is known.
    pub(crate) provider_id: String,
    /// True if the order may have been sent to the provider.
    pub(crate) is_sent: bool,
}

impl Record for Transfer {
    const COLLECTION: Collection = TRANSFERS;
    const NAME: &'static str = "a transfer";

    fn key(&self) -> Vec<u8> {
        [&self.connector.installation.bytes()[..], self.id.bytes()].concat()
    }

    fn keys(&self) -> Vec<DocumentKey> {
        let date = date_key(self.created_at);
        vec![ordered(BY_DATE, [&self.connector.installation.bytes()[..], &date].concat())]
    }

    fn encode(&self, out: &mut Encoder) {
        out.text(&self.connector.provider).time(self.created_at).number(&self.amount).text(&self.asset);
        out.text(&self.source).text(&self.destination).byte(self.status.number()).text(&self.error);
        out.text(&self.provider_id).byte(u8::from(self.is_sent));
    }

    fn decode(key: &[u8], input: &mut Decoder<'_>) -> Option<Self> {
        let provider: Arc<str> = input.text()?.into();
        let (installation, id) = key.split_first_chunk::<16>()?;
        Some(Self {
            id: Uuid::from_bytes(id.try_into().ok()?),
            connector: ConnectorId { provider, installation: Uuid::from_bytes(*installation) },
            created_at: input.time()?,
            amount: input.number()?,
            asset: input.string()?,
            source: input.string()?,
            destination: input.string()?,
            status: TransferStatus::of_number(input.byte()?)?,
            error: input.string()?,
            // Transfers that earlier releases stored lack the fields from here on.
            provider_id: if input.is_empty() { String::new() } else { input.string()? },
            // Without this field, assume that the order may have been sent.
            is_sent: input.is_empty() || input.byte()? != 0,
        })
    }
}

/// Returns all transfers of an installation, newest first.
pub(crate) fn all(snapshot: &Snapshot, installation: &Uuid) -> Result<Vec<Transfer>, ReadError> {
    let found = record::with_prefix::<Transfer>(snapshot, Some(BY_DATE), installation.bytes())?;
    Ok(found.into_iter().rev().map(|found| found.value).collect())
}

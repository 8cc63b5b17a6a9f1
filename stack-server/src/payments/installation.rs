//! The stored record of a connector installation, and its lookups.

use std::sync::Arc;

use ledger_core::Timestamp;
use ledger_store::{Collection, DocumentKey, ReadError, Snapshot};

use crate::collections::CONNECTORS;
use crate::payments::codec::{Decoder, Encoder, date_key};
use crate::payments::ids::ConnectorId;
use crate::payments::record::{self, Record, Versioned, ordered, unique};
use crate::uuid::Uuid;

/// Indexes of installations: by name, which is unique, and by date.
pub(crate) const BY_NAME: u32 = 1;
pub(crate) const BY_DATE: u32 = 2;

/// An installation of a connector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Installation {
    pub(crate) id: ConnectorId,
    pub(crate) name: String,
    pub(crate) created_at: Timestamp,
    /// The configuration as encrypted JSON.
    pub(crate) config: Vec<u8>,
    /// True if the installation is being removed with all of its records. Clients no longer see it.
    pub(crate) is_being_removed: bool,
}

impl Record for Installation {
    const COLLECTION: Collection = CONNECTORS;
    const NAME: &'static str = "an installation of a connector";

    fn key(&self) -> Vec<u8> {
        self.id.installation.bytes().to_vec()
    }

    fn keys(&self) -> Vec<DocumentKey> {
        let mut keys = vec![ordered(BY_DATE, date_key(self.created_at))];
        // An installation that is being removed no longer uses its name.
        if !self.is_being_removed {
            keys.push(unique(BY_NAME, self.name.as_bytes()));
        }
        keys
    }

    fn encode(&self, out: &mut Encoder) {
        out.text(&self.id.provider).text(&self.name).time(self.created_at).raw(&self.config);
        out.byte(u8::from(self.is_being_removed));
    }

    fn decode(key: &[u8], input: &mut Decoder<'_>) -> Option<Self> {
        let provider: Arc<str> = input.text()?.into();
        let installation = Uuid::from_bytes(key.try_into().ok()?);
        Some(Self {
            id: ConnectorId { provider, installation },
            name: input.string()?,
            created_at: input.time()?,
            config: input.raw()?.to_vec(),
            is_being_removed: input.byte()? != 0,
        })
    }
}

/// Returns the installation with this id, unless it is being removed.
pub(crate) fn find(
    snapshot: &Snapshot,
    id: &ConnectorId,
) -> Result<Option<Versioned<Installation>>, ReadError> {
    let found = record::find::<Installation>(snapshot, id.installation.bytes())?;
    Ok(found.filter(|found| found.value.id == *id && !found.value.is_being_removed))
}

/// Returns all installations, oldest first, including those that are being removed.
pub(crate) fn all_even_removing(snapshot: &Snapshot) -> Result<Vec<Installation>, ReadError> {
    let found = record::with_prefix::<Installation>(snapshot, Some(BY_DATE), &[])?;
    Ok(found.into_iter().map(|found| found.value).collect())
}

/// Returns the installations of a provider, oldest first, except those that are being removed.
pub(crate) fn of_provider(snapshot: &Snapshot, provider: &str) -> Result<Vec<Installation>, ReadError> {
    let mut found = all_even_removing(snapshot)?;
    found.retain(|found| !found.is_being_removed && *found.id.provider == *provider);
    Ok(found)
}

//! Estimates the memory of an item of a list, so that a page or a part can end before it is too large.

use ledger_core::{Amount, HoldingVolumes, LogEntry, LogPayload, Metadata, Transaction, Volumes};

use crate::query::{Account, LedgerInfo, LogView, SchemaView, TransactionView, VolumesRow};

/// An item whose memory can be estimated.
pub(super) trait Weight {
    /// Estimates its size in memory, in bytes.
    fn weight(&self) -> usize;
}

impl Weight for Metadata {
    fn weight(&self) -> usize {
        // Each pair has two texts and its place in the list.
        self.iter().count() * 64 + self.text_bytes()
    }
}

impl Weight for Amount {
    fn weight(&self) -> usize {
        // Small amounts need no memory of their own.
        if self.to_u64().is_some() { 0 } else { self.to_le_bytes().len() }
    }
}

impl Weight for Volumes {
    fn weight(&self) -> usize {
        size_of::<Self>() + self.input.weight() + self.output.weight()
    }
}

impl Weight for [HoldingVolumes] {
    fn weight(&self) -> usize {
        let texts = |held: &HoldingVolumes| held.account.as_str().len() + held.volumes.weight();
        self.iter().map(|held| size_of::<HoldingVolumes>() + texts(held)).sum()
    }
}

impl Weight for Transaction {
    fn weight(&self) -> usize {
        let postings = self.postings.iter().map(|posting| {
            let names = posting.source.as_str().len() + posting.destination.as_str().len();
            128 + names + posting.amount.weight()
        });
        let postings: usize = postings.sum();
        size_of::<Self>() + postings + self.metadata.weight() + self.post_commit_volumes.weight()
    }
}

impl Weight for TransactionView {
    fn weight(&self) -> usize {
        self.transaction.weight() + self.effective_volumes.as_deref().map_or(0, Weight::weight)
    }
}

impl Weight for LogView {
    fn weight(&self) -> usize {
        let payload = match &self.entry.payload {
            LogPayload::NewTransaction { transaction, account_metadata, effective_volumes } => {
                let accounts = account_metadata.iter();
                let accounts: usize =
                    accounts.map(|(address, set)| 64 + address.as_str().len() + set.weight()).sum();
                transaction.weight() + accounts + effective_volumes.as_deref().map_or(0, Weight::weight)
            }
            LogPayload::RevertedTransaction { transaction, effective_volumes, .. } => {
                transaction.weight() + effective_volumes.as_deref().map_or(0, Weight::weight)
            }
            LogPayload::SetMetadata { metadata, .. } => metadata.weight(),
            LogPayload::DeleteMetadata { key, .. } => key.len(),
            LogPayload::InsertedSchema { schema } => schema.len(),
        };
        size_of::<LogEntry>() + payload + self.reverted.as_deref().map_or(0, Weight::weight)
    }
}

impl Weight for Account {
    fn weight(&self) -> usize {
        let volumes = [&self.volumes, &self.effective_volumes].into_iter().flatten().flatten();
        let volumes: usize = volumes.map(|(_, volumes)| 32 + volumes.weight()).sum();
        size_of::<Self>() + self.address.as_str().len() + self.metadata.weight() + volumes
    }
}

impl Weight for LedgerInfo {
    fn weight(&self) -> usize {
        size_of::<Self>() + self.metadata.weight()
    }
}

impl Weight for SchemaView {
    fn weight(&self) -> usize {
        size_of::<Self>() + self.text.len()
    }
}

impl Weight for VolumesRow {
    fn weight(&self) -> usize {
        size_of::<Self>() + self.account.len() + self.volumes.weight()
    }
}

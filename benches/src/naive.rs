//! A naive ledger for comparison: every record is a row of a redb B-tree, as a competent developer would write it in
//! an hour.
//!
//! Each batch is one durable redb transaction. It inserts a row for each transaction, move and reference, and reads and
//! rewrites the row of each holding's volumes. It stores less than the real store: no log, no hash, no index of
//! metadata, no history by effective date.

use std::path::Path;

use ledger_core::{AccountAddress, Command, CreateTransaction, Movement, Overdraft, Posting, Timestamp};
use ledger_store::Request;
use redb::{
    Database, Durability, ReadableDatabase, ReadableTable, ReadableTableMetadata, Table, TableDefinition,
};

use crate::Failure;

const TRANSACTIONS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("transactions");
/// Input and output by account and transaction. Of several postings in a transaction, the last one counts.
const MOVES: TableDefinition<'_, (&str, u64), (u64, u64)> = TableDefinition::new("moves");
/// Input and output by account and asset.
const VOLUMES: TableDefinition<'_, (&str, &str), (u128, u128)> = TableDefinition::new("volumes");
const REFERENCES: TableDefinition<'_, &str, u64> = TableDefinition::new("references");

/// A ledger in one redb file.
#[derive(Debug)]
pub struct NaiveLedger {
    database: Database,
    /// The id of the next transaction.
    next: u64,
}

impl NaiveLedger {
    /// Creates a ledger in a new file with the default cache of redb.
    ///
    /// # Errors
    ///
    /// Fails if redb fails.
    pub fn create(path: &Path) -> Result<Self, Failure> {
        let database = Database::builder().create(path)?;
        let write = database.begin_write()?;
        write.open_table(TRANSACTIONS)?;
        write.open_table(MOVES)?;
        write.open_table(VOLUMES)?;
        write.open_table(REFERENCES)?;
        write.commit()?;
        Ok(Self { database, next: 1 })
    }

    /// Records all transactions or none. They are on disk when this returns.
    ///
    /// # Errors
    ///
    /// Fails if a balance does not suffice, a reference is in use, or redb fails.
    pub fn apply(&mut self, requests: &[Request], now: Timestamp) -> Result<(), Failure> {
        let mut write = self.database.begin_write()?;
        write.set_durability(Durability::Immediate)?;
        let mut next = self.next;
        {
            let mut transactions = write.open_table(TRANSACTIONS)?;
            let mut moves = write.open_table(MOVES)?;
            let mut volumes = write.open_table(VOLUMES)?;
            let mut references = write.open_table(REFERENCES)?;
            let mut bytes = Vec::new();
            for request in requests {
                let Command::CreateTransaction(create) = &request.command else {
                    return Err("only transactions are recorded here".into());
                };
                let Movement::Postings(postings) = &create.movement else {
                    return Err("only postings are recorded here".into());
                };
                for posting in postings {
                    move_amount(posting, &create.overdraft, next, &mut volumes, &mut moves)?;
                }
                if let Some(reference) = &create.reference
                    && references.insert(reference.as_str(), next)?.is_some()
                {
                    return Err(format!("the reference {reference} is taken").into());
                }
                bytes.clear();
                encode(create, postings, now, &mut bytes);
                transactions.insert(next, bytes.as_slice())?;
                next += 1;
            }
        }
        write.commit()?;
        self.next = next;
        Ok(())
    }

    /// Returns the number of transactions.
    ///
    /// # Errors
    ///
    /// Fails if redb fails.
    pub fn transactions(&self) -> Result<u64, Failure> {
        Ok(self.database.begin_read()?.open_table(TRANSACTIONS)?.len()?)
    }

    /// Returns the input and output of an account.
    ///
    /// # Errors
    ///
    /// Fails if redb fails.
    pub fn volumes(&self, account: &AccountAddress, asset: &str) -> Result<Option<(u128, u128)>, Failure> {
        let volumes = self.database.begin_read()?.open_table(VOLUMES)?;
        let found = volumes.get((account.as_str(), asset))?;
        Ok(found.map(|found| found.value()))
    }
}

/// Adds a posting to the volumes of its source and its destination, and records both moves.
fn move_amount(
    posting: &Posting,
    overdraft: &Overdraft,
    transaction: u64,
    volumes: &mut Table<'_, (&'static str, &'static str), (u128, u128)>,
    moves: &mut Table<'_, (&'static str, u64), (u64, u64)>,
) -> Result<(), Failure> {
    let amount = posting.amount.to_u64().ok_or("an amount beyond 64 bits")?;
    let (source, destination, asset) =
        (posting.source.as_str(), posting.destination.as_str(), posting.asset.as_str());
    let (input, output) = volumes.get((source, asset))?.map_or((0, 0), |found| found.value());
    let output = output + u128::from(amount);
    if output > input && !posting.source.is_world() && *overdraft == Overdraft::Refuse {
        return Err(format!("{source} has too little {asset}").into());
    }
    volumes.insert((source, asset), (input, output))?;
    let (input, output) = volumes.get((destination, asset))?.map_or((0, 0), |found| found.value());
    volumes.insert((destination, asset), (input + u128::from(amount), output))?;
    moves.insert((source, transaction), (0, amount))?;
    moves.insert((destination, transaction), (amount, 0))?;
    Ok(())
}

/// Encodes a transaction: both dates as numbers, everything else as text with a zero byte after each.
fn encode(create: &CreateTransaction, postings: &[Posting], now: Timestamp, out: &mut Vec<u8>) {
    out.extend_from_slice(&now.as_micros().to_le_bytes());
    out.extend_from_slice(&create.timestamp.unwrap_or(now).as_micros().to_le_bytes());
    let mut text = |text: &str| {
        out.extend_from_slice(text.as_bytes());
        out.push(0);
    };
    for posting in postings {
        text(posting.source.as_str());
        text(posting.destination.as_str());
        text(posting.asset.as_str());
        text(&posting.amount.to_string());
    }
    text(create.reference.as_ref().map_or("", |reference| reference.as_str()));
    for (key, value) in create.metadata.iter() {
        text(key);
        text(value.text());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{Content, FUNDING, Profile, Workload, address, asset};

    #[test]
    fn keeps_volumes_and_refuses_like_a_ledger() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut ledger = NaiveLedger::create(&directory.path().join("naive.redb")).expect("a new file");
        let profile = Profile { accounts: 5, content: Content::Rich, ..Profile::default() };
        let mut workload = Workload::new(profile, 1);
        let now = Timestamp::from_micros(1_700_000_000_000_000);
        let transfers = workload.batch(20, now);
        assert!(ledger.apply(&transfers, now).is_err(), "nobody has money");
        for batch in workload.funding(3) {
            ledger.apply(&batch, now).expect("world has no limit");
        }
        ledger.apply(&transfers, now).expect("all are funded");
        assert!(ledger.apply(&transfers, now).is_err(), "the references are taken");
        assert_eq!(ledger.transactions().expect("readable"), 25);
        let volumes = |number| {
            let found = ledger.volumes(&address(number), asset().as_str()).expect("readable");
            found.expect("it was funded")
        };
        let (input, output) =
            (0..5).map(volumes).fold((0, 0), |(a, b), (input, output)| (a + input, b + output));
        assert_eq!(input - output, 5 * u128::from(FUNDING));
        assert!(output > 0);
    }
}

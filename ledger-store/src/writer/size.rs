//! Checks the size of a command's entry.

use ledger_core::limits::{ADDRESS_BYTES_MAX, METADATA_BYTES_MAX};
use ledger_core::{AccountAddress, Amount, Command, KnownTransaction, Metadata, Movement, Posting, Volumes};
use ledger_journal::MAX_CHUNK_PAYLOAD_BYTES;

/// Maximum size of an entry in bytes: a chunk without its head and the head of the entry.
pub(super) const ENTRY_BYTES_MAX: usize = MAX_CHUNK_PAYLOAD_BYTES - 64 * 1_024;
/// Upper bound for the numbers of a posting or a holding, except amounts, in bytes.
const NUMBERS: usize = 64;

/// Returns whether a command's entry may exceed a chunk, using an upper bound of its size.
pub(super) fn is_too_large(
    command: &Command,
    original: Option<&KnownTransaction>,
    volumes: &[Volumes],
    defaults: &[(AccountAddress, Metadata)],
) -> bool {
    if is_surely_small(command, volumes) && defaults.is_empty() {
        return false;
    }
    let held = volumes.iter().map(|held| amount_bytes(&held.input) + amount_bytes(&held.output) + NUMBERS);
    let posted = |posting: &Posting| {
        let names = posting.source.as_str().len() + posting.destination.as_str().len();
        // The amount occurs in the posting, and may make the volumes at both ends as long as itself.
        names + posting.asset.as_str().len() + 3 * amount_bytes(&posting.amount) + NUMBERS
    };
    let of_account = |(account, metadata): (&AccountAddress, &Metadata)| {
        account.as_str().len() + metadata.text_bytes() + metadata.len() * NUMBERS + NUMBERS
    };
    let defaults = defaults.iter().map(|(account, metadata)| of_account((account, metadata)));
    let bytes = match command {
        Command::CreateTransaction(create) => {
            let postings: usize = match &create.movement {
                Movement::Postings(postings) => postings.iter().map(posted).sum(),
                Movement::Script(_) | Movement::Template { .. } => 0,
            };
            let metadata = create.account_metadata.iter().map(of_account);
            postings
                + metadata.sum::<usize>()
                + create.metadata.text_bytes()
                + create.metadata.len() * NUMBERS
        }
        Command::RevertTransaction(_) => {
            original.iter().flat_map(|original| &original.postings).map(posted).sum()
        }
        // The sizes of these have limits of their own.
        Command::SetMetadata { .. } | Command::DeleteMetadata { .. } | Command::InsertSchema(_) => 0,
    };
    bytes + held.sum::<usize>() + defaults.sum::<usize>() > ENTRY_BYTES_MAX
}

/// Returns whether a command is so small that the lengths of its names need not be added up, as nearly all are.
fn is_surely_small(command: &Command, volumes: &[Volumes]) -> bool {
    let Command::CreateTransaction(create) = command else { return false };
    let Movement::Postings(postings) = &create.movement else { return false };
    let is_short = |volumes: &Volumes| volumes.input.to_u64().is_some() && volumes.output.to_u64().is_some();
    postings.len() <= 8
        && create.account_metadata.is_empty()
        && create.metadata.len() <= 64
        && create.metadata.text_bytes() <= METADATA_BYTES_MAX
        && postings.iter().all(|posting| posting.amount.to_u64().is_some())
        && volumes.iter().all(is_short)
}

/// Proves that such entries fit, even with names of maximum length.
const _: () = assert!(
    8 * (3 * ADDRESS_BYTES_MAX + 16 * NUMBERS) + METADATA_BYTES_MAX + 64 * NUMBERS <= ENTRY_BYTES_MAX
);

fn amount_bytes(amount: &Amount) -> usize {
    // 19 digits take 10 bytes; larger amounts are rare enough to be measured.
    if amount.to_u64().is_some() { 10 } else { amount.to_le_bytes().len() * 8 / 7 + 1 }
}

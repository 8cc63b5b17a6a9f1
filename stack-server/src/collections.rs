//! The collections of documents that this server keeps in its store. The numbers are stored: none may ever get another
//! meaning.

use ledger_store::Collection;

const fn collection(number: u32) -> Collection {
    match Collection::new(number) {
        Some(collection) => collection,
        None => panic!("the number is the store's own"),
    }
}

/// How far publishers of events have come, by the publisher's name.
pub(crate) const PUBLISHERS: Collection = collection(32);

/// Exporters by id.
pub(crate) const EXPORTERS: Collection = collection(33);

/// Pipelines by id.
pub(crate) const PIPELINES: Collection = collection(34);

/// How far pipelines have come, by id and run.
pub(crate) const PIPELINE_POSITIONS: Collection = collection(35);

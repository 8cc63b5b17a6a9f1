//! The document model: a plain map of the documents that a store must have. Campaigns apply the same changes to the
//! store and the model, and compare the two.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use ledger_store::testing::document_version;
use ledger_store::{
    Collection, Direction, Document, DocumentAction, DocumentChange, DocumentKey, DocumentRange,
    DocumentRejection, DocumentVersion, Expected, ReadError, Snapshot,
};

use crate::Rng;
use crate::failure::Failure;

/// A random change of a document. It names the state that the caller expects of the document relative to the current
/// version, which is known only when the change is made.
#[derive(Clone, Debug)]
pub struct DocumentStep {
    collection: Collection,
    key: Vec<u8>,
    expected: ExpectedState,
    action: DocumentAction,
}

/// The state in which the caller expects a document. Otherwise the change is refused.
#[derive(Clone, Copy, Debug)]
enum ExpectedState {
    /// The caller accepts any state.
    Any,
    /// The caller expects that the document does not exist.
    Absent,
    /// The caller expects the current state: the version of the document, or that it does not exist.
    Current,
    /// The caller names a version that is not the current one.
    Outdated,
}

const COLLECTIONS: [u32; 2] = [20, 300];
/// Index in which each key belongs to one document.
const UNIQUE_INDEX: u32 = 0;
/// Index in which documents can share a key.
const SHARED_INDEX: u32 = 7;

fn collection(number: u32) -> Collection {
    Collection::new(number).expect("the numbers of collections here are in the allowed range")
}

/// Returns a random change.
pub(crate) fn draft(rng: &mut Rng<'_>) -> DocumentStep {
    let key = vec![rng.below(4) as u8; rng.below(4) as usize];
    let expected = match rng.below(6) {
        0 => ExpectedState::Absent,
        1 => ExpectedState::Outdated,
        2 => ExpectedState::Any,
        _ => ExpectedState::Current,
    };
    let action = if rng.one_in(4) {
        DocumentAction::Delete
    } else {
        let mut keys = Vec::new();
        if rng.one_in(2) {
            keys.push(DocumentKey { index: UNIQUE_INDEX, key: vec![rng.below(9) as u8], unique: true });
        }
        for round in 0..rng.below(3) as u8 {
            let key = vec![round * 4 + rng.below(4) as u8; 1 + rng.below(2) as usize];
            keys.push(DocumentKey { index: SHARED_INDEX, key, unique: false });
        }
        let length = if rng.one_in(8) { 3_000 } else { rng.below(40) };
        DocumentAction::Put { value: vec![rng.below(200) as u8; length as usize], keys }
    };
    DocumentStep { collection: collection(rng.pick(&COLLECTIONS)), key, expected, action }
}

#[derive(Clone, Debug)]
struct ModelDocument {
    value: Vec<u8>,
    keys: Vec<DocumentKey>,
    version: u64,
}

/// The document model: the documents that a store must have.
#[derive(Clone, Debug, Default)]
pub(crate) struct DocumentModel {
    kept: BTreeMap<(Collection, Vec<u8>), ModelDocument>,
}

impl DocumentModel {
    /// Converts steps to changes for the store. The expected state of each becomes a version.
    pub(crate) fn to_changes(&self, steps: &[DocumentStep]) -> Vec<DocumentChange> {
        let change = |step: &DocumentStep| {
            let current = self.kept.get(&(step.collection, step.key.clone())).map(|kept| kept.version);
            let expected = match (step.expected, current) {
                (ExpectedState::Any, _) => Expected::Anything,
                (ExpectedState::Absent, _) | (ExpectedState::Current, None) => Expected::Absent,
                (ExpectedState::Current, Some(version)) => Expected::Version(document_version(version)),
                (ExpectedState::Outdated, current) => {
                    Expected::Version(document_version(current.map_or(1, |version| version - 1)))
                }
            };
            let DocumentStep { collection, key, action, .. } = step.clone();
            DocumentChange { collection, key, expected, action }
        };
        steps.iter().map(change).collect()
    }

    /// Applies all changes or none. The first change gets the version `first`, and each later one the next number.
    pub(crate) fn apply(
        &mut self,
        changes: &[DocumentChange],
        first: u64,
    ) -> Result<Vec<DocumentVersion>, DocumentRejection> {
        let mut changed = BTreeSet::new();
        for (at, change) in changes.iter().enumerate() {
            let document = (change.collection, change.key.clone());
            let found = self.kept.get(&document).map(|kept| document_version(kept.version));
            if !changed.insert(document) {
                return Err(DocumentRejection::Repeated { change: at });
            }
            let is_as_expected = match change.expected {
                Expected::Anything => true,
                Expected::Absent => found.is_none(),
                Expected::Version(version) => found == Some(version),
            };
            if !is_as_expected {
                return Err(DocumentRejection::Changed { change: at, expected: change.expected, found });
            }
        }
        let mut after = self.clone();
        for document in &changed {
            after.kept.remove(document);
        }
        for (at, change) in changes.iter().enumerate() {
            let DocumentAction::Put { value, keys } = &change.action else { continue };
            for key in keys.iter().filter(|key| key.unique) {
                let has = |kept: &ModelDocument| {
                    kept.keys.iter().any(|other| other.index == key.index && other.key == key.key)
                };
                let mut others = after.kept.iter();
                if others.any(|((collection, _), kept)| *collection == change.collection && has(kept)) {
                    return Err(DocumentRejection::KeyTaken { change: at, index: key.index });
                }
            }
            let kept = ModelDocument { value: value.clone(), keys: keys.clone(), version: first + at as u64 };
            after.kept.insert((change.collection, change.key.clone()), kept);
        }
        *self = after;
        Ok((0..changes.len() as u64).map(|at| document_version(first + at)).collect())
    }

    /// Returns all documents of a collection, ascending by key.
    fn documents(&self, of: Collection) -> Vec<Document> {
        let documents = self.kept.iter().filter(|((collection, _), _)| *collection == of);
        documents
            .map(|((_, key), kept)| Document {
                key: key.clone(),
                value: kept.value.clone(),
                keys: kept.keys.clone(),
                version: document_version(kept.version),
            })
            .collect()
    }

    /// Compares the store with the model: some keys, and for each order the documents in pages of a random size.
    ///
    /// # Errors
    ///
    /// Fails if they differ. The error names the difference.
    pub(crate) fn compare(&self, snapshot: &Snapshot, rng: &mut Rng<'_>) -> Result<(), Failure> {
        for number in COLLECTIONS {
            let of = collection(number);
            let all = self.documents(of);
            for key in [vec![], vec![1], vec![2, 2], vec![9]] {
                let expected = all.iter().find(|document| document.key == key).cloned();
                let found = snapshot.document(of, &key);
                if found != Ok(expected.clone()) {
                    return Err(format!("document {number} {key:?}: {found:?}, expected {expected:?}").into());
                }
            }
            let direction = rng.pick(&[Direction::Ascending, Direction::Descending]);
            let limit = 1 + rng.below(5) as usize;
            let range = DocumentRange { direction, limit, ..DocumentRange::default() };
            let mut expected: Vec<_> = all.iter().map(|document| (Vec::new(), document.clone())).collect();
            reverse_if_descending(&mut expected, direction);
            compare_pages(number, None, &expected, range.clone(), |range| snapshot.documents(of, range))?;
            for index in [UNIQUE_INDEX, SHARED_INDEX] {
                let mut expected = Vec::new();
                let from = vec![rng.below(8) as u8];
                for document in &all {
                    for key in document.keys.iter().filter(|key| key.index == index && key.key > from) {
                        expected.push((key.key.clone(), document.clone()));
                    }
                }
                expected.sort_by(|a, b| (&a.0, &a.1.key).cmp(&(&b.0, &b.1.key)));
                reverse_if_descending(&mut expected, direction);
                let range = DocumentRange { from: Bound::Excluded(from), ..range.clone() };
                let fetch = |range: &DocumentRange| snapshot.documents_by(of, index, range);
                compare_pages(number, Some(index), &expected, range, fetch)?;
            }
        }
        Ok(())
    }
}

fn reverse_if_descending<T>(all: &mut [T], direction: Direction) {
    if direction == Direction::Descending {
        all.reverse();
    }
}

/// Reads pages up to the end, each after the last document of the previous page. Each page must equal the next part of
/// `expected`. Its items are pairs of a secondary key, which is empty in the order of the primary keys, and a document.
fn compare_pages(
    collection: u32,
    index: Option<u32>,
    expected: &[(Vec<u8>, Document)],
    mut range: DocumentRange,
    fetch: impl Fn(&DocumentRange) -> Result<Vec<Document>, ReadError>,
) -> Result<(), Failure> {
    let what = format!("documents of {collection} by {index:?}");
    let mut parts = expected.chunks(range.limit);
    loop {
        let part = parts.next().unwrap_or_default();
        let page = fetch(&range).map_err(|error| Failure::from(error).during(what.as_str()))?;
        if !page.iter().eq(part.iter().map(|(_, document)| document)) {
            return Err(format!("{what}, {range:?}: {page:?}, expected {part:?}").into());
        }
        let Some((secondary, last)) = part.last() else { return Ok(()) };
        range.beyond = Some((secondary.clone(), last.key.clone()));
    }
}

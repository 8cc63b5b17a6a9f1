//! Documents as nothing but a map, by which those of a store are judged.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use super::Dice;
use crate::documents::{
    Collection, Document, DocumentAction, DocumentChange, DocumentKey, DocumentRange, DocumentRejection,
    DocumentVersion, Expected,
};
use crate::error::ReadError;
use crate::query::Direction;
use crate::read::Snapshot;

/// A change of a document, without knowing how it stands.
#[derive(Clone, Debug)]
pub struct DocumentStep {
    collection: Collection,
    key: Vec<u8>,
    seen: Seen,
    action: DocumentAction,
}

/// How whoever changes a document says that it stands.
#[derive(Clone, Copy, Debug)]
enum Seen {
    /// It says nothing.
    Unsaid,
    /// It says that there is none.
    Absent,
    /// It says what is so.
    Rightly,
    /// It says what was so, or never.
    Wrongly,
}

const COLLECTIONS: [u32; 2] = [20, 300];
/// Keys in this index are given to one document only.
const UNIQUE: u32 = 0;
/// Keys in this index are shared.
const SHARED: u32 = 7;

fn collection(number: u32) -> Collection {
    Collection::new(number).expect("it is not the store's own")
}

/// A random change.
pub(super) fn draft(dice: &mut Dice<'_>) -> DocumentStep {
    let key = vec![dice.below(4) as u8; dice.below(4) as usize];
    let seen = match dice.below(6) {
        0 => Seen::Absent,
        1 => Seen::Wrongly,
        2 => Seen::Unsaid,
        _ => Seen::Rightly,
    };
    let action = if dice.one_in(4) {
        DocumentAction::Delete
    } else {
        let mut keys = Vec::new();
        if dice.one_in(2) {
            keys.push(DocumentKey { index: UNIQUE, key: vec![dice.below(9) as u8], unique: true });
        }
        for time in 0..dice.below(3) as u8 {
            let key = vec![time * 4 + dice.below(4) as u8; 1 + dice.below(2) as usize];
            keys.push(DocumentKey { index: SHARED, key, unique: false });
        }
        let length = if dice.one_in(8) { 3_000 } else { dice.below(40) };
        DocumentAction::Put { value: vec![dice.below(200) as u8; length as usize], keys }
    };
    DocumentStep { collection: collection(dice.pick(&COLLECTIONS)), key, seen, action }
}

#[derive(Clone, Debug)]
struct Kept {
    value: Vec<u8>,
    keys: Vec<DocumentKey>,
    version: u64,
}

/// The documents.
#[derive(Clone, Debug, Default)]
pub(super) struct Shelf {
    kept: BTreeMap<(Collection, Vec<u8>), Kept>,
}

impl Shelf {
    /// The changes as a caller would ask for them who has seen what is here.
    pub(super) fn changes(&self, steps: &[DocumentStep]) -> Vec<DocumentChange> {
        let change = |step: &DocumentStep| {
            let standing = self.kept.get(&(step.collection, step.key.clone())).map(|kept| kept.version);
            let expected = match (step.seen, standing) {
                (Seen::Unsaid, _) => Expected::Anything,
                (Seen::Absent, _) | (Seen::Rightly, None) => Expected::Absent,
                (Seen::Rightly, Some(version)) => Expected::Version(DocumentVersion(version)),
                (Seen::Wrongly, standing) => {
                    Expected::Version(DocumentVersion(standing.map_or(1, |version| version - 1)))
                }
            };
            let DocumentStep { collection, key, action, .. } = step.clone();
            DocumentChange { collection, key, expected, action }
        };
        steps.iter().map(change).collect()
    }

    /// Makes all changes or none; the first gets the version `first`.
    pub(super) fn change(
        &mut self,
        changes: &[DocumentChange],
        first: u64,
    ) -> Result<Vec<DocumentVersion>, DocumentRejection> {
        let mut changed = BTreeSet::new();
        for (at, change) in changes.iter().enumerate() {
            let place = (change.collection, change.key.clone());
            let found = self.kept.get(&place).map(|kept| DocumentVersion(kept.version));
            if !changed.insert(place) {
                return Err(DocumentRejection::Repeated { change: at });
            }
            let stands = match change.expected {
                Expected::Anything => true,
                Expected::Absent => found.is_none(),
                Expected::Version(version) => found == Some(version),
            };
            if !stands {
                return Err(DocumentRejection::Changed { change: at, found });
            }
        }
        let mut after = self.clone();
        for place in &changed {
            after.kept.remove(place);
        }
        for (at, change) in changes.iter().enumerate() {
            let DocumentAction::Put { value, keys } = &change.action else { continue };
            for key in keys.iter().filter(|key| key.unique) {
                let has = |kept: &Kept| {
                    kept.keys.iter().any(|other| other.index == key.index && other.key == key.key)
                };
                let mut others = after.kept.iter();
                if others.any(|((collection, _), kept)| *collection == change.collection && has(kept)) {
                    return Err(DocumentRejection::KeyTaken { change: at, index: key.index });
                }
            }
            let kept = Kept { value: value.clone(), keys: keys.clone(), version: first + at as u64 };
            after.kept.insert((change.collection, change.key.clone()), kept);
        }
        *self = after;
        Ok((0..changes.len() as u64).map(|at| DocumentVersion(first + at)).collect())
    }

    fn documents(&self, of: Collection) -> Vec<Document> {
        let documents = self.kept.iter().filter(|((collection, _), _)| *collection == of);
        documents
            .map(|((_, key), kept)| Document {
                key: key.clone(),
                value: kept.value.clone(),
                keys: kept.keys.clone(),
                version: DocumentVersion(kept.version),
            })
            .collect()
    }

    /// Asks for every document by its key, and for all in every order, in pages.
    ///
    /// # Errors
    ///
    /// What differs.
    pub(super) fn compare(&self, snapshot: &Snapshot, dice: &mut Dice<'_>) -> Result<(), String> {
        for number in COLLECTIONS {
            let of = collection(number);
            let all = self.documents(of);
            for key in [vec![], vec![1], vec![2, 2], vec![9]] {
                let expected = all.iter().find(|document| document.key == key).cloned();
                let found = snapshot.document(of, &key);
                if found != Ok(expected.clone()) {
                    return Err(format!("document {number} {key:?}: {found:?}, expected {expected:?}"));
                }
            }
            let way = dice.pick(&[Direction::Ascending, Direction::Descending]);
            let limit = 1 + dice.below(5) as usize;
            let range = DocumentRange { direction: way, limit, ..DocumentRange::default() };
            let mut expected: Vec<_> = all.iter().map(|document| (Vec::new(), document.clone())).collect();
            turn(&mut expected, way);
            compare_pages((number, None), &expected, range.clone(), |range| snapshot.documents(of, range))?;
            for index in [UNIQUE, SHARED] {
                let mut expected = Vec::new();
                let from = vec![dice.below(8) as u8];
                for document in &all {
                    for key in document.keys.iter().filter(|key| key.index == index && key.key > from) {
                        expected.push((key.key.clone(), document.clone()));
                    }
                }
                expected.sort_by(|a, b| (&a.0, &a.1.key).cmp(&(&b.0, &b.1.key)));
                turn(&mut expected, way);
                let range = DocumentRange { from: Bound::Excluded(from), ..range.clone() };
                let fetch = |range: &DocumentRange| snapshot.documents_by(of, index, range);
                compare_pages((number, Some(index)), &expected, range, fetch)?;
            }
        }
        Ok(())
    }
}

fn turn<T>(all: &mut [T], way: Direction) {
    if way == Direction::Descending {
        all.reverse();
    }
}

/// Fetches pages to the end; each must be the next part of `expected`, whose keys are those it is ordered by.
fn compare_pages(
    what: (u32, Option<u32>),
    expected: &[(Vec<u8>, Document)],
    mut range: DocumentRange,
    fetch: impl Fn(&DocumentRange) -> Result<Vec<Document>, ReadError>,
) -> Result<(), String> {
    let mut parts = expected.chunks(range.limit);
    loop {
        let part = parts.next().unwrap_or_default();
        let page = fetch(&range).map_err(|error| format!("documents {what:?}: {error}"))?;
        if !page.iter().eq(part.iter().map(|(_, document)| document)) {
            return Err(format!("documents {what:?} {range:?}: {page:?}, expected {part:?}"));
        }
        let Some((further, last)) = part.last() else { return Ok(()) };
        range.beyond = Some((further.clone(), last.key.clone()));
    }
}

//! Plain tables, commits and reopening.

use std::collections::BTreeMap;
use std::ops::Bound;

use crate::error::IndexError;
use crate::file::Commit;
use crate::rows::tests::Rng;
use crate::tables;

use super::disk::Disk;

const PAGES: &str = tables::ACCOUNTS;

#[test]
fn values_are_read_in_order_from_both_ends() {
    let file = Disk::default().create();
    let before = file.snapshot().unwrap();
    let write = file.begin_write(Commit::Visible).unwrap();
    let mut table = write.table(PAGES).unwrap();
    for number in [3_u8, 1, 2, 9] {
        table.put(&[number], &vec![number; usize::from(number) * 1000]).unwrap();
    }
    assert!(table.delete(&[2]).unwrap());
    assert!(!table.delete(&[2]).unwrap());
    table.put(&[1], b"").unwrap();
    assert_eq!(table.get(&[1]).unwrap().as_deref(), Some(b"".as_slice()));
    assert_eq!(table.range(Bound::Unbounded, Bound::Excluded(&[9])).unwrap().count(), 2);
    drop(table);
    write.commit().unwrap();
    let after = file.snapshot().unwrap();
    assert_eq!(before.get(PAGES, &[3]).unwrap(), None);
    assert_eq!(before.range(PAGES, Bound::Unbounded, Bound::Unbounded).unwrap().count(), 0);
    assert_eq!(after.get(PAGES, &[9]).unwrap(), Some(vec![9; 9000]));
    assert_eq!(after.get(PAGES, &[2]).unwrap(), None);
    let range = after.range(PAGES, Bound::Excluded(&[1]), Bound::Unbounded).unwrap();
    let keys: Vec<_> = range.rev().map(|entry| entry.unwrap().0).collect();
    assert_eq!(keys, [[9], [3]]);
}

#[test]
fn ascending_keys_are_put_wherever_others_stand() {
    let mut rng = Rng::new(1);
    let file = Disk::default().create();
    let mut model = BTreeMap::new();
    for round in 0..40_u8 {
        // Write dense and distant ranges, new and existing keys, and values of other lengths.
        let step = [1, 3, 1000][usize::from(round) % 3];
        let mut number = rng.below(20_000);
        let entries: BTreeMap<Vec<u8>, Vec<u8>> = (0..rng.below(600))
            .map(|_| {
                number += 1 + rng.below(step);
                (number.to_be_bytes()[4..].to_vec(), vec![round; rng.below(60) as usize])
            })
            .collect();
        let write = file.begin_write(Commit::Visible).unwrap();
        let ascending = entries.iter().map(|(key, value)| (key.as_slice(), value.as_slice()));
        write.table(PAGES).unwrap().put_ascending(ascending).unwrap();
        write.commit().unwrap();
        model.extend(entries);
        let snapshot = file.snapshot().unwrap();
        let range = snapshot.range(PAGES, Bound::Unbounded, Bound::Unbounded).unwrap();
        assert!(range.map(|entry| entry.unwrap()).eq(model.clone()), "round {round}");
    }
}

#[test]
fn a_dropped_transaction_leaves_no_trace() {
    let file = Disk::default().create();
    let write = file.begin_write(Commit::Durable).unwrap();
    write.table(PAGES).unwrap().put(b"key", b"value").unwrap();
    drop(write);
    assert_eq!(file.snapshot().unwrap().get(PAGES, b"key").unwrap(), None);
}

#[test]
fn a_crash_undoes_what_was_only_visible() {
    let disk = Disk::default();
    let file = disk.create();
    for (commit, value) in [(Commit::Durable, b"1"), (Commit::Visible, b"2")] {
        let write = file.begin_write(commit).unwrap();
        write.table(PAGES).unwrap().put(b"key", value).unwrap();
        write.commit().unwrap();
    }
    assert_eq!(file.snapshot().unwrap().get(PAGES, b"key").unwrap(), Some(b"2".to_vec()));
    let crashed = disk.copy().open().unwrap();
    assert_eq!(crashed.snapshot().unwrap().get(PAGES, b"key").unwrap(), Some(b"1".to_vec()));
}

#[test]
fn a_file_is_created_only_where_none_is() {
    let disk = Disk::default();
    assert!(matches!(disk.open(), Err(IndexError::Damaged { .. })));
    assert_eq!(disk.length(), 0, "opening does not create");
    drop(disk.create());
    let options = crate::file::IndexOptions { cache_bytes: 1 << 20, filter_bytes: 1 << 20 };
    let again = crate::file::IndexFile::create(disk.clone(), options);
    assert!(matches!(again, Err(IndexError::Damaged { .. })));
    disk.open().unwrap();
}

//! Tests that plant defects: a verification finds each of them, and nothing else.

mod samples;

use std::sync::Arc;

use ledger_core::Timestamp;
use ledger_index::{Commit, tables};
use ledger_journal::entry::{Event, IdempotencyRecord, LogRecord, NameRef, TargetRecord, ValueRef};
use ledger_journal::{ChainHash, Chunk, Head, JournalError, JournalReader, Position};
use smallvec::smallvec;

use self::samples::{
    DAY, USD, edit, expect, holding, index, journal_of, known, log, moves, new, planted_in_journal,
    planted_in_rows, planted_in_table, projected, remove, sound, transaction, verify, volumes,
};
use crate::flush;
use crate::projection::{CurrentHolding, HoldingPage, StoredHolding};
use crate::quantity::quantity_of;
use crate::store::VerifyReport;
use crate::violation::ViolationCode;

#[test]
fn a_sound_store_is_clean() {
    let journal = journal_of(&sound());
    let (memtable, heads, watermark) = projected(&journal);
    let live = index();
    flush::write(&live, &[Arc::new(memtable)], &heads, &[], watermark).unwrap();
    let report = verify(&journal, &live);
    assert!(report.is_clean(), "{:#?}", report.violations);
    assert_eq!((report.entries, report.ledgers), (7, 1));
    assert_eq!(report.head, journal.head().chain.to_string());
    // An index without a watermark holds nothing that could be wrong.
    assert!(verify(&journal, &index()).is_clean());
}

#[test]
fn every_table_is_compared() {
    for table in tables::PLAIN {
        let journal = journal_of(&sound());
        let (memtable, heads, watermark) = projected(&journal);
        let live = index();
        flush::write(&live, &[Arc::new(memtable)], &heads, &[], watermark).unwrap();
        let write = live.begin_write(Commit::Durable).unwrap();
        let mut plain = write.table(table).unwrap();
        match table {
            tables::ABOUT => plain.put(b"ledgers", &[0, 0, 0, 7]).unwrap(),
            _ => plain.put(&[0, 0, 0, 9, 0, 0, 0, 1, 0, 0, 0, 1], b"new").unwrap(),
        }
        drop(plain);
        write.commit().unwrap();
        assert!(!verify(&journal, &live).is_clean(), "table {table} needs its comparison");
    }
}

#[test]
fn wrong_volumes_are_found() {
    planted_in_journal(ViolationCode::VolumeMismatch, |logs| {
        // Input and output are too large by the same amount, and later entries continue from there.
        logs.truncate(3);
        let third = transaction(&mut logs[2]);
        third.holdings[0].after = volumes(0, 106);
        third.holdings[1].after = volumes(46, 0);
    });
    planted_in_journal(ViolationCode::Unbalanced, |logs| {
        logs.truncate(2);
        let exchange = moves(
            3,
            3,
            [
                holding(0, false, known(0), USD, volumes(0, 105)),
                holding(3, true, known(2), NameRef::New(1, "EUR"), volumes(5, 0)),
            ],
            5,
        );
        logs.push(log(3, Event::Transaction(exchange)));
    });
    planted_in_rows(ViolationCode::VolumeMismatch, |memtable| {
        edit(&mut memtable.history, 0, |row| row.input = ledger_index::Quantity::from(1_u64));
    });
    planted_in_table(ViolationCode::VolumeMismatch, tables::HOLDINGS, &[0, 0, 0, 1, 0, 0, 0, 0], |page| {
        page.map(|page| {
            holdings_edited(&page, |place, holding| {
                if place < 2 {
                    let input = holding.volumes.input.to_u64().unwrap();
                    holding.volumes.input = (input ^ 1).into();
                }
                true
            })
        })
    });
    planted_in_rows(ViolationCode::EffectiveVolumeMismatch, |memtable| {
        edit(&mut memtable.backdated, 0, |row| row.input = ledger_index::Quantity::from(9_u64));
    });
}

#[test]
fn finds_duplicates_of_unique_keys() {
    planted_in_journal(ViolationCode::ReferenceDuplicate, |logs| {
        transaction(&mut logs[2]).reference = Some("first");
    });
    planted_in_journal(ViolationCode::IdempotencyDuplicate, |logs| {
        logs[2].idempotency = Some(IdempotencyRecord { key: "one", hash: "z" });
    });
    planted_in_journal(ViolationCode::AccountMismatch, |logs| {
        let target = TargetRecord::Account(new(3, "a"));
        let metadata = smallvec![(NameRef::Known(0), ValueRef::Text("twin"))];
        logs.push(log(7, Event::SetMetadata { target, defaults: smallvec::SmallVec::new(), metadata }));
    });
}

#[test]
fn wrong_reverts_are_found() {
    let revert = |reverts: u64| {
        move |logs: &mut Vec<LogRecord<'static>>| {
            let mut again = moves(
                6,
                7,
                [
                    holding(2, false, known(2), USD, volumes(45, 6)),
                    holding(0, false, known(0), USD, volumes(6, 106)),
                ],
                1,
            );
            again.reverts = Some(reverts);
            logs.push(log(7, Event::Transaction(again)));
        }
    };
    planted_in_journal(ViolationCode::RevertRule, revert(3));
    planted_in_journal(ViolationCode::RevertRule, revert(6));
    planted_in_journal(ViolationCode::RevertRule, revert(99));
}

#[test]
fn wrong_order_is_found() {
    planted_in_journal(ViolationCode::SequenceGap, |logs| logs[3].log = 3);
    planted_in_journal(ViolationCode::SequenceGap, |logs| logs[3].log = 0);
    planted_in_journal(ViolationCode::DateOrder, |logs| {
        logs[4].date = Timestamp::from_micros(DAY);
    });
}

#[test]
fn entries_that_make_no_sense_are_found() {
    planted_in_journal(ViolationCode::FileFormat, |logs| {
        transaction(&mut logs[2]).holdings[1].account = known(77);
    });
    planted_in_journal(ViolationCode::FileFormat, |logs| transaction(&mut logs[2]).id = 2);
    planted_in_journal(ViolationCode::FileFormat, |logs| transaction(&mut logs[2]).holdings[0].holding = 1);
    planted_in_journal(ViolationCode::FileFormat, |logs| logs[2].ledger = 2);
    planted_in_journal(ViolationCode::MetadataMismatch, |logs| {
        let metadata = smallvec![(NameRef::Known(0), ValueRef::Text("nobody's"))];
        logs.push(log(
            7,
            Event::SetMetadata {
                target: TargetRecord::Transaction(99),
                defaults: smallvec::SmallVec::new(),
                metadata,
            },
        ));
    });
}

#[test]
fn finds_missing_and_extra_rows() {
    planted_in_rows(ViolationCode::IndexMissing, |memtable| remove(&mut memtable.history, 0));
    planted_in_rows(ViolationCode::IndexMissing, |memtable| remove(&mut memtable.backdated, 0));
    planted_in_rows(ViolationCode::IndexMissing, |memtable| remove(&mut memtable.keys, 0));
    planted_in_rows(ViolationCode::IndexMissing, |memtable| remove(&mut memtable.terms, 0));
    planted_in_rows(ViolationCode::IndexMissing, |memtable| remove(&mut memtable.logs, 0));
    planted_in_rows(ViolationCode::IndexMissing, |memtable| remove(&mut memtable.transactions, 0));
    planted_in_rows(ViolationCode::IndexMissing, |memtable| remove(&mut memtable.effective, 0));
    planted_in_rows(ViolationCode::IndexExtra, |memtable| {
        let mut rows = memtable.effective.to_vec();
        let mut extra = rows[0].clone();
        extra.transaction += 1;
        rows.push(extra);
        memtable.effective = rows.into();
    });
    planted_in_table(ViolationCode::IndexMissing, tables::ADDRESSES, b"\0\0\0\x01a", |_| None);
    planted_in_table(ViolationCode::IndexExtra, tables::ADDRESSES, b"\0\0\0\x01z", |_| {
        Some(vec![0, 0, 0, 9])
    });
    planted_in_table(ViolationCode::IndexMissing, tables::HOLDINGS, &[0, 0, 0, 1, 0, 0, 0, 0], |page| {
        // Removes the second of three holdings.
        page.map(|page| holdings_edited(&page, |place, _| place != 1))
    });
}

/// Returns a page of holdings after `edit`, without those for which `edit` returns `false`.
fn holdings_edited(page: &[u8], mut edit: impl FnMut(u32, &mut StoredHolding) -> bool) -> Vec<u8> {
    let mut edited = HoldingPage::empty();
    for (place, mut holding) in HoldingPage::all(page).unwrap() {
        if edit(place, &mut holding) {
            let current = CurrentHolding {
                account: holding.account,
                asset: holding.asset,
                transaction_count: holding.transaction_count,
                input: &quantity_of(&holding.volumes.input),
                output: &quantity_of(&holding.volumes.output),
                backdated: holding.backdated.as_deref(),
            };
            edited.put(place, current);
        }
    }
    edited.encode()
}

#[test]
fn finds_rows_that_differ_from_the_journal() {
    planted_in_rows(ViolationCode::TransactionMismatch, |memtable| {
        edit(&mut memtable.transactions, 0, |row| row.timestamp += 1);
    });
    planted_in_rows(ViolationCode::TransactionMismatch, |memtable| {
        edit(&mut memtable.logs, 0, |row| row.position += 1);
    });
    planted_in_rows(ViolationCode::MetadataMismatch, |memtable| {
        let last = memtable.versions.len() - 1;
        edit(&mut memtable.versions, last, |row| row.bytes[3] ^= 1);
    });
    planted_in_table(ViolationCode::AccountMismatch, tables::ACCOUNTS, &[0, 0, 0, 1, 0, 0, 0, 0], |page| {
        page.map(|mut page| {
            page[8] ^= 1;
            page
        })
    });
    planted_in_table(ViolationCode::AccountMismatch, tables::USAGES, &[0, 0, 0, 1, 0, 0, 0, 0], |page| {
        page.map(|mut page| {
            page[8] ^= 1;
            page
        })
    });
    planted_in_table(ViolationCode::AccountMismatch, tables::ADDRESSES, b"\0\0\0\x01a", |_| {
        Some(vec![0, 0, 0, 2])
    });
    let name = [0, 0, 0, 1, 2, 0, 0, 0, 0];
    planted_in_table(ViolationCode::MetadataMismatch, tables::NAMES, &name, |_| Some(b"sort".to_vec()));
    planted_in_table(ViolationCode::HeadMismatch, tables::HEADS, &[0, 0, 0, 1], |head| {
        head.map(|mut head| {
            head[0] += 1;
            head
        })
    });
}

#[test]
fn damaged_values_are_found() {
    planted_in_table(ViolationCode::RecordChecksum, tables::ACCOUNTS, &[0, 0, 0, 1, 0, 0, 0, 0], |page| {
        page.map(|mut page| {
            page.truncate(5);
            page
        })
    });
    planted_in_table(ViolationCode::RecordChecksum, tables::HASHES, &[1, 2, 3], |_| Some(vec![4]));
}

/// Changes each value of the filters in turn, with a correct checksum, and calls `check`. Returns how many values
/// there were.
fn each_filter_value(change: impl Fn(bool, &mut Vec<u8>), check: impl Fn(&VerifyReport)) -> usize {
    let journal = journal_of(&sound());
    for number in 0.. {
        let (memtable, heads, watermark) = projected(&journal);
        let live = index();
        flush::write(&live, &[Arc::new(memtable)], &heads, &[], watermark).unwrap();
        if !ledger_index::alter_filter(&live, number, &change) {
            return number;
        }
        check(&verify(&journal, &live));
    }
    unreachable!("values come to an end")
}

#[test]
fn a_filter_that_denies_a_row_is_found() {
    let denied = |report: &VerifyReport| {
        expect(report, ViolationCode::RecordChecksum);
        let details = report.violations.iter().map(|violation| &violation.detail);
        assert!(details.clone().all(|detail| detail.contains("denies a row")), "{:#?}", report.violations);
    };
    let unchanged = each_filter_value(|_, _| {}, |report| assert!(report.is_clean(), "{report:?}"));
    assert!(unchanged >= 2, "{unchanged} values");
    each_filter_value(
        |is_fences, value| {
            if is_fences {
                // The first page then begins right after its first key.
                let low = value[8..].first_chunk_mut::<8>().unwrap();
                *low = (u64::from_le_bytes(*low) + 1).to_le_bytes();
            } else {
                value.fill(0);
            }
        },
        denied,
    );
    // A single bit of a single key is enough.
    each_filter_value(
        |is_fences, value| {
            if is_fences {
                value.fill(0xff);
            } else {
                let byte = value.iter_mut().find(|byte| **byte != 0).unwrap();
                *byte &= *byte - 1;
            }
        },
        denied,
    );
}

#[test]
fn wrong_wire_hashes_are_found() {
    let key = crate::hashes::checkpoint_key(1, 3);
    planted_in_table(ViolationCode::WireHash, tables::HASHES, &key, |_| Some(vec![5; 32]));
    let nobody = crate::hashes::checkpoint_key(2, 3);
    planted_in_table(ViolationCode::IndexExtra, tables::HASHES, &nobody, |_| Some(vec![5; 32]));
}

/// A journal that answers some reads from another journal or not at all.
struct TamperedJournal {
    journal: Arc<dyn JournalReader>,
    other: Option<(Position, Arc<dyn JournalReader>)>,
    unreadable: Option<Position>,
    head: Head,
}

impl TamperedJournal {
    fn of(journal: Arc<dyn JournalReader>) -> Self {
        Self { head: journal.head(), journal, other: None, unreadable: None }
    }
}

impl JournalReader for TamperedJournal {
    fn head(&self) -> Head {
        self.head
    }

    fn read(&self, at: Position) -> Result<Option<Chunk>, JournalError> {
        if self.unreadable == Some(at) {
            return Err(JournalError::ZeroLength { path: "here".into() });
        }
        match &self.other {
            Some((position, other)) if *position == at => other.read(at),
            _ => self.journal.read(at),
        }
    }

    fn scan(&self, from: Position, _max_bytes: usize) -> Result<Vec<Chunk>, JournalError> {
        Ok(self.read(from)?.into_iter().collect())
    }
}

#[test]
fn a_tampered_journal_is_noticed() {
    let sound_journal = journal_of(&sound());
    let mut altered = sound();
    transaction(&mut altered[0]).reference = Some("forged");
    let verify = |change: fn(&mut TamperedJournal, Arc<dyn JournalReader>)| {
        let mut tampered = TamperedJournal::of(sound_journal.clone());
        change(&mut tampered, journal_of(&altered));
        let tampered: Arc<dyn JournalReader> = Arc::new(tampered);
        let report = verify(&tampered, &index());
        assert!(!report.complete);
        report
    };
    expect(
        &verify(|tampered, other| tampered.other = Position::new(4).map(|at| (at, other))),
        ViolationCode::ChainBreak,
    );
    expect(&verify(|tampered, _| tampered.unreadable = Position::new(4)), ViolationCode::RecordChecksum);
    expect(&verify(|tampered, _| tampered.head.chain = ChainHash([1; 32])), ViolationCode::HeadMismatch);
    expect(
        &verify(|tampered, _| tampered.head.next = Position::new(99).expect("a number")),
        ViolationCode::SequenceGap,
    );
}

#[test]
fn an_index_ahead_of_the_journal_is_noticed() {
    let (memtable, heads, watermark) = projected(&journal_of(&sound()));
    let live = index();
    flush::write(&live, &[Arc::new(memtable)], &heads, &[], watermark).unwrap();
    let report = verify(&journal_of(&sound()[..3]), &live);
    expect(&report, ViolationCode::IndexAhead);
}

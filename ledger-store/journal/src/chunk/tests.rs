use std::collections::BTreeSet;

use ledger_codec::Corrupt;

use super::layout::DIGEST_BYTES;
use super::{
    Chunk, ChunkDraft, DecodeError, MAX_CHUNK_PAYLOAD_BYTES, Section, decode, encode, encode_without,
};
use crate::hashed::HashedBytes;
use crate::{ChainHash, Position, Secret, SectionId};

const PREVIOUS: ChainHash = ChainHash([7; 32]);

fn secret() -> Secret {
    Secret([9; 32])
}

fn draft() -> ChunkDraft {
    ChunkDraft {
        first: Position::new(41).unwrap(),
        entries: 3,
        sections: vec![
            (SectionId(0), HashedBytes::from(b"documents".to_vec())),
            (SectionId(5), HashedBytes::from(Vec::new())),
            (SectionId(300), HashedBytes::from(vec![0xab; 700])),
        ],
    }
}

fn encoded(draft: &ChunkDraft) -> (Vec<u8>, ChainHash) {
    let mut out = vec![1, 2, 3];
    let chain = encode(draft, PREVIOUS, &secret(), &mut out);
    (out.split_off(3), chain)
}

fn present(chunk: &Chunk) -> Vec<(SectionId, Option<Vec<u8>>)> {
    let bytes = |section: &Section| match section {
        Section::Present(bytes) => Some(bytes.to_vec()),
        Section::Removed => None,
    };
    chunk.sections().iter().map(|(id, section)| (*id, bytes(section))).collect()
}

#[test]
fn a_chunk_reads_back_as_it_was_written() {
    let draft = draft();
    let (bytes, chain) = encoded(&draft);
    assert_eq!(bytes.len(), draft.encoded_len());
    let chunk = decode(&bytes, &secret()).unwrap();
    assert_eq!((chunk.first(), chunk.entries(), chunk.next().get()), (draft.first, 3, 44));
    assert_eq!((chunk.previous(), chunk.chain()), (PREVIOUS, chain));
    assert_eq!(chunk.payload_bytes(), 709);
    let sections: Vec<_> = draft.sections.into_iter().map(|(id, bytes)| (id, Some(bytes.to_vec()))).collect();
    assert_eq!(present(&chunk), sections);
}

#[test]
fn every_flipped_bit_is_noticed() {
    let (mut bytes, _) = encoded(&draft());
    for i in 0..bytes.len() * 8 {
        bytes[i / 8] ^= 1 << (i % 8);
        assert!(decode(&bytes, &secret()).is_err(), "bit {i}");
        bytes[i / 8] ^= 1 << (i % 8);
    }
    decode(&bytes, &secret()).unwrap();
}

#[test]
fn every_cut_and_every_extension_is_noticed() {
    let (mut bytes, _) = encoded(&draft());
    for len in 0..bytes.len() {
        assert!(decode(&bytes[..len], &secret()).is_err(), "cut to {len}");
    }
    bytes.push(0);
    assert!(decode(&bytes, &secret()).is_err());
}

#[test]
fn only_the_store_can_write_a_chunk() {
    let (bytes, _) = encoded(&draft());
    let corrupt = Corrupt { what: "the chunk does not match its digest" };
    assert_eq!(decode(&bytes, &Secret([8; 32])).unwrap_err(), DecodeError::Corrupt(corrupt));
}

#[test]
fn a_newer_layout_is_told_from_damage() {
    let (mut bytes, _) = encoded(&draft());
    bytes[DIGEST_BYTES] = 2;
    assert_eq!(decode(&bytes, &secret()).unwrap_err(), DecodeError::Newer(2));
}

#[test]
fn the_chain_depends_on_every_field() {
    let base = encoded(&draft()).1;
    let with = |change: fn(&mut ChunkDraft)| {
        let mut changed = draft();
        change(&mut changed);
        encoded(&changed).1
    };
    assert_ne!(base, with(|d| d.first = d.first.next()));
    assert_ne!(base, with(|d| d.entries += 1));
    assert_ne!(base, with(|d| d.sections[1].0 = SectionId(6)));
    assert_ne!(base, with(|d| d.sections[0].1 = HashedBytes::from(b"Documents".to_vec())));
    assert_ne!(base, with(|d| drop(d.sections.remove(1))));
    assert_ne!(base, encode(&draft(), ChainHash([8; 32]), &secret(), &mut Vec::new()));
}

#[test]
fn a_removed_section_leaves_the_chain_intact() {
    let (bytes, chain) = encoded(&draft());
    let whole = decode(&bytes, &secret()).unwrap();
    let reduced_bytes = encode_without(&whole, &BTreeSet::from([SectionId(300)]), &secret());
    assert_eq!(reduced_bytes.len(), bytes.len() - 700 + 32, "the digest takes their place");
    let reduced = decode(&reduced_bytes, &secret()).unwrap();
    assert_eq!(reduced.chain(), chain);
    assert_eq!(
        present(&reduced),
        [
            (SectionId(0), Some(b"documents".to_vec())),
            (SectionId(5), Some(Vec::new())),
            (SectionId(300), None)
        ]
    );
    // Reducing another section leaves the first one reduced.
    let twice = encode_without(&reduced, &BTreeSet::from([SectionId(0)]), &secret());
    let twice = decode(&twice, &secret()).unwrap();
    assert_eq!(twice.chain(), chain);
    assert_eq!(twice.payload_bytes(), 0);
}

#[test]
fn drafts_that_break_a_rule_are_refused() {
    let refused = |change: fn(&mut ChunkDraft)| {
        let mut changed = draft();
        change(&mut changed);
        changed.check().unwrap_err();
    };
    draft().check().unwrap();
    refused(|d| d.entries = 0);
    refused(|d| d.sections.clear());
    refused(|d| d.sections.swap(0, 1));
    refused(|d| d.sections[1].0 = SectionId(0));
    refused(|d| d.sections[1].1 = HashedBytes::from(vec![0; MAX_CHUNK_PAYLOAD_BYTES]));
}

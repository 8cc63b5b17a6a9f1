//! Tests that the simulated disk loses the writes of programs that do not sync.

use std::collections::BTreeSet;

use super::*;

fn path(name: &str) -> PathBuf {
    Path::new("data").join(name)
}

fn disk() -> SimDisk {
    let disk = SimDisk::new();
    disk.create_dir(Path::new("data")).unwrap();
    disk.sync_dir(Path::new(".")).unwrap();
    disk
}

#[test]
fn power_cut_keeps_synced_bytes() {
    let disk = disk();
    let file = disk.open(&path("a"), OpenMode::CreateNew).unwrap();
    file.write_at(0, b"synced").unwrap();
    file.sync().unwrap();
    disk.sync_dir(Path::new("data")).unwrap();
    file.write_at(6, b" and not").unwrap();
    let found: BTreeSet<Vec<u8>> =
        (0..64).map(|seed| disk.after_power_cut(seed).bytes(&path("a")).unwrap()).collect();
    assert_eq!(found, BTreeSet::from([b"synced".to_vec(), b"synced and not".to_vec()]));
    assert!(file.sync().is_err(), "the power is off");
}

#[test]
fn a_name_needs_a_sync_of_its_directory() {
    let disk = disk();
    disk.open(&path("a"), OpenMode::CreateNew).unwrap().sync().unwrap();
    let found: BTreeSet<bool> =
        (0..64).map(|seed| disk.after_power_cut(seed).exists(&path("a")).unwrap()).collect();
    assert_eq!(found, BTreeSet::from([false, true]));
}

#[test]
fn writes_are_torn_at_sectors() {
    let disk = disk();
    disk.replace(&path("a"), &[0; 2048]).unwrap();
    disk.open(&path("a"), OpenMode::Existing).unwrap().write_at(100, &[1; 1024]).unwrap();
    let mut torn = 0;
    for seed in 0..256 {
        let bytes = disk.after_power_cut(seed).bytes(&path("a")).unwrap();
        let kept: Vec<bool> = [100..512, 512..1024, 1024..1124]
            .map(|range| {
                let first = bytes[range.start];
                assert!(bytes[range].iter().all(|byte| *byte == first));
                first == 1
            })
            .to_vec();
        torn += usize::from(kept.contains(&true) && kept.contains(&false));
    }
    assert!(torn > 0);
}

#[test]
fn replace_gives_the_old_bytes_or_the_new_ones() {
    for cut in 1.. {
        let disk = disk();
        disk.replace(&path("a"), b"old").unwrap();
        disk.set_faults(Faults { cut_at_sync: Some(disk.syncs() + cut), ..Faults::default() });
        let done = disk.replace(&path("a"), b"new").is_ok();
        for seed in 0..64 {
            let bytes = disk.after_power_cut(seed).bytes(&path("a")).unwrap();
            assert!(bytes == b"new" || (bytes == b"old" && !done), "{bytes:?}");
        }
        if done {
            assert!(cut > 2, "a file and a directory are synced");
            break;
        }
    }
}

#[test]
fn after_a_failed_sync_a_second_one_is_worth_nothing() {
    let disk = disk();
    disk.replace(&path("a"), b"old").unwrap();
    disk.set_faults(Faults { fail_sync: Some(disk.syncs() + 1), ..Faults::default() });
    let file = disk.open(&path("a"), OpenMode::Existing).unwrap();
    file.write_at(0, b"new").unwrap();
    file.sync().unwrap_err();
    file.sync().unwrap();
    let mut seen = [0; 3];
    file.read_at(0, &mut seen).unwrap();
    assert_eq!(seen, *b"new", "the page cache shows what the disk does not have");
    file.forget_cached().unwrap();
    file.read_at(0, &mut seen).unwrap();
    assert_eq!(seen, *b"old");
    assert!((0..64).all(|seed| disk.after_power_cut(seed).bytes(&path("a")).unwrap() == b"old"));
}

#[test]
fn a_read_fails_once() {
    let disk = disk();
    disk.replace(&path("a"), b"bytes").unwrap();
    let file = disk.open(&path("a"), OpenMode::Existing).unwrap();
    disk.set_faults(Faults { fail_read: Some(disk.reads() + 2), ..Faults::default() });
    let mut bytes = [0; 5];
    file.read_at(0, &mut bytes).unwrap();
    bytes.fill(0);
    file.read_at(0, &mut bytes).unwrap_err();
    assert_eq!(bytes, [0; 5]);
    file.read_at(0, &mut bytes).unwrap();
    assert_eq!(&bytes, b"bytes");
}

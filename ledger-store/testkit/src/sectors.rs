//! A compact form of index files, which mostly consist of empty pages.
//!
//! ```text
//! length u64 { 0 u8, offset u64, 512 bytes | 1 u8, offset u64, the one byte of all 512 }    little-endian
//! ```
//!
//! The form leaves out sectors of zeros.

const SECTOR_BYTES: usize = 512;

/// Returns the compact form of a file. The length of the file must be a multiple of 512 bytes.
///
/// # Panics
///
/// Panics if the length is not a multiple of 512 bytes.
pub fn to_sectors(file: &[u8]) -> Vec<u8> {
    assert!(file.len().is_multiple_of(SECTOR_BYTES), "the storage engine writes whole pages");
    let mut out = (file.len() as u64).to_le_bytes().to_vec();
    for (number, sector) in file.chunks_exact(SECTOR_BYTES).enumerate() {
        let offset = ((number * SECTOR_BYTES) as u64).to_le_bytes();
        let same = sector.iter().all(|byte| *byte == sector[0]);
        if same && sector[0] == 0 {
            continue;
        }
        out.push(u8::from(same));
        out.extend_from_slice(&offset);
        out.extend_from_slice(if same { &sector[..1] } else { sector });
    }
    out
}

/// Returns the file of a compact form, or `None` if the form is malformed.
pub fn from_sectors(mut sectors: &[u8]) -> Option<Vec<u8>> {
    let length = u64::from_le_bytes(take::<8>(&mut sectors)?);
    let mut file = vec![0; usize::try_from(length).ok()?];
    while !sectors.is_empty() {
        let [same] = take::<1>(&mut sectors)?;
        let offset = usize::try_from(u64::from_le_bytes(take::<8>(&mut sectors)?)).ok()?;
        let place = file.get_mut(offset..offset.checked_add(SECTOR_BYTES)?)?;
        if same == 1 {
            let [byte] = take::<1>(&mut sectors)?;
            place.fill(byte);
        } else {
            place.copy_from_slice(&take::<SECTOR_BYTES>(&mut sectors)?);
        }
    }
    Some(file)
}

fn take<const N: usize>(from: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, rest) = from.split_first_chunk::<N>()?;
    *from = rest;
    Some(*taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_back_file_from_its_sectors() {
        let mut file = vec![0; 6 * SECTOR_BYTES];
        file[SECTOR_BYTES..2 * SECTOR_BYTES].fill(0xff);
        file[4 * SECTOR_BYTES + 7] = 9;
        let sectors = to_sectors(&file);
        assert_eq!(sectors.len(), 8 + 10 + 9 + SECTOR_BYTES);
        assert_eq!(from_sectors(&sectors), Some(file));
        assert_eq!(from_sectors(&sectors[..sectors.len() - 1]), None);
    }
}

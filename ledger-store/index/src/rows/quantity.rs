//! Exact unsigned numbers in 16 bytes.

use std::cmp::Ordering;

use dashu_int::UBig;
use ledger_codec::{Corrupt, Output, Reader};

/// An exact, unsigned number of any size. Numbers of up to 64 bits need no allocation.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Quantity(Repr);

/// `Large` only holds numbers that do not fit `Small`, so that equal numbers are equal values.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Repr {
    Small(u64),
    Large(Box<UBig>),
}

impl Quantity {
    /// The number zero.
    pub const ZERO: Self = Self(Repr::Small(0));

    /// Returns whether the number is zero.
    #[inline]
    pub(crate) fn is_zero(&self) -> bool {
        matches!(self.0, Repr::Small(0))
    }

    /// Returns the number if it fits 64 bits.
    #[inline]
    pub fn as_u64(&self) -> Option<u64> {
        match self.0 {
            Repr::Small(small) => Some(small),
            Repr::Large(_) => None,
        }
    }

    /// Returns the number.
    pub(crate) fn to_ubig(&self) -> UBig {
        match &self.0 {
            Repr::Small(small) => UBig::from(*small),
            Repr::Large(large) => (**large).clone(),
        }
    }

    /// Creates a number from its bytes, least significant first.
    pub fn from_le_bytes(bytes: &[u8]) -> Self {
        Self::from(UBig::from_le_bytes(bytes))
    }

    /// Returns the bytes of the number, least significant first.
    pub fn to_le_bytes(&self) -> Box<[u8]> {
        match &self.0 {
            Repr::Small(small) => Box::new(small.to_le_bytes()),
            Repr::Large(large) => large.to_le_bytes(),
        }
    }

    /// Returns the sum.
    #[inline]
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        if let (Repr::Small(one), Repr::Small(two)) = (&self.0, &other.0)
            && let Some(sum) = one.checked_add(*two)
        {
            return Self(Repr::Small(sum));
        }
        Self::from(self.to_ubig() + other.to_ubig())
    }

    /// Returns the difference, or `None` if it is negative.
    #[inline]
    pub fn minus(&self, other: &Self) -> Option<Self> {
        match (&self.0, &other.0) {
            (Repr::Small(one), Repr::Small(two)) => one.checked_sub(*two).map(Self::from),
            _ if self < other => None,
            _ => Some(Self::from(self.to_ubig() - other.to_ubig())),
        }
    }

    /// Returns the number of heap bytes.
    pub(crate) fn heap_bytes(&self) -> usize {
        match &self.0 {
            Repr::Small(_) => 0,
            Repr::Large(large) => {
                // Up to two words are stored inside the `UBig` itself.
                let words = large.as_words().len();
                size_of::<UBig>() + if words > 2 { words * 8 } else { 0 }
            }
        }
    }

    /// Appends a number of up to 64 bits like [`put`](Self::put).
    #[inline]
    pub(super) fn put_u64(out: &mut Output, small: u64) {
        if small < 1 << 63 { out.put_varint(small << 1) } else { Self::from(small).put(out) }
    }

    /// Appends the number.
    ///
    /// Below 2^63 it is a varint of twice the number (below 64: one byte). Otherwise it is a varint of twice the
    /// length plus one, followed by that many bytes, least significant first.
    #[inline]
    pub fn put(&self, out: &mut Output) {
        match self.as_u64() {
            Some(small) if small < 1 << 63 => out.put_varint(small << 1),
            _ => {
                let bytes = self.to_ubig().to_le_bytes();
                out.put_varint((bytes.len() as u64) << 1 | 1);
                out.put_bytes(&bytes);
            }
        }
    }

    /// Reads a number that [`put`](Self::put) wrote.
    ///
    /// # Errors
    ///
    /// [`Corrupt`] if the bytes are not the single valid encoding of a number.
    #[inline]
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, Corrupt> {
        let head = reader.varint()?;
        if head & 1 == 0 {
            return Ok(Self(Repr::Small(head >> 1)));
        }
        let length = usize::try_from(head >> 1).map_err(|_| Corrupt { what: "a number is too long" })?;
        let number = Self::from(UBig::from_le_bytes(reader.bytes(length)?));
        if number.as_u64().is_some_and(|small| small < 1 << 63) {
            return Err(Corrupt { what: "a small number is written as a large one" });
        }
        Ok(number)
    }
}

impl From<u64> for Quantity {
    #[inline]
    fn from(small: u64) -> Self {
        Self(Repr::Small(small))
    }
}

impl From<UBig> for Quantity {
    fn from(number: UBig) -> Self {
        match u64::try_from(&number) {
            Ok(small) => Self(Repr::Small(small)),
            Err(_) => Self(Repr::Large(Box::new(number))),
        }
    }
}

impl From<&UBig> for Quantity {
    fn from(number: &UBig) -> Self {
        match u64::try_from(number) {
            Ok(small) => Self(Repr::Small(small)),
            Err(_) => Self(Repr::Large(Box::new(number.clone()))),
        }
    }
}

impl From<&Quantity> for UBig {
    fn from(quantity: &Quantity) -> Self {
        quantity.to_ubig()
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        match (&self.0, &other.0) {
            (Repr::Small(one), Repr::Small(two)) => one.cmp(two),
            (Repr::Small(_), Repr::Large(_)) => Ordering::Less,
            (Repr::Large(_), Repr::Small(_)) => Ordering::Greater,
            (Repr::Large(one), Repr::Large(two)) => one.cmp(two),
        }
    }
}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples() -> Vec<Quantity> {
        let mut samples: Vec<Quantity> =
            [0, 1, 63, 64, 1 << 62, (1 << 63) - 1, 1 << 63, u64::MAX].map(Quantity::from).into();
        samples.push(Quantity::from(UBig::from(u64::MAX) + UBig::ONE));
        samples.push(Quantity::from(UBig::from(u128::MAX)));
        samples.push(Quantity::from(UBig::ONE << 1000));
        samples
    }

    #[test]
    fn a_number_is_read_as_written() {
        for quantity in samples() {
            let mut out = Output::default();
            out.make_room();
            quantity.put(&mut out);
            let bytes = out.as_slice();
            let mut reader = Reader::new(bytes);
            assert_eq!(Quantity::read(&mut reader), Ok(quantity.clone()));
            assert!(reader.is_empty());
            for length in 0..bytes.len() {
                assert!(Quantity::read(&mut Reader::new(&bytes[..length])).is_err());
            }
        }
    }

    #[test]
    fn sums_differences_and_order_are_those_of_integers() {
        for one in samples() {
            for two in samples() {
                assert_eq!(one.cmp(&two), one.to_ubig().cmp(&two.to_ubig()));
                let sum = one.plus(&two);
                assert_eq!(sum.to_ubig(), one.to_ubig() + two.to_ubig());
                assert_eq!(sum.minus(&two), Some(one.clone()));
                assert_eq!(one.minus(&two).is_some(), one >= two);
            }
        }
    }

    #[test]
    fn a_quantity_takes_two_words() {
        assert_eq!(size_of::<Quantity>(), 16);
    }

    #[test]
    fn a_small_number_in_the_long_form_is_refused() {
        assert!(Quantity::read(&mut Reader::new(&[3, 7])).is_err());
    }
}

//! Random choices that can be repeated.

/// A random number generator whose choices can be repeated. They are derived from a seed or taken from the input of a
/// fuzzer, followed by zeros once the input is used up.
#[derive(Clone, Debug)]
pub struct Rng<'a> {
    bytes: Option<std::slice::Iter<'a, u8>>,
    state: u64,
}

impl Rng<'static> {
    /// Creates a generator whose choices follow from a seed.
    pub fn from_seed(seed: u64) -> Self {
        Self { bytes: None, state: seed }
    }
}

impl<'a> Rng<'a> {
    /// Creates a generator whose choices are the bytes of `data`, followed by zeros.
    pub fn from_bytes(data: &'a [u8]) -> Self {
        Self { bytes: Some(data.iter()), state: 0 }
    }

    /// Returns whether all bytes are used. Always false for a seed.
    pub fn is_exhausted(&self) -> bool {
        self.bytes.as_ref().is_some_and(|bytes| bytes.len() == 0)
    }

    /// Returns a number below `limit`, which must be at least 1. A generator from bytes never returns 2^16 or more.
    pub fn below(&mut self, limit: u64) -> u64 {
        let any = match &mut self.bytes {
            Some(bytes) if limit <= 256 => u64::from(bytes.next().copied().unwrap_or(0)),
            Some(bytes) => {
                let mut next = || u64::from(bytes.next().copied().unwrap_or(0));
                next() << 8 | next()
            }
            None => {
                // SplitMix64.
                self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
                let mut mixed = self.state;
                mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
                mixed ^ (mixed >> 31)
            }
        };
        any % limit
    }

    /// Returns true in one of `sides` cases, at random.
    pub fn one_in(&mut self, sides: u64) -> bool {
        self.below(sides) == 0
    }

    /// Returns one of several items.
    ///
    /// # Panics
    ///
    /// Panics if `all` is empty.
    pub fn pick<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize].clone()
    }
}

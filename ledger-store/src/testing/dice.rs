//! Reproducible choices.

/// Reproducible choices: from a seed, or from the bytes of a fuzzer while there are any.
#[derive(Clone, Debug)]
pub struct Dice<'a> {
    bytes: Option<std::slice::Iter<'a, u8>>,
    state: u64,
}

impl Dice<'static> {
    /// Choices that follow from a seed.
    pub fn from_seed(seed: u64) -> Self {
        Self { bytes: None, state: seed }
    }
}

impl<'a> Dice<'a> {
    /// Choices that are the bytes of `data`; zeros when they are used up.
    pub fn from_bytes(data: &'a [u8]) -> Self {
        Self { bytes: Some(data.iter()), state: 0 }
    }

    /// Whether the bytes are used up; never for a seed.
    pub fn is_exhausted(&self) -> bool {
        self.bytes.as_ref().is_some_and(|bytes| bytes.len() == 0)
    }

    /// A number below `limit`, which is at most 2^16 for bytes to reach all of them, and at least 1.
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

    /// Whether a die of so many sides shows a certain one.
    pub fn one_in(&mut self, sides: u64) -> bool {
        self.below(sides) == 0
    }

    /// One of several, of which there must be one.
    ///
    /// # Panics
    ///
    /// If there is none.
    pub fn pick<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize].clone()
    }
}

//! Names with numbers, so that comparing two is comparing numbers.

use std::borrow::Borrow;
use std::collections::BTreeMap;

/// Up to this many names, looking at each is faster than a tree.
const LINEAR_MAX: usize = 16;

/// Names, each once, numbered from 0 in order of first mention.
#[derive(Clone, Debug)]
pub(super) struct Names<T> {
    names: Vec<T>,
    /// Of all names, but only where there are more than a few.
    index: BTreeMap<T, u32>,
}

impl<T> Default for Names<T> {
    fn default() -> Self {
        Self { names: Vec::new(), index: BTreeMap::new() }
    }
}

impl<T: Ord + Clone + Borrow<str>> Names<T> {
    /// The number of a name, if it has one.
    pub(super) fn find(&self, name: &str) -> Option<u32> {
        if self.names.len() <= LINEAR_MAX {
            return self.names.iter().position(|have| have.borrow() == name).map(|at| at as u32);
        }
        self.index.get(name).copied()
    }

    /// Gives a name that has none its number.
    pub(super) fn add(&mut self, name: T) -> u32 {
        let number = self.names.len() as u32;
        if self.names.len() == LINEAR_MAX {
            self.index.extend(self.names.iter().cloned().zip(0..));
        }
        if self.names.len() >= LINEAR_MAX {
            self.index.insert(name.clone(), number);
        }
        self.names.push(name);
        number
    }

    /// The name of a number that was given out.
    pub(super) fn get(&self, number: u32) -> &T {
        &self.names[number as usize]
    }

    /// How many there are.
    pub(super) fn len(&self) -> u32 {
        self.names.len() as u32
    }

    /// Forgets all, and keeps the memory.
    pub(super) fn clear(&mut self) {
        self.names.clear();
        self.index.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_their_numbers_few_or_many() {
        let mut names = Names::<String>::default();
        for n in 0..100_u32 {
            assert_eq!(names.find(&format!("n{n}")), None);
            assert_eq!(names.add(format!("n{n}")), n);
            for known in 0..=n {
                assert_eq!(names.find(&format!("n{known}")), Some(known));
            }
        }
        assert_eq!((names.len(), names.get(41).as_str()), (100, "n41"));
        names.clear();
        assert_eq!((names.len(), names.find("n1")), (0, None));
    }
}

//! Interned names: each name gets a number, so that code compares numbers instead of texts.

use std::borrow::Borrow;
use std::collections::BTreeMap;

use crate::limits::to_u32;

/// Maximum number of names for a linear search. Above it, a tree is faster.
const LINEAR_MAX: usize = 16;

/// Interned names, numbered from 0 in order of their first use.
#[derive(Clone, Debug)]
pub(super) struct Names<T> {
    names: Vec<T>,
    /// Index of all names. Empty while a linear search is faster.
    index: BTreeMap<T, u32>,
}

impl<T> Default for Names<T> {
    fn default() -> Self {
        Self { names: Vec::new(), index: BTreeMap::new() }
    }
}

impl<T: Ord + Clone + Borrow<str>> Names<T> {
    /// Returns the number of a name, or `None` if the name is new.
    pub(super) fn find(&self, name: &str) -> Option<u32> {
        if self.names.len() <= LINEAR_MAX {
            return self.names.iter().position(|have| have.borrow() == name).map(to_u32);
        }
        self.index.get(name).copied()
    }

    /// Returns the number of a name, and gives a new name the next number.
    pub(super) fn add(&mut self, name: T) -> u32 {
        let number = self.len();
        if self.names.len() == LINEAR_MAX {
            self.index.extend(self.names.iter().cloned().zip(0..));
        }
        if self.names.len() >= LINEAR_MAX {
            self.index.insert(name.clone(), number);
        }
        self.names.push(name);
        number
    }

    /// Returns the name with a number.
    pub(super) fn get(&self, number: u32) -> &T {
        &self.names[number as usize]
    }

    /// Returns how many names there are.
    pub(super) fn len(&self) -> u32 {
        to_u32(self.names.len())
    }

    /// Removes all names and keeps the allocated memory.
    pub(super) fn clear(&mut self) {
        self.names.clear();
        self.index.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_their_numbers() {
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

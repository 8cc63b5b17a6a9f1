//! A crate whose two files import each other, one of them through a re-export.
mod high;
mod low;

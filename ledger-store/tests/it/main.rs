//! The store through its public face.

mod basics;
mod reads;

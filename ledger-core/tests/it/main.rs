//! Tests of the core through its public interface.

mod export;

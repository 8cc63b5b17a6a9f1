//! Pure double-entry accounting core.

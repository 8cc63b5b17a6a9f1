mod part;
pub use part::Part;

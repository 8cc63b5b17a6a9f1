use crate::high::Part as Other;

pub fn low(_: &Other) {}

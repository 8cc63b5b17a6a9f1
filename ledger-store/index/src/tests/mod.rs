//! Tests of the whole index: against a model, with reopening, crashes and damage.

mod blocks;
mod damage;
mod disk;
mod model;
mod plain;
mod samples;

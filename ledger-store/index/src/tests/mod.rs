//! Tests of the index as a whole: against a model, over reopening, crashes and damage.

mod blocks;
mod damage;
mod disk;
mod model;
mod plain;
mod samples;

//! The writer: decides commands in one order and makes them durable.

mod accounts;
mod apply;
mod batch;
mod execute;
mod recent;
mod state;

//! The API of the stack: the table of routes, and one module for each generation of each service.
//!
//! Handlers translate: they parse a request into a command or a query of the store, and write its answer in the
//! shapes of their generation. `ledger_v1` and `ledger_v2` do not import each other; what both need stands beside
//! them.

pub(crate) mod app;
pub(crate) mod auth;
pub(crate) mod call;
pub(crate) mod cursor;
pub(crate) mod generic;
pub(crate) mod ledger_v1;
pub(crate) mod ledger_v2;
pub(crate) mod openapi;
pub(crate) mod operations;
pub(crate) mod payments;
mod posting;
mod rehearsal;
mod release;
pub(crate) mod routes;
pub(crate) mod routing;
mod script_body;
pub(crate) mod service;

//! The API of the stack: the routing table, and one module for each version of each service.
//!
//! Handlers only translate: they parse a request into a command or a query of the store, and write the result in the
//! JSON form of their version. `ledger_v1` and `ledger_v2` do not import each other; this module contains the parts
//! that both need.

pub(crate) mod app;
pub(crate) mod auth;
pub(crate) mod context;
pub(crate) mod cursor;
pub(crate) mod generic;
pub(crate) mod ledger_v1;
pub(crate) mod ledger_v2;
pub(crate) mod openapi;
pub(crate) mod operations;
pub(crate) mod payments;
mod posting;
mod release;
pub(crate) mod routes;
pub(crate) mod routing;
mod script_body;
pub(crate) mod service;

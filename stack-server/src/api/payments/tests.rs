//! Tests of the handlers over a simulated disk, with a provider in memory.

mod events;
mod power_cuts;
mod random_work;
mod removal;
mod server;

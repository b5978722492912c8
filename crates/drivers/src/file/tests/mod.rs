//! The conformance suite over a table of requests, and the driver's own cases.

mod behaviour;
mod fidelity;
mod layer;
mod logging;
mod meddling;
mod parts;
mod restoring;
mod rewriting;
mod sequences;
mod stories;
mod suite;
mod undoing;
mod words;
mod world;

//! QUIC flows in the simulator, over the public interface, in one binary.

mod adapters;
mod bbr_draft;
mod behaviour;
mod common;
mod controllers;
mod doubles;
mod equality;
mod events;
mod fixed;
mod qlog;
mod test_loop;
mod tls;

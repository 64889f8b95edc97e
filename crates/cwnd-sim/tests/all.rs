//! Tests of the simulator over its public interface, in one binary: each binary compiles the
//! generic code of the crate again.

mod accecn;
mod applications;
mod bbr;
mod bbr3;
mod bbr_draft;
mod behaviour;
mod c4;
mod common;
mod conform;
mod controllers;
mod copa;
mod dctcp;
mod determinism;
mod handshake;
mod hostile;
mod invariants;
mod laws;
mod layers;
mod ledbat;
mod links;
mod linux;
mod lookahead;
mod network;
mod ns3;
mod oracle;
mod pcap;
mod qlog;
mod queueing;
mod queues;
mod recovery;
mod replay;
mod segment_size;
mod tfrc;
mod udt;
mod windows;

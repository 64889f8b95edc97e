//! Scenarios for the tests of an application. Compiled for each stack.

use super::STACK;
use super::application::{Application, Applications};
use super::connection::{self, Transport};
use super::proto::{Side, TransportConfig};
use crate::runs::{ClientStream, Error, Plan, Runs};
use cwnd_sim::QuicFlow;
use cwnd_sim::datagrams::Connection;
use std::fmt;
use std::ops::Range;

/// A scenario with flows of the stack. It is run with seed 1 unless [`seeds`](Self::seeds) sets
/// others.
pub struct Scenario<'a> {
    plan: Plan,
    transport: Option<Box<Transport<'a>>>,
    applications: Option<Box<Applications<'a>>>,
}

impl fmt::Debug for Scenario<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scenario").field("seeds", &self.plan.seeds).finish_non_exhaustive()
    }
}

impl<'a> Scenario<'a> {
    /// Reads a scenario.
    ///
    /// # Errors
    /// A key or a value that is not allowed, or no flow of the stack.
    pub fn from_toml(text: &str) -> Result<Self, Error> {
        Ok(Scenario { plan: Plan::from_toml(text, STACK)?, transport: None, applications: None })
    }

    /// Sets the transport configuration of both ends, with the factory of the congestion controller.
    /// It replaces the keys `controller` and `quic` of the stack's flows, except `streams` and
    /// `tls`, and except `mtu` as the largest datagram that an end accepts, if it is above 1472.
    ///
    /// `config` is called for each end of each connection, on several threads. It should make a
    /// new factory each time: one of [`cwnd_quic`] numbers its connections, for the seeds of their
    /// controllers.
    #[must_use]
    pub fn transport(mut self, config: impl Fn(Side) -> TransportConfig + Sync + 'a) -> Self {
        self.transport = Some(Box::new(config));
        self
    }

    /// Sets what the clients of the stack's flows send. It replaces the key `bytes`.
    #[must_use]
    pub fn client(mut self, client: impl FnOnce(&mut ClientStream)) -> Self {
        let mut stream = ClientStream::default();
        client(&mut stream);
        self.plan.bytes = Some(stream.bytes);
        self
    }

    /// Sets the applications of both ends of the stack's flows. A client has `None` for the data of
    /// [`client`](Self::client) or `bytes`, which a server without an application reads.
    ///
    /// The key `stop` ends the data of the file or of [`client`](Self::client), not an application.
    /// Only the client's data counts in the records, and only its controller is measured. What the
    /// server sends is traffic of the path back.
    #[must_use]
    pub fn application(
        mut self,
        make: impl Fn(Side) -> Option<Box<dyn Application>> + Sync + 'a,
    ) -> Self {
        self.applications = Some(Box::new(make));
        self
    }

    /// Sets the seeds.
    #[must_use]
    pub fn seeds(mut self, seeds: Range<u64>) -> Self {
        self.plan.seeds = seeds;
        self
    }

    /// Runs the scenario with each seed, on all cores.
    ///
    /// # Errors
    /// An empty range of seeds, a wrong bound in `[expect]`, or a value that the simulator or the
    /// stack refuses. A connection that is closed is an [outcome](crate::Outcome).
    pub fn run(self) -> Result<Runs<'a>, Error> {
        let Scenario { mut plan, transport, applications } = self;
        plan.application = applications.as_ref().is_some_and(|make| make(Side::Client).is_some());
        let connect = move |flow: QuicFlow| {
            if flow.quic.stack != STACK {
                return crate::connect(flow);
            }
            let mut connection = match &transport {
                Some(transport) => connection::connect_with(flow, transport)?,
                None => connection::connect(flow)?,
            };
            if let Some(make) = &applications {
                connection.run(make);
            }
            Ok(Connection::new(connection))
        };
        Ok(plan.run(Box::new(connect))?)
    }
}

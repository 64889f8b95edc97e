//! The keys of a link: those that `[dumbbell]`, `[chain]`, `[[link]]` and `back` have in common,
//! and those of each table. These doc comments are the descriptions of the JSON Schema.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::document::{is_default, is_true, yes};
use super::impairments::{
    BlackoutTable, BucketTable, ChangeTable, Loss, ModelTable, ReorderTable, Trace,
};
use super::queue::Queue;
use crate::units::{BitRate, Count, Span, table};

/// Defines the tables of links. Each has the keys of its own and the common ones, which are all
/// optional.
macro_rules! link_tables {
    (keys $keys:tt $($(#[$attribute:meta])* pub struct $name:ident $own:tt)*) => {
        link_tables!(@keys $keys);
        $(link_tables!(@table $keys $(#[$attribute])* $name $own);)*
    };
    (@keys { $($(#[$doc:meta])* $key:ident: $type:ty,)* }) => {
        /// The common keys of a table.
        #[derive(Clone, Copy, Default)]
        pub(super) struct LinkKeys<'a> {
            $(pub $key: Option<&'a $type>,)*
        }

        impl LinkKeys<'_> {
            /// Returns these keys, with those of `other` in place of missing ones.
            pub(super) fn or(self, other: Self) -> Self {
                LinkKeys { $($key: self.$key.or(other.$key),)* }
            }

            /// Whether a key is given.
            pub(super) fn gives(&self, key: &str) -> bool {
                match key {
                    $(stringify!($key) => self.$key.is_some(),)*
                    _ => false,
                }
            }
        }
    };
    (@table { $($(#[$doc:meta])* $key:ident: $type:ty,)* }
     $(#[$attribute:meta])* $name:ident $own:tt) => {
        table! {
            $(#[$attribute])*
            pub struct $name $own optional { $($(#[$doc])* $key: $type,)* }
        }

        impl $name {
            /// The common keys.
            pub(super) fn keys(&self) -> LinkKeys<'_> {
                LinkKeys { $($key: self.$key.as_ref(),)* }
            }
        }
    };
}

link_tables! {
    keys {
        /// Rate, at the beginning if it changes. Required in a dumbbell and a chain; infinite by
        /// default in a link, without a queue.
        rate: BitRate,
        /// Propagation delay, at the beginning if it changes. Required in a dumbbell and a chain; 0
        /// by default in a link.
        delay: Span,
        /// Queue; by default DropTail of one bandwidth-delay product, at least 10 packets.
        queue: Queue,
        /// Probability that a data packet is lost on the link, 0 by default, or a model of loss in
        /// bursts.
        loss: Loss,
        /// Whether `loss` also applies to acknowledgements; false by default.
        loss_of_acks: bool,
        /// Changes of rate, delay and loss, in the order of time.
        changes: Vec<ChangeTable>,
        /// A file with the delivery opportunities of the link, in place of its rate.
        trace: Trace,
        /// A random process that sets the rate, the delay or the jitter.
        model: ModelTable,
        /// Periods in which all packets are lost on the link.
        blackout: Vec<BlackoutTable>,
        /// Maximum of a uniform random delay of each packet. Packets stay in order.
        jitter: Span,
        /// A random additional delay with which packets are overtaken.
        reorder: ReorderTable,
        /// Acknowledgements arrive at multiples of this time only.
        ack_aggregation: Span,
        /// Acknowledgements of a flow that follow another one within this time are dropped before
        /// the queue.
        ack_thinning: Span,
        /// Token bucket before the queue. Packets without tokens are dropped.
        policer: BucketTable,
        /// Token bucket behind the queue. Packets wait for tokens; the link's rate is the peak
        /// rate.
        shaper: BucketTable,
    }

    /// Two routers, `left` and `right`, and the bottleneck between them, equal in both directions.
    #[serde(deny_unknown_fields, expecting = "a table of the dumbbell's bottleneck")]
    pub struct Dumbbell {
        /// Round-trip time of `bdp`; by default the longest one of the flows on the link.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub bdp_rtt: Option<Span>,
        /// Values of the direction from `right` to `left` that differ.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub back: Option<Back>,
    }

    /// Routers `r1`, `r2`, … in a row, with equal links. With `cross` flows, the network is a
    /// parking lot.
    #[serde(deny_unknown_fields, expecting = "a table of the chain's links")]
    pub struct Chain {
        /// Number of routers, from 2 to 10000.
        pub routers: Count<2, 10_000>,
        /// Round-trip time of `bdp`; by default the longest one of the flows on the link.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub bdp_rtt: Option<Span>,
        /// Values of the direction to the router with the smaller number that differ.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub back: Option<Back>,
    }

    /// A link between two nodes, in both directions unless `duplex = false`.
    #[serde(deny_unknown_fields, expecting = "a table of a link")]
    pub struct Link {
        /// Name in the records, by default `from-to`. The reverse direction is `name-back`, by
        /// default `to-from`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub name: Option<String>,
        /// The node at one end.
        pub from: String,
        /// The node at the other end.
        pub to: String,
        /// Round-trip time of `bdp`; by default the longest one of the flows on the link.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub bdp_rtt: Option<Span>,
        /// Whether the link has both directions.
        #[serde(default = "yes", skip_serializing_if = "is_true")]
        pub duplex: bool,
        /// Values of the direction from `to` to `from` that differ.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub back: Option<Back>,
    }

    /// Values of the reverse direction of a link. A missing key has the same value in both
    /// directions, except that a direction with a `rate`, `changes`, `trace` or `model` of its own,
    /// or a `delay` in place of that of a model, has no `changes`, `trace` and `model` of the other
    /// one.
    #[derive(Default)]
    #[serde(default, deny_unknown_fields, expecting = "a table of the reverse direction")]
    pub struct Back {}
}

/// Racks, each with a leaf switch, and spine switches that connect all leaves. Flows are distributed
/// over the spines (`ecmp`).
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table of a leaf-spine network")]
pub struct LeafSpine {
    /// Number of leaves, `leaf1`, `leaf2`, ….
    pub leaves: Count<1, 1000>,
    /// Number of spines, `spine1`, `spine2`, …, each with a link to every leaf.
    pub spines: Count<1, 1000>,
    /// Number of hosts of each leaf. `h1`, `h2`, … are the hosts of the first leaf, then those of
    /// the next one.
    pub hosts: Count<1, 1000>,
    /// Rate of the links.
    pub rate: BitRate,
    /// Propagation delay of each link.
    pub delay: Span,
    /// Queues of the switches; by default DropTail of one bandwidth-delay product. Those of the
    /// hosts are infinite.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<Queue>,
    /// Round-trip time of `bdp`; by default the longest one of the flows on the link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bdp_rtt: Option<Span>,
    /// Values of the links between leaves and spines that differ.
    #[serde(default, skip_serializing_if = "is_default")]
    pub fabric: Fabric,
}

/// Values of the links between leaves and spines that differ from those of the hosts.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table of the links of the spines")]
pub struct Fabric {
    /// Rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<BitRate>,
    /// Propagation delay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay: Option<Span>,
    /// Queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<Queue>,
}

impl<'a> LinkKeys<'a> {
    /// Returns the keys of the reverse direction of a link with these keys.
    pub(super) fn reverse(self, back: Option<&'a Back>) -> LinkKeys<'a> {
        let Some(own) = back.map(Back::keys) else { return self };
        let mut keys = own.or(self);
        let constant = own.rate.is_some() || own.delay.is_some() && self.sets_delay();
        let process = own.trace.is_some() || own.model.is_some() || own.changes.is_some();
        if constant || process {
            (keys.changes, keys.trace, keys.model) = (own.changes, own.trace, own.model);
        }
        // A process of its own sets what the other direction has as a constant.
        if own.sets_rate() {
            keys.rate = own.rate;
        }
        if own.sets_delay() {
            keys.delay = own.delay;
        }
        keys
    }

    /// Whether a trace or a model sets the rate.
    pub(super) fn sets_rate(&self) -> bool {
        let model = !matches!(self.model, None | Some(ModelTable::Wifi { .. }));
        self.trace.is_some() || model
    }

    /// Whether a trace or a model sets the delay.
    pub(super) fn sets_delay(&self) -> bool {
        let trace = self.trace.is_some_and(|trace| !is_default(&trace.0.delay));
        trace || matches!(self.model, Some(ModelTable::Leo { .. }))
    }
}

//! The registry's entries of the whole controllers.

use super::card::card;
use super::{Algorithm, Build, Parameter, Range};
use crate::controllers::bbr3::Aging;
use crate::controllers::{Bbr, Bbr3, C4, Copa, Ledbat};
use alloc::boxed::Box;

pub(super) const BBR: Algorithm = Algorithm {
    name: "bbr",
    title: "BBR version 1",
    summary: "Paces at the largest recent delivery rate, and keeps up to two bandwidth-delay products in \
              flight; losses do not reduce it.",
    source: "tcp_bbr.c of Linux; Cardwell, Cheng, Gunn, Hassas Yeganeh and Jacobson 2016",
    equations: card!("controllers/bbr.rs", equations),
    deviations: card!("controllers/bbr.rs", deviations),
    parameters: &[],
    build: Build::Whole(|_, settings| Box::new(Bbr::new(settings))),
};

pub(super) const BBR3: Algorithm = Algorithm {
    name: "bbr3",
    title: "BBR version 3",
    summary: "Paces at the largest recent delivery rate, and bounds the packets in flight by the losses that \
              its probes for bandwidth cause.",
    source: "Cardwell, Swett and Beshay, draft-ietf-ccwg-bbr, ietf-wg-ccwg/draft-ietf-ccwg-bbr 4ce5e87",
    equations: card!("controllers/bbr3.rs", equations),
    deviations: card!("controllers/bbr3.rs", deviations),
    parameters: &[Parameter::choice("aging", &["quiche", "draft"], Some(0))
        .means("the rule by which max_bw ages: of Google's QUICHE, or of the draft alone")],
    build: Build::Whole(|v, settings| {
        let aging = if v[0] == 0.0 { Aging::Quiche } else { Aging::Draft };
        Box::new(Bbr3::new(aging, settings))
    }),
};

pub(super) const COPA: Algorithm = Algorithm {
    name: "copa",
    title: "Copa, practical delay-based congestion control",
    summary: "Steers the window to a rate of 1/(delta d_q) by the queueing delay d_q, and competes \
              with flows that fill the buffer.",
    source: "Arun and Balakrishnan, NSDI 2018",
    equations: card!("controllers/copa.rs", equations),
    deviations: card!("controllers/copa.rs", deviations),
    parameters: &[
        Parameter::number("delta", "δ", 0.5, Range::closed(0.001, 10.0))
            .unit("1/packets")
            .means("weight of the delay against the throughput, in the default mode"),
        Parameter::switch("competitive", true)
            .means("whether the controller changes to the competitive mode"),
    ],
    build: Build::Whole(|v, settings| Box::new(Copa::new(v[0], v[1] != 0.0, settings))),
};

pub(super) const C4: Algorithm = Algorithm {
    name: "c4",
    title: "C4, Christian's Congestion Control Code",
    summary: "Paces at the largest delivery rate, pushes above it periodically, and reduces it at \
              excessive delays and losses, the more sensitively the higher the rate.",
    source: "Huitema, Nandakumar and Jennings, draft-huitema-ccwg-c4-spec, private-octopus/c4 e3377b6",
    equations: card!("controllers/c4.rs", equations),
    deviations: card!("controllers/c4.rs", deviations),
    parameters: &[],
    build: Build::Whole(|_, settings| Box::new(C4::new(settings))),
};

pub(super) const LEDBAT: Algorithm = Algorithm {
    name: "ledbat",
    title: "LEDBAT and LEDBAT++, background transport",
    summary: "Yields to other flows: holds the queueing delay at a target, and decreases above it.",
    source: "RFC 6817, draft-irtf-iccrg-ledbat-plus-plus-01",
    equations: card!("controllers/ledbat.rs", equations),
    deviations: card!("controllers/ledbat.rs", deviations),
    parameters: &[
        Parameter::switch("plus", false).means("whether it is LEDBAT++"),
        Parameter::number("target", "target", 0.0, Range::closed(0.0, 1.0)).unit("s").means(
            "target queueing delay; 0: 100 ms (the most that RFC 6817 section 2.5 allows), \
             LEDBAT++ 60 ms",
        ),
        Parameter::number("gain", "gain", 1.0, Range::above(0.0, 1.0))
            .means("window growth over that of TCP at an empty queue"),
    ],
    build: Build::Whole(|v, settings| Box::new(Ledbat::new(v[0] != 0.0, v[1], v[2], settings))),
};

/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Events of a window in a ring buffer, for a listener. The listener repeatedly writes the time until which
 * events are wanted to `control`, so that they end if it is killed.
 * crates/cwnd-linux/src/bpf/event.rs reads them.
 */
#ifndef CWND_TRACE_H
#define CWND_TRACE_H
#include "kernel.h"

enum kind {
	EVENT_BEGIN = 0,    /* a connection starts using the law */
	EVENT_END = 1,      /* and stops using it */
	EVENT_ACKED = 2,    /* an acknowledgement, in any phase */
	EVENT_SLOW = 3,     /* slow start grew the window */
	EVENT_GROW = 4,     /* the law grew the window */
	EVENT_ENTER = 5,    /* congestion avoidance begins */
	EVENT_ROUND = 6,    /* a round has ended and its losses are known */
	EVENT_CUT = 7,      /* the law cut the window */
	EVENT_TIMEOUT = 8,  /* the cut was for a timeout and is repeated */
	EVENT_UNDO = 9,     /* the cut is undone */
	EVENT_REPORT = 10,  /* rate laws: the arrival rate of an interval */
	EVENT_TICK = 11,    /* the law increased the rate */
	EVENT_START = 12,   /* the rate law left slow start */
};

struct event {
	u64 at;     /* ns, CLOCK_MONOTONIC */
	u64 flow;   /* identifies the connection */
	u64 before; /* window (Q40) or rate (Q24) */
	u64 after;
	u64 arrival; /* rates (Q24) */
	u64 capacity;
	u32 kind;
	u32 packets; /* newly arrived, or counted for growth */
	u32 sent;    /* in total; of the round */
	u32 lost;
	u32 rtt; /* us; 0: none */
	u32 min_rtt;
	u32 in_flight;
	u32 cwnd;
	u32 ssthresh;
	u32 stamp; /* the receiver's */
	u32 bytes; /* of a packet */
	u32 peer;  /* IPv4, in network order */
	u16 port;
	u16 peer_port; /* in network order */
	u32 limited; /* by the window */
	u32 retransmitted;
	u32 delivered;
};

struct control {
	u64 until; /* ns, CLOCK_MONOTONIC: end of listening */
	u64 missed; /* events lost because the ring was full */
	char spec[128];
	char previous[16]; /* the default controller before this one */
};

volatile struct control control SEC(".data.control");

/* libbpf reads the types of its members: BPF_MAP_TYPE_RINGBUF, and 1 MB, some ten thousand events. */
struct {
	int (*type)[27];
	int (*max_entries)[1 << 20];
} events SEC(".maps");

FX_INLINE struct event *event_begin(struct tcp_sock *tp, u32 kind)
{
	u64 now = tp->tcp_mstamp * 1000;
	struct sock *sk = sock_of(tp);
	struct event *event;

	if (control.until < now)
		return 0;
	event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);
	if (!event) {
		__sync_fetch_and_add(&control.missed, 1);
		return 0;
	}
	event->at = now;
	event->flow = (u64)(long)tp;
	event->before = event->after = event->arrival = event->capacity = 0;
	event->kind = kind;
	event->packets = event->lost = event->rtt = event->min_rtt = event->stamp = 0;
	event->sent = tp->data_segs_out;
	event->in_flight = tp->packets_out - tp->sacked_out - tp->lost_out + tp->retrans_out;
	event->cwnd = tp->snd_cwnd;
	event->ssthresh = tp->snd_ssthresh;
	event->bytes = tp->mss_cache + tp->tcp_header_len + 20;
	event->peer = sk->__sk_common.skc_daddr;
	event->port = sk->__sk_common.skc_num;
	event->peer_port = sk->__sk_common.skc_dport;
	event->limited = window_limited(tp);
	event->retransmitted = tp->total_retrans;
	event->delivered = tp->delivered;
	return event;
}

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Window events in a ring buffer. A listener enables them by writing a time to `control.until` and renews it
 * while it runs; if it is killed, events stop at that time. crates/cwnd-linux/src/bpf/event.rs reads them.
 */
#ifndef CWND_TRACE_H
#define CWND_TRACE_H
#include "kernel.h"

enum kind {
	EVENT_BEGIN = 0,    /* the connection starts using the law */
	EVENT_END = 1,      /* the connection stops using the law */
	EVENT_ACKED = 2,    /* an acknowledgement arrived, in any phase */
	EVENT_SLOW = 3,     /* the kernel's slow start grew the window */
	EVENT_GROW = 4,     /* the law grew the window */
	EVENT_ENTER = 5,    /* congestion avoidance begins */
	EVENT_ROUND = 6,    /* a round has ended and its losses are known */
	EVENT_CUT = 7,      /* the law cut the window */
	EVENT_TIMEOUT = 8,  /* the last cut was for a timeout; this cut replaces it */
	EVENT_UNDO = 9,     /* the last cut was spurious and is undone */
	EVENT_REPORT = 10,  /* rate laws: a rate report */
	EVENT_TICK = 11,    /* rate laws: the law increased the rate */
	EVENT_START = 12,   /* rate laws: slow start ended */
	EVENT_LOST = 13,    /* whole controllers: packets were declared lost */
	EVENT_RECOVERED = 14, /* whole controllers: loss recovery ended */
	EVENT_MTU = 15,     /* the packet size changed */
	EVENT_REDUCED = 16, /* texts: the kernel reduced the window by a rule of its own */
	EVENT_DELAY = 17,   /* rate laws that are texts: the round-trip time rises */
};

struct event {
	u64 time;       /* ns, CLOCK_MONOTONIC */
	u64 connection; /* identifier */
	u64 before;     /* window (Q40; of a text binary64) or rate (binary64) */
	u64 after;
	u64 arrival;  /* rate (binary64) */
	u64 capacity; /* rate (binary64) */
	u32 kind;
	u32 packets; /* EVENT_ACKED: delivered; EVENT_SLOW, EVENT_GROW: that the window grows for */
	u32 sent;    /* packets in total; EVENT_ROUND: in the round */
	u32 lost;    /* packets in total; EVENT_ROUND: in the round */
	u32 rtt;     /* us; 0: no sample */
	u32 min_rtt; /* us; 0: no sample */
	u32 in_flight;
	u32 cwnd;
	u32 ssthresh;
	u32 timestamp;    /* the receiver's newest timestamp */
	u32 packet_bytes; /* with headers */
	u32 peer;         /* IPv4 address, network byte order */
	u16 port;
	u16 peer_port; /* network byte order */
	u32 limited;   /* whether the window limits the sender */
	u32 retransmitted;
	u32 delivered;
	u32 smoothed_rtt; /* us */
	u32 unused;
};

/*
 * An event of a whole controller, with all inputs of the controller. `before` and `after` are windows.
 * EVENT_BEGIN: `packets` is the initial window; EVENT_ACKED: `in_flight` is that before the losses of the
 * acknowledgement, and `limited` whether the window limits the sender; EVENT_LOST: `lost` is the packets lost;
 * EVENT_TICK: an idle sender restarts.
 */
struct whole_event {
	struct event event;
	u64 pace;            /* rate (Q24) */
	u64 seed;            /* EVENT_BEGIN */
	u64 sent_at;         /* us; when an idle sender restarted; 0: it was not idle */
	u64 prior_delivered; /* the rate sample */
	u64 sample_delivered;
	u64 interval;     /* us; 0: the sample is not reliable */
	u32 sample_lost;
	u32 tx_in_flight;
	u32 flags;        /* EVENT_HAS_SAMPLE, EVENT_APPLICATION_LIMITED, EVENT_IDLES */
	u32 close;        /* decisions that rounding may have changed */
	u32 state;
	u32 unused;
};

#define EVENT_HAS_SAMPLE 1
#define EVENT_APPLICATION_LIMITED 2
#define EVENT_IDLES 4

struct control {
	u64 until;  /* ns, CLOCK_MONOTONIC: events are written until this time */
	u64 missed; /* events lost because the ring buffer was full */
	char spec[128];
	char previous[16]; /* the default controller that this one replaced */
};

volatile struct control control SEC(".data.control");

/* libbpf reads the types of the members: BPF_MAP_TYPE_RINGBUF of 1 MiB, about ten thousand events. */
struct {
	int (*type)[27];
	int (*max_entries)[1 << 20];
} events SEC(".maps");

#define RINGBUF_NO_WAKEUP 1

/* Reserves an event of `size` bytes and fills the members that are common to all kinds; null if there is no
 * listener, or no room in the ring buffer. */
FX_INLINE struct event *event_begin_sized(struct tcp_sock *tp, u32 kind, u64 size)
{
	u64 now = tp->tcp_mstamp * 1000;
	struct sock *sk = sock_of(tp);
	struct event *event;

	if (control.until < now)
		return 0;
	event = bpf_ringbuf_reserve(&events, size, 0);
	if (!event) {
		__sync_fetch_and_add(&control.missed, 1);
		return 0;
	}
	event->time = now;
	event->connection = (u64)(long)tp;
	event->before = event->after = event->arrival = event->capacity = 0;
	event->kind = kind;
	event->packets = event->lost = event->rtt = event->min_rtt = event->timestamp = 0;
	event->sent = tp->data_segs_out;
	event->in_flight = packets_in_flight(tp);
	event->cwnd = tp->snd_cwnd;
	event->ssthresh = tp->snd_ssthresh;
	event->packet_bytes = packet_bytes(tp);
	event->peer = sk->__sk_common.skc_daddr;
	event->port = sk->__sk_common.skc_num;
	event->peer_port = sk->__sk_common.skc_dport;
	event->limited = window_limited(tp);
	event->retransmitted = tp->total_retrans;
	event->delivered = tp->delivered;
	event->smoothed_rtt = tp->srtt_us >> 3;
	event->unused = 0;
	return event;
}

/* Passes an event on. The listener polls: to wake it would cost 10 us and more. */
FX_INLINE void event_submit(void *event)
{
	bpf_ringbuf_submit(event, RINGBUF_NO_WAKEUP);
}

FX_INLINE struct event *event_begin(struct tcp_sock *tp, u32 kind)
{
	return event_begin_sized(tp, kind, sizeof(struct event));
}

#endif

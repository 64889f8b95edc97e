/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What the programs of laws that are texts share: the law of a connection in the socket's storage, the inputs that every hook
 * has, and the events. An event has all that the law was given, so that a replay computes the same bits.
 */
#ifndef CWND_LAW_CONNECTION_H
#define CWND_LAW_CONNECTION_H
#include "trace.h"
#include "law.h"

/* `Signal` and `Limit` of crate cwnd. */
enum law_signal { SIGNAL_LOSS, SIGNAL_MARK, SIGNAL_TIMEOUT, SIGNAL_PERSISTENT_CONGESTION, SIGNAL_DELAY };
enum law_limit { LIMIT_WINDOW, LIMIT_PACING, LIMIT_RECEIVER, LIMIT_APPLICATION };

#define MICRO 1000ULL
/* The context: the inputs up to INPUT_SLOW_START. */
#define CONTEXT (INPUT_SLOW_START + 1)
/* The largest window in packets. */
#define MAX_WINDOW (FX_MAX_WINDOW >> 40)

/* An event of a law that is a text. `before` and `after` are bits of binary64, and so are the two rates. */
struct law_event {
	struct event event;
	u64 context[CONTEXT]; /* as given to the law */
	u64 time;             /* ns. EVENT_ACKED: of the receiver's clock; EVENT_ROUND: the length; EVENT_CUT of a rate
	                         law: when the newest lost packet was sent */
	u32 number;           /* of this connection, from 1 on */
	u32 marked;           /* EVENT_ACKED, EVENT_ROUND: packets */
	u32 why;              /* EVENT_CUT: enum law_signal */
	u32 answer;           /* EVENT_SLOW: the law leaves slow start. EVENT_CUT of a rate law: a new congestion period */
};

/* The part of a connection that both kinds of laws have. */
struct law_connection {
	struct law_state law;
	u64 last_cut;   /* ns; the start of the connection before the first cut */
	u32 packet;     /* bytes */
	u32 min_rtt;    /* us; 0: no sample */
	u32 latest_rtt; /* us; 0: no sample */
	u32 marked;     /* packets reported as marked until the last acknowledgement */
	u32 events;
	u32 unused;
};

FX_INLINE u64 now_of(struct tcp_sock *tp)
{
	return tp->tcp_mstamp * MICRO;
}

FX_INLINE void begin_law(struct tcp_sock *tp, struct law_connection *c)
{
	__builtin_memcpy(c->law.registers, law.registers, sizeof(law.registers));
	c->last_cut = now_of(tp);
	c->packet = packet_bytes(tp);
	c->marked = tp->delivered_ce;
}

FX_INLINE void add_rtt(struct law_connection *c, s64 sample)
{
	if (sample <= 0)
		return;
	c->latest_rtt = sample;
	if (!c->min_rtt || sample < c->min_rtt)
		c->min_rtt = sample;
}

/* Before the first sample the latest round-trip time is that of the handshake, as in crate cwnd. */
FX_INLINE void give_context(struct tcp_sock *tp, struct law_connection *c, u32 slow_start)
{
	u32 rtt = tp->srtt_us >> 3;
	u64 *given = c->law.given;

	given[INPUT_NOW] = now_of(tp);
	given[INPUT_RTT] = rtt ? rtt * MICRO : LAW_NONE;
	given[INPUT_MIN_RTT] = rtt && c->min_rtt ? c->min_rtt * MICRO : LAW_NONE;
	given[INPUT_LATEST_RTT] = rtt ? (c->latest_rtt ? c->latest_rtt : rtt) * MICRO : LAW_NONE;
	given[INPUT_LAST_CUT] = c->last_cut;
	given[INPUT_PACKET] = c->packet;
	given[INPUT_SLOW_START] = slow_start;
}

/* Reserves an event. A listener finds a lost one by its number. */
FX_INLINE struct law_event *law_event_begin(struct tcp_sock *tp, struct law_connection *c, u32 kind, u64 before,
					     u64 after)
{
	struct law_event *event = (void *)event_begin_sized(tp, kind, sizeof(*event));
	u32 index;

	c->events++;
	if (!event)
		return 0;
	event->event.before = before;
	event->event.after = after;
	event->event.packet_bytes = c->packet;
	event->event.min_rtt = c->min_rtt;
	for (index = 0; index < CONTEXT; index++)
		event->context[index] = c->law.given[index];
	event->time = 0;
	event->number = c->events;
	event->marked = event->why = event->answer = 0;
	return event;
}

FX_INLINE void submit_law_event(struct tcp_sock *tp, struct law_connection *c, u32 kind, u64 before, u64 after,
				u32 packets)
{
	struct law_event *event = law_event_begin(tp, c, kind, before, after);

	if (!event)
		return;
	event->event.packets = packets;
	event_submit(event);
}

/* Passes a change of the packet size to the law, by its hook for it; the factor by which packets are multiplied (0
 * without a change). */
FX_INLINE u64 rescale_law(struct tcp_sock *tp, struct law_connection *c, u32 hook)
{
	u32 packet = packet_bytes(tp);
	u64 factor;

	if (packet == c->packet)
		return 0;
	factor = b64_div(b64_from_u64(c->packet), b64_from_u64(packet));
	c->packet = packet;
	c->law.given[INPUT_FACTOR] = factor;
	if (law_has(hook))
		law_call(&c->law, hook);
	return factor;
}

#endif

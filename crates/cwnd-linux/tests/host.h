/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The kernel around a program of a law that is a text, compiled for the host for texts.rs: one socket with its storage, and a
 * listener to the events. Reads rows: a law as the loader writes it, a call of the kernel, and the counters of the socket
 * before it. Writes rows: the events of the call.
 */
#pragma GCC diagnostic ignored "-Wunknown-pragmas"
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* Of the only bit field that the programs read: its offset in bytes, or how far it is shifted. */
#define __builtin_preserve_field_info(field, kind) ((kind) ? 63 : offsetof(struct tcp_sock, ecn_flags) + 1)
#include "kernel.h"

/* A bit field is read as a word. */
static struct {
	struct tcp_sock tcp;
	u64 behind;
} socket = {
	.tcp = {.snd_cwnd = 10, .snd_cwnd_clamp = ~0U, .snd_ssthresh = TCP_INFINITE_SSTHRESH, .srtt_us = 40000 << 3,
		.mss_cache = 1448, .tcp_header_len = 32, .ecn_flags = TCP_ECN_OK, .is_cwnd_limited = 1},
};

static u64 storage[1024];
static u32 has_storage;

static void *storage_get(void *map, void *sk, void *value, u64 flags)
{
	has_storage |= flags & STORAGE_CREATE;
	return has_storage ? storage : 0;
}

static long storage_delete(void *map, void *sk)
{
	memset(storage, 0, sizeof(storage));
	has_storage = 0;
	return 0;
}

/* The events of one call, in words. */
#define EVENTS 5
#define EVENT_WORDS 26

static struct heard {
	u64 count;
	u64 events[EVENTS][EVENT_WORDS];
} heard;

static void *reserve(void *ring, u64 size, u64 flags)
{
	return size == sizeof(heard.events[0]) && heard.count < EVENTS ? heard.events[heard.count] : 0;
}

static void submit(void *event, u64 flags)
{
	heard.count++;
}

#define bpf_sk_storage_get storage_get
#define bpf_sk_storage_delete storage_delete
#define bpf_ringbuf_reserve reserve
#define bpf_ringbuf_submit submit
#include "law_connection.h"

_Static_assert(sizeof(struct law_event) == sizeof(heard.events[0]), "EVENT_WORDS");

enum call { CALL_INIT, CALL_ACKED, CALL_SSTHRESH, CALL_RELEASE };

struct row {
	struct law law;
	u64 call;
	u64 now; /* us */
	u64 sent;
	u64 delivered;
	u64 marked;
	u64 lost;
	u64 lost_out; /* packets marked as lost that are not yet sent again */
	u64 acked;
};

/* Calls the program. */
static void call(const struct row *row, struct tcp_sock *tp);

int main(void)
{
	struct tcp_sock *tp = &socket.tcp;
	struct row row;

	control.until = ~0ULL;
	while (fread(&row, sizeof(row), 1, stdin) == 1) {
		law = row.law;
		tp->tcp_mstamp = row.now;
		tp->data_segs_out = row.sent;
		tp->delivered = row.delivered;
		tp->delivered_ce = row.marked;
		tp->lost = row.lost;
		tp->lost_out = row.lost_out;
		memset(&heard, 0, sizeof(heard));
		call(&row, tp);
		if (control.missed || fwrite(&heard, sizeof(heard), 1, stdout) != 1)
			return 1;
	}
	return 0;
}

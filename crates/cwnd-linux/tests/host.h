/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The kernel around a program of a law that is a text, compiled for the host: the storage of one socket, a listener to the
 * events, and the functions that the programs call. A test includes this file and then the program.
 */
#include <stdio.h>
#include <string.h>
#pragma GCC diagnostic ignored "-Wunknown-pragmas"
#include "kernel.h"

static u64 storage[1024];
static u32 has_storage;
/* The window before the last cut, as the kernel remembers it. */
static u32 prior_window;

/* The events of one call, in words. */
#define EVENTS 5
#define EVENT_WORDS 26

static struct heard {
	u64 count;
	u64 events[EVENTS][EVENT_WORDS];
} heard;

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

static void *reserve(void *ring, u64 size, u64 flags)
{
	return size == sizeof(heard.events[0]) && heard.count < EVENTS ? heard.events[heard.count] : 0;
}

static void submit(void *event, u64 flags)
{
	heard.count++;
}

u32 tcp_slow_start(struct tcp_sock *tp, u32 acked)
{
	u32 grows = fx_min(acked, tp->snd_ssthresh - tp->snd_cwnd);

	tp->snd_cwnd += grows;
	return acked - grows;
}

u32 tcp_reno_undo_cwnd(struct sock *sk)
{
	return fx_max(((struct tcp_sock *)sk)->snd_cwnd, prior_window);
}

#define bpf_sk_storage_get storage_get
#define bpf_sk_storage_delete storage_delete
#define bpf_ringbuf_reserve reserve
#define bpf_ringbuf_submit submit
#include "law_connection.h"

_Static_assert(sizeof(struct law_event) == sizeof(heard.events[0]), "EVENT_WORDS");

/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Declarations of the kernel structures that the programs read, with the members they use. libbpf relocates
 * the offsets for the running kernel (CO-RE), so that one object supports all kernels.
 */
#ifndef CWND_KERNEL_H
#define CWND_KERNEL_H
#include "fixed.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct sock_common {
	u16 skc_family;
	u16 skc_dport;
	u16 skc_num;
	u32 skc_daddr;
};

struct sock {
	struct sock_common __sk_common;
	unsigned long sk_pacing_rate;
	unsigned long sk_max_pacing_rate;
	u32 sk_pacing_status;
};

struct inet_sock {
	struct sock sk;
};

struct inet_connection_sock {
	struct inet_sock icsk_inet;
	u8 icsk_ca_state : 5;
	u64 icsk_ca_priv[13];
};

struct tcp_options_received {
	u32 rcv_tsval;
};

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	struct tcp_options_received rx_opt;
	u64 tcp_mstamp;
	u32 snd_cwnd;
	u32 snd_cwnd_clamp;
	u32 snd_ssthresh;
	u32 srtt_us;
	u32 mss_cache;
	u32 packets_out;
	u32 sacked_out;
	u32 lost_out;
	u32 retrans_out;
	u32 max_packets_out;
	u32 data_segs_out;
	u32 delivered;
	u32 delivered_ce;
	u32 lost;
	u32 app_limited;
	u32 total_retrans;
	u16 tcp_header_len;
	u8 ecn_flags;
	u8 is_cwnd_limited : 1;
};

struct ack_sample {
	u32 pkts_acked;
	s32 rtt_us;
};

struct rate_sample {
	u32 prior_delivered;
	s32 delivered;
	long interval_us;
	long rtt_us;
	int losses;
	u32 acked_sacked;
	u8 is_app_limited;
};

#pragma clang attribute pop

/* From enum tcp_ca_event, enum tcp_ca_state, enum sk_pacing and net/tcp.h. They are older than struct_ops. */
#define CA_EVENT_TX_START 0
#define CA_EVENT_LOSS 3
#define TCP_ECN_OK 1
#define TCP_CA_RECOVERY 3
#define TCP_CA_LOSS 4
#define TCP_INFINITE_SSTHRESH 0x7fffffff
#define SK_PACING_NEEDED 1

#define SEC(name) __attribute__((section(name), used))

/* libbpf converts it to the kernel's struct by the names of the members; the loader writes `name`. */
struct tcp_congestion_ops {
	char name[16];
	u32 flags;
	u32 (*ssthresh)(u64 *ctx);
	int (*cong_avoid)(u64 *ctx);
	int (*set_state)(u64 *ctx);
	int (*cwnd_event)(u64 *ctx);
	u32 (*undo_cwnd)(u64 *ctx);
	u32 (*min_tso_segs)(u64 *ctx);
	int (*pkts_acked)(u64 *ctx);
	int (*cong_control)(u64 *ctx);
	int (*init)(u64 *ctx);
	int (*release)(u64 *ctx);
};

/* All users and network namespaces may select the controller. */
#define TCP_CONG_NON_RESTRICTED 1

static u32 (*const bpf_get_prandom_u32)(void) = (void *)7;
static void *(*const bpf_sk_storage_get)(void *map, void *sk, void *value, u64 flags) = (void *)107;
static long (*const bpf_sk_storage_delete)(void *map, void *sk) = (void *)108;
static void *(*const bpf_ringbuf_reserve)(void *ring, u64 size, u64 flags) = (void *)131;
static void (*const bpf_ringbuf_submit)(void *data, u64 flags) = (void *)132;

extern u32 tcp_slow_start(struct tcp_sock *tp, u32 acked) SEC(".ksyms");
extern u32 tcp_reno_undo_cwnd(struct sock *sk) SEC(".ksyms");

/* `flags` of bpf_sk_storage_get, and the map of a socket's storage: BPF_MAP_TYPE_SK_STORAGE with BPF_F_NO_PREALLOC. */
#define STORAGE_CREATE 1
#define STORAGE(type_of_value)                                                                       \
	struct {                                                                                     \
		int (*type)[24];                                                                     \
		int (*map_flags)[1];                                                                 \
		int *key;                                                                            \
		type_of_value *value;                                                                \
	} connections SEC(".maps")

#ifdef __bpf__
/* Reads a bit field. libbpf relocates its byte offset and the two shifts. */
#define BITS(pointer, field)                                                                         \
	((u64) * ((u8 *)(pointer) + __builtin_preserve_field_info((pointer)->field, 0))              \
	 << __builtin_preserve_field_info((pointer)->field, 4) >>                                    \
	 __builtin_preserve_field_info((pointer)->field, 5))
#else
#define BITS(pointer, field) ((u64)(pointer)->field)
#endif

FX_INLINE struct tcp_sock *tcp_of(u64 *ctx)
{
	return (struct tcp_sock *)ctx[0];
}

FX_INLINE struct sock *sock_of(struct tcp_sock *tp)
{
	return (struct sock *)tp;
}

FX_INLINE void *private_of(struct tcp_sock *tp)
{
	return (void *)tp->inet_conn.icsk_ca_priv;
}

/* The packet size with headers. */
FX_INLINE u32 packet_bytes(struct tcp_sock *tp)
{
	return tp->mss_cache + tp->tcp_header_len + 20;
}

FX_INLINE u32 packets_in_flight(struct tcp_sock *tp)
{
	return tp->packets_out - tp->sacked_out - tp->lost_out + tp->retrans_out;
}

/* A copy of the kernel's tcp_is_cwnd_limited(), which programs cannot call. */
FX_INLINE u32 window_limited(struct tcp_sock *tp)
{
	if (BITS(tp, is_cwnd_limited))
		return 1;
	return tp->snd_cwnd < tp->snd_ssthresh && tp->snd_cwnd < 2 * tp->max_packets_out;
}

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The programs of laws that are texts for texts.rs. Reads rows: a law as the loader writes it, a call of the kernel, and the
 * counters of the socket before it. Writes rows: the events of the call.
 */
#include "host.h"

enum call { CALL_INIT, CALL_ACKED, CALL_SSTHRESH, CALL_RELEASE };

struct row {
	struct law law;
	u64 call;
	u64 now; /* us */
	u64 sent;
	u64 delivered;
	u64 marked;
	u64 lost;
	u64 lost_out; /* lost packets that are not retransmitted yet */
	u64 acked;
};

/* Calls the program. */
static void call(const struct row *row, struct tcp_sock *tp);

int main(void)
{
	struct tcp_sock tp = {
		.snd_cwnd = 10, .snd_cwnd_clamp = ~0U, .snd_ssthresh = TCP_INFINITE_SSTHRESH, .srtt_us = 40000 << 3,
		.mss_cache = 1448, .tcp_header_len = 32, .ecn_flags = TCP_ECN_OK, .is_cwnd_limited = 1,
	};
	struct row row;

	control.until = ~0ULL;
	while (fread(&row, sizeof(row), 1, stdin) == 1) {
		law = row.law;
		tp.tcp_mstamp = row.now;
		tp.data_segs_out = row.sent;
		tp.delivered = row.delivered;
		tp.delivered_ce = row.marked;
		tp.lost = row.lost;
		tp.lost_out = row.lost_out;
		memset(&heard, 0, sizeof(heard));
		call(&row, &tp);
		if (control.missed || fwrite(&heard, sizeof(heard), 1, stdout) != 1)
			return 1;
	}
	return 0;
}

/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The interpreter of laws that are texts (crates/cwnd-law). The loader writes the code of a law; the program that interprets
 * it is the same for all laws, so that the verifier accepts or rejects all of them.
 *
 * A connection has 64 registers of binary64: states, parameters, constants, inputs and temporary values. A hook reads
 * its inputs from the numbers that the program gives, and runs operations until one ends it. Operations skip only
 * forward.
 */
#ifndef CWND_LAW_H
#define CWND_LAW_H
#include "binary64.h"

#define LAW_REGISTERS 64
#define LAW_WORDS 512
#define LAW_INPUTS 128
#define LAW_GIVEN 64
#define LAW_HOOKS 32

/* 1e9: the nanoseconds of a second. */
#define LAW_NANOS 0x41cdcd6500000000ULL

/* `Op` of crates/cwnd-law/src/code.rs. */
enum law_op {
	LAW_END,
	LAW_MOVE,
	LAW_MINUS,
	LAW_ABS,
	LAW_SQRT,
	LAW_CBRT,
	LAW_EXP,
	LAW_LOG,
	LAW_LOG10,
	LAW_FLOOR,
	LAW_CEIL,
	LAW_ADD,
	LAW_SUBTRACT,
	LAW_MULTIPLY,
	LAW_DIVIDE,
	LAW_MIN,
	LAW_MAX,
	LAW_POWER,
	LAW_SINCE,
	LAW_AFTER,
	LAW_NEXT,
	LAW_UNIT,
	LAW_SKIP,
	LAW_UNLESS,
	LAW_UNLESS_LESS,
	LAW_UNLESS_AT_MOST,
	LAW_UNLESS_EQUAL,
};

/* `Hook` of crates/cwnd-law/src/hook.rs; a test compares these two enums. */
enum law_hook {
	HOOK_ADOPT,
	HOOK_GROW,
	HOOK_CUT,
	HOOK_ANSWERS_MARK,
	HOOK_GROWS_AFTER_MARK,
	HOOK_THRESHOLD,
	HOOK_ENTER,
	HOOK_ROUND,
	HOOK_TIMEOUT_ENDS_ROUND,
	HOOK_OBSERVE,
	HOOK_LEAVE_SLOW_START,
	HOOK_REDUCED,
	HOOK_RESCALE,
	HOOK_NEEDS_ECN,
	HOOK_CLOCK,
	HOOK_INTERVAL,
	HOOK_TICK,
	HOOK_CUT_RATE,
	HOOK_START,
	HOOK_OBSERVE_REPORT,
	HOOK_DELAY_RISES,
	HOOK_LOSSES,
	HOOK_FLOW_WINDOW,
	HOOK_STARTS_ITSELF,
	HOOK_LEAST,
	HOOK_RESCALE_RATE,
};

/* `Input` of crates/cwnd-law/src/hook.rs. */
enum law_input {
	INPUT_NOW,
	INPUT_RTT,
	INPUT_MIN_RTT,
	INPUT_LATEST_RTT,
	INPUT_LAST_CUT,
	INPUT_RTTS_SINCE_CUT,
	INPUT_PACKET,
	INPUT_SLOW_START,
	INPUT_W,
	INPUT_ACKED,
	INPUT_WHY,
	INPUT_CUT,
	INPUT_ROUND_SENT,
	INPUT_ROUND_LOST,
	INPUT_ROUND_MARKED,
	INPUT_ROUND_TOOK,
	INPUT_ACKED_PACKETS,
	INPUT_ACKED_CREDIT,
	INPUT_ACKED_IN_FLIGHT,
	INPUT_ACKED_SENT,
	INPUT_ACKED_SENT_AT,
	INPUT_ACKED_RTT,
	INPUT_ACKED_RECEIVED_AT,
	INPUT_ACKED_ECHO,
	INPUT_ACKED_MARKED,
	INPUT_ACKED_LIMIT,
	INPUT_ACKED_DELIVERY_RATE,
	INPUT_ACKED_DELIVERY_DELIVERED,
	INPUT_ACKED_DELIVERY_PRIOR_DELIVERED,
	INPUT_ACKED_DELIVERY_INTERVAL,
	INPUT_ACKED_DELIVERY_LOST,
	INPUT_ACKED_DELIVERY_IN_FLIGHT,
	INPUT_ACKED_DELIVERY_APPLICATION_LIMITED,
	INPUT_RATE,
	INPUT_FRESH,
	INPUT_REPORT_PACKETS,
	INPUT_REPORT_SENT,
	INPUT_REPORT_ARRIVAL,
	INPUT_REPORT_CAPACITY,
	INPUT_REPORT_RTT,
	INPUT_LOST_PACKETS,
	INPUT_LOST_SENT_AT,
	INPUT_LOST_SENT,
	INPUT_WHOLE_PACKETS,
	INPUT_FACTOR,
};

/* What a given number is: `Form` of crates/cwnd-linux/src/bpf/code.rs. */
enum law_form {
	FORM_COUNT,   /* an integer; also an instant in nanoseconds, a truth and the place of a choice */
	FORM_SECONDS, /* a time in nanoseconds, which the law reads in seconds */
	FORM_BITS,    /* the bits of binary64 */
	FORM_RTTS,    /* not given: the smoothed round-trip times from INPUT_LAST_CUT to INPUT_NOW */
};

/* A given number that is none. It is the NaN that no operation results in. */
#define LAW_NONE FX_MAX
/* The register of an input that is never none. */
#define LAW_ALWAYS 0xff

/* The loader writes it. It is not const, because clang would fold the zeros of a constant. */
struct law {
	u32 words[LAW_WORDS];    /* operation | result << 8 | operand << 16 | operand << 24 */
	u32 inputs[LAW_INPUTS];  /* input | register << 8 | register of its presence << 16 | form << 24 */
	u32 hooks[LAW_HOOKS];    /* first operation | first input << 16 | inputs << 24; 0 without the hook */
	u64 registers[LAW_REGISTERS];
};

#ifdef __bpf__
struct law law SEC(".rodata.params");
#else
static struct law law;
#endif

/* The law of a connection. */
struct law_state {
	u64 registers[LAW_REGISTERS];
	u64 given[LAW_GIVEN];
	u64 answer;
};

struct law_run {
	struct law_state *state;
	u32 at;
	u32 answers;
};

/* Callbacks of bpf_loop have to be static for the kernel. libbpf makes hidden functions static; their symbols, which it
 * needs, remain in the object. */
#ifdef __bpf__
#define LAW_CALLBACK __attribute__((visibility("hidden")))
static long (*const bpf_loop)(u32 count, void *callback, void *context, u64 flags) = (void *)181;
#else
#define LAW_CALLBACK static
static void bpf_loop(u32 count, long (*callback)(u32, struct law_run *), struct law_run *run, u64 flags)
{
	u32 index;

	for (index = 0; index < count; index++)
		if (callback(index, run))
			return;
}
#endif

FX_INLINE u64 law_seconds(u64 nanos)
{
	return b64_div(b64_from_u64(nanos), LAW_NANOS);
}

/* The instants of Op::Since and of crates/cwnd/src/units.rs: 0 if `b` is later. */
FX_INLINE u64 law_since(u64 a, u64 b)
{
	return a > b ? a - b : 0;
}

FX_INLINE u64 law_rtts_since_cut(const struct law_state *s)
{
	u64 rtt = s->given[INPUT_RTT];

	if (rtt == LAW_NONE || !rtt)
		return 0;
	return b64_div(law_seconds(law_since(s->given[INPUT_NOW], s->given[INPUT_LAST_CUT])), law_seconds(rtt));
}

/* The number that the generator has drawn (SplitMix64), of 53 bits. */
FX_INLINE u64 law_unit(u64 z)
{
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return b64_mul(b64_from_u64((z ^ z >> 31) >> 11), 0x3ca0000000000000ULL); /* 2^-53 */
}

/* Loads an input. */
LAW_CALLBACK long law_load(u32 index, struct law_run *run)
{
	struct law_state *s = run->state;
	u32 word = law.inputs[(run->at + index) & (LAW_INPUTS - 1)];
	u32 present = word >> 16 & 0xff;
	u64 given = s->given[word & (LAW_GIVEN - 1)], value;

	switch (word >> 24) {
	case FORM_SECONDS:
		value = law_seconds(given);
		break;
	case FORM_BITS:
		value = given;
		break;
	case FORM_RTTS:
		value = law_rtts_since_cut(s);
		break;
	default:
		value = b64_from_u64(given);
	}
	s->registers[word >> 8 & (LAW_REGISTERS - 1)] = given == LAW_NONE ? 0 : value;
	if (present != LAW_ALWAYS)
		s->registers[present & (LAW_REGISTERS - 1)] = given == LAW_NONE ? 0 : B64_ONE;
	return 0;
}

/* Runs an operation; 1 if it ends the hook. */
LAW_CALLBACK long law_step(u32 index, struct law_run *run)
{
	struct law_state *s = run->state;
	u32 at = run->at, word, skips = 0;
	u64 a, b, result;

	if (at >= LAW_WORDS)
		return 1;
	word = law.words[at & (LAW_WORDS - 1)];
	a = s->registers[word >> 16 & (LAW_REGISTERS - 1)];
	b = s->registers[word >> 24 & (LAW_REGISTERS - 1)];
	result = a; /* LAW_MOVE */
	switch (word & 0xff) {
	case LAW_END:
		s->answer = a;
		run->answers = !b64_equal(b, 0);
		return 1;
	case LAW_MINUS:
		result = b64_neg(a);
		break;
	case LAW_ABS:
		result = b64_abs(a);
		break;
	case LAW_SQRT:
		result = b64_sqrt(a);
		break;
	case LAW_CBRT:
		result = b64_cbrt(a);
		break;
	case LAW_EXP:
		result = b64_exp(a);
		break;
	case LAW_LOG:
		result = b64_log(a);
		break;
	case LAW_LOG10:
		result = b64_log10(a);
		break;
	case LAW_FLOOR:
		result = b64_floor(a);
		break;
	case LAW_CEIL:
		result = b64_ceil(a);
		break;
	case LAW_ADD:
		result = b64_add(a, b);
		break;
	case LAW_SUBTRACT:
		result = b64_sub(a, b);
		break;
	case LAW_MULTIPLY:
		result = b64_mul(a, b);
		break;
	case LAW_DIVIDE:
		result = b64_div(a, b);
		break;
	case LAW_MIN:
		result = b64_less(a, b) ? a : b;
		break;
	case LAW_MAX:
		result = b64_less(b, a) ? a : b;
		break;
	case LAW_POWER:
		result = b64_power(a, b);
		break;
	case LAW_SINCE:
		result = b64_less(b, a) ? b64_div(b64_sub(a, b), LAW_NANOS) : 0;
		break;
	case LAW_AFTER:
		result = b64_add(a, b64_mul(b, LAW_NANOS));
		break;
	case LAW_NEXT:
		result = a + 0x9e3779b97f4a7c15ULL;
		break;
	case LAW_UNIT:
		result = law_unit(a);
		break;
	case LAW_SKIP:
		skips = 1;
		break;
	case LAW_UNLESS:
		skips = b64_equal(a, 0);
		break;
	case LAW_UNLESS_LESS:
		skips = !b64_less(a, b);
		break;
	case LAW_UNLESS_AT_MOST:
		skips = !b64_at_most(a, b);
		break;
	case LAW_UNLESS_EQUAL:
		skips = !b64_equal(a, b);
		break;
	}
	run->at = at + 1;
	if ((word & 0xff) < LAW_SKIP)
		s->registers[word >> 8 & (LAW_REGISTERS - 1)] = result;
	else if (skips)
		run->at += word >> 8 & 0xff;
	return 0;
}

/* Runs a hook that the law has; whether it has an answer, which is in the state. */
B64_FUNCTION int law_call(struct law_state *state, u32 hook)
{
	struct law_run run = {.state = state};
	u32 routine;

	if (!state)
		return 0;
	routine = law.hooks[hook & (LAW_HOOKS - 1)];
	run.at = routine >> 16 & 0xff;
	bpf_loop(routine >> 24, law_load, &run, 0);
	run.at = routine & 0xffff;
	bpf_loop(LAW_WORDS, law_step, &run, 0);
	return run.answers;
}

FX_INLINE u32 law_has(u32 hook)
{
	return law.hooks[hook] != 0;
}

/* Whether the law answers true. `otherwise` is the answer of a law without the hook. */
FX_INLINE u32 law_affirms(struct law_state *state, u32 hook, u32 otherwise)
{
	if (!law_has(hook))
		return otherwise;
	return law_call(state, hook) && b64_equal(state->answer, B64_ONE);
}

/* The larger and the smaller number; `bound` if x is not a number. */
FX_INLINE u64 b64_at_least(u64 x, u64 bound)
{
	return b64_less(bound, x) ? x : bound;
}

FX_INLINE u64 b64_limit(u64 x, u64 bound)
{
	return b64_less(x, bound) ? x : bound;
}

FX_INLINE u32 b64_is_finite(u64 x)
{
	return b64_abs(x) < B64_INFINITY;
}

#endif

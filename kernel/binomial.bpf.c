/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#include "binomial.h"

#define LAW(part) binomial_##part
#define LAW_CUT(p, s, w, timeout, min_rtt) binomial_cut(p, s, w, timeout)
#include "window.h"

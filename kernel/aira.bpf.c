/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#include "aira.h"

#define LAW(part) aira_##part
#define LAW_ROUND
#define LAW_CUT(p, s, w, timeout, min_rtt) aira_cut(p, s, w, timeout)
#include "window.h"

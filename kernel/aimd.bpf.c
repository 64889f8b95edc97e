/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#include "aimd.h"

#define LAW(part) aimd_##part
#define LAW_CUT(p, s, w, timeout, min_rtt) aimd_cut(p, s, w, timeout)
#include "window.h"

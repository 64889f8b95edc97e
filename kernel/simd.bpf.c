/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#include "simd.h"

#define LAW(part) simd_##part
#define LAW_ENTER(p, s, w, now) simd_enter(p, s, w)
#define LAW_CUT(p, s, w, timeout, min_rtt) simd_cut(p, s, w, timeout)
#include "window.h"

/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The interpreter of kernel/law.h compiled for the host, for law.rs. Reads rows: a law as the loader writes it, the number
 * of a hook, whether the connection is new, and what the hook is given. Writes rows: whether the hook has an answer, the
 * answer, and all registers.
 */
#include <stdio.h>
#include <string.h>
#include "law.h"

struct row {
	struct law law;
	u64 hook;
	u64 begins;
	u64 given[LAW_GIVEN];
};

int main(void)
{
	static struct law_state state;
	struct row row;
	u64 result[2];

	while (fread(&row, sizeof(row), 1, stdin) == 1) {
		law = row.law;
		if (row.begins)
			memcpy(state.registers, law.registers, sizeof(law.registers));
		memcpy(state.given, row.given, sizeof(row.given));
		result[0] = law_call(&state, row.hook);
		result[1] = state.answer;
		if (fwrite(result, sizeof(result), 1, stdout) != 1 ||
		    fwrite(state.registers, sizeof(state.registers), 1, stdout) != 1)
			return 1;
	}
	return 0;
}

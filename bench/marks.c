/* SPDX-License-Identifier: Apache-2.0
 *
 * marks.c - prints the ns that one begin and end take, and the ns that two readings of the clock
 * take, which are a part of it. Each is the fastest of several runs: the rest is the machine's.
 */
#include "stepmark.h"

#include <stdio.h>

enum { STEPS = 100000, RUNS = 20 };

static uint64_t mark_steps(uint32_t kind, uint32_t tenant)
{
	uint64_t began = stepmark_now_ns();

	for (int i = 0; i < STEPS; i++) {
		stepmark_begin(kind, tenant);
		stepmark_end();
	}
	return stepmark_now_ns() - began;
}

static uint64_t read_clock(void)
{
	uint64_t began = stepmark_now_ns();

	for (int i = 0; i < STEPS; i++) {
		stepmark_now_ns();
		stepmark_now_ns();
	}
	return stepmark_now_ns() - began;
}

int main(void)
{
	uint32_t kind = stepmark_kind("decode"), tenant = stepmark_tenant("chat");
	uint64_t marks = UINT64_MAX, clock = UINT64_MAX;

	if (stepmark_init())
		return 1;
	for (int i = 0; i < RUNS; i++) {
		uint64_t marking = mark_steps(kind, tenant), reading = read_clock();

		marks = marking < marks ? marking : marks;
		clock = reading < clock ? reading : clock;
	}
	printf("%f %f\n", (double)marks / STEPS, (double)clock / STEPS);
	return 0;
}

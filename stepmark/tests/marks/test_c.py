"""Engines in C and C++: the same page."""

from __future__ import annotations

import pytest

from stepmark import page as layout

C = """
#include "stepmark.h"
#include <stdio.h>
#include <sys/resource.h>
static inline void engine_pause(void)
{
	puts("paused");
	fflush(stdout);
	getchar();
}
"""
MAIN = C + "int main(void) { BODY engine_pause(); return 0; }"
IDS = 'uint32_t decode = stepmark_kind("decode"), chat = stepmark_tenant("chat");'


@pytest.fixture
def c_engine(compiled, started):
    """Runs statements in an engine written in C."""
    return lambda code: started(compiled(engine_c=MAIN.replace("BODY", code)))


def told(done):
    return [(it.number, it.parent, it.kind, it.shares) for it in done]


def test_a_new_page_describes_itself_as_pythons_does(c_engine, python):
    of_c, of_python = c_engine("stepmark_init();"), python("with step('a'): pass")
    described = slice(0, 44)

    assert of_c.page().bytes[described] == of_python.page().bytes[described]
    assert of_c.page().header(44) == of_c.pid
    assert of_c.page().kinds() == of_c.page().tenants() == [""]


def test_steps_and_stages(c_engine):
    engine = c_engine(
        IDS + "stepmark_begin(decode, chat); engine_pause();"
        'stepmark_begin(stepmark_kind("sample"), 0); engine_pause(); stepmark_end();'
        "engine_pause(); stepmark_end(); stepmark_end();"
    )
    page, seen = engine.page(), []
    for _ in range(3):
        slot = page.slot()
        seen.append((slot.whole, slot.step, slot.kind, slot.tenant))
        engine.go_on()

    assert seen == [
        (True, 1, "decode", "chat"),
        (True, 2, "sample", "chat"),
        (True, 1, "decode", "chat"),
    ]
    assert told(page.done()) == [(2, 1, "sample", {"chat": 1}), (1, 0, "decode", {"chat": 1})]
    assert (page.slot().step, page.slot().tid) == (0, engine.pid)


def test_ticks_meet_and_end_what_is_inside(c_engine):
    engine = c_engine(
        IDS + "stepmark_tick(decode, chat); stepmark_begin(decode, 0); stepmark_tick(decode, 0);"
        "stepmark_tock(); stepmark_tock(); stepmark_begin(decode, 0); stepmark_tick(decode, 0);"
        "stepmark_end(); stepmark_tock(); stepmark_end();"
    )
    inner, first, second, inside, around = engine.page().done()

    assert (inner.parent, first.end_ns, second.shares) == (first.number, second.begin_ns, {})
    assert (inside.parent, around.parent) == (around.number, 0)


def test_shares_queue_waits_and_clock(c_engine):
    engine = c_engine(
        IDS + "uint64_t since = stepmark_now_ns(); char name[8]; uint32_t i;"
        "struct stepmark_share shares[11];"
        "for (i = 0; i < 11; i++) {"
        '	snprintf(name, sizeof(name), "t%u", i);'
        "	shares[i].tenant = stepmark_tenant(name);"
        "	shares[i].weight = (i * 7) % 11 + 1;"
        "}"
        "stepmark_begin_shares(decode, shares, 2); stepmark_end();"
        "stepmark_begin_shares(decode, shares, 11); engine_pause(); stepmark_end();"
        "stepmark_queued(since, chat);"
    )
    page = engine.page()
    weights = {f"t{i}": i * 7 % 11 + 1 for i in range(11)}

    assert page.slot().tenant == max(weights, key=weights.__getitem__)
    engine.go_on()
    two, many, wait = page.done()
    assert two.shares == {"t0": 1, "t1": 8}
    assert many.shares == {name: weight for name, weight in weights.items() if weight > 3}
    assert page.lost() == [0, 0, 0, 3]
    assert (wait.what, wait.number, wait.shares) == (layout.QUEUED, 0, {"chat": 1})
    assert wait.begin_ns <= two.begin_ns <= many.end_ns <= wait.end_ns


def test_names_are_cut_counted_and_given_once(c_engine):
    engine = c_engine(
        'char name[100] = ""; int i;'
        'for (i = 0; i < 40; i++) strcat(name, "\\xc3\\xa9");'
        'printf("%u %u %u\\n", stepmark_kind(name), stepmark_kind("a"), stepmark_kind(name));'
        'for (i = 0; i < 300; i++) { snprintf(name, 9, "t%d", i); stepmark_tenant(name); }'
    )

    assert engine.said == ["1 2 1"]
    assert engine.page().kinds() == ["", "é" * 31, "a"]
    assert len(engine.page().tenants()) == layout.TENANTS
    assert engine.page().lost() == [0, 0, 300 - 255, 0]


def test_stages_too_deep_are_part_of_the_deepest_that_is_told(c_engine):
    engine = c_engine(
        IDS + "int i; for (i = 0; i < 40; i++) stepmark_begin(decode, chat);"
        "for (i = 0; i < 40; i++) stepmark_end(); stepmark_begin(decode, chat); stepmark_end();"
    )

    assert [it.number for it in engine.page().done()] == [*range(16, 0, -1), 17]


def test_the_ring_keeps_the_last_of_many(c_engine):
    engine = c_engine(
        IDS + "int i; for (i = 0; i < 5000; i++) { stepmark_begin(decode, chat); stepmark_end(); }"
    )

    numbers = [it.number for it in engine.page().done()]
    assert numbers == list(range(5001 - layout.RING, 5001))


THREADS = """
#include <pthread.h>
#include <sched.h>
static volatile int stop;
static void *work(void *name)
{
	char kind[32];
	uint32_t decode, sample, tenant = stepmark_tenant((char *)name);

	snprintf(kind, sizeof(kind), "decode %s", (char *)name);
	decode = stepmark_kind(kind);
	snprintf(kind, sizeof(kind), "sample %s", (char *)name);
	sample = stepmark_kind(kind);
	while (!stop) {
		stepmark_begin(decode, tenant);
		sched_yield(); /* be found in the step, and in its stage, on a busy machine, too */
		stepmark_begin(sample, 0);
		sched_yield();
		stepmark_end();
		stepmark_end();
	}
	return NULL;
}
int main(void)
{
	static char names[6][3] = {"t0", "t1", "t2", "t3", "t4", "t5"};
	pthread_t threads[6];
	int i;

	stepmark_init();
	for (i = 0; i < 6; i++)
		pthread_create(&threads[i], NULL, work, names[i]);
	engine_pause();
	stop = 1;
	for (i = 0; i < 6; i++)
		pthread_join(threads[i], NULL);
	engine_pause();
	return 0;
}
"""


def test_every_entry_that_was_not_overwritten_is_what_its_thread_wrote(compiled, started):
    engine = started(compiled(engine_c=C + THREADS))
    page = engine.page()
    assert len(page.kinds_marked(12)) == 12
    engine.go_on()
    for slot in page.slots():
        done = page.done(slot)
        assert len(done) == layout.RING and all(it.whole for it in done)
        for stage, step in zip(done[::2], done[1::2]):
            assert (stage.parent, stage.number) == (step.number, step.number + 1)
            assert step.begin_ns <= stage.begin_ns <= stage.end_ns <= step.end_ns
            ((tenant, weight),) = step.shares.items()
            assert (step.kind, stage.kind, weight) == (f"decode {tenant}", f"sample {tenant}", 1)
            assert stage.shares == step.shares


DYING = """
#include <pthread.h>
static void *die_inside(void *unused)
{
	(void)unused;
	stepmark_begin(stepmark_kind("decode"), 0);
	return NULL;
}
int main(void)
{
	pthread_t thread;
	int i;

	for (i = 0; i < 600; i++) {
		pthread_create(&thread, NULL, die_inside, NULL);
		pthread_join(thread, NULL);
	}
	engine_pause();
	return 0;
}
"""


def test_slots_of_dead_threads_are_taken_over_and_numbers_go_on(compiled, started):
    page = started(compiled(engine_c=C + DYING)).page()

    assert page.lost()[0] == 0
    assert sum(1 for slot in page.slots() if slot.step > 1) > 200
    assert all(slot.whole and slot.kind == "decode" for slot in page.slots())


def test_a_forked_child_has_a_page_of_its_own_with_the_same_ids(c_engine, reading):
    engine = c_engine(
        IDS + "int told[2]; char byte; pid_t child;"
        "if (pipe(told)) return 1;"
        "stepmark_begin(decode, chat);"
        "if (!(child = fork())) {"
        "	stepmark_end();"
        "	stepmark_begin(decode, chat); stepmark_end();"
        '	stepmark_begin(stepmark_kind("new"), 0);'
        '	if (write(told[1], ".", 1) != 1) return 1;'
        "	pause();"
        "}"
        "if (read(told[0], &byte, 1) != 1) return 1;"
        'stepmark_end(); printf("%d\\n", child);'
    )
    child = int(engine.said[0])
    childs = reading(child)  # finds exactly one

    assert told(engine.page().done()) == [(1, 0, "decode", {"chat": 1})]
    assert told(childs.done()) == [(1, 0, "decode", {"chat": 1})]
    assert (childs.header(44), childs.slot().tid, childs.slot().kind) == (child, child, "new")
    assert engine.page().kinds() == ["", "decode"]


def test_c_and_cpp_in_one_program_share_one_page(compiled, started):
    engine = started(
        compiled(
            main_c=C + "void in_cpp(void);\n"
            f"int main(void) {{ {IDS} stepmark_begin(decode, chat); in_cpp(); stepmark_end();"
            " engine_pause(); return 0; }",
            part_cc='#include "stepmark.h"\n'
            'extern "C" void in_cpp(void);\n'
            'void in_cpp(void) { stepmark::step sample{stepmark_kind("sample")}; }',
        )
    )

    assert told(engine.page().done()) == [
        (2, 1, "sample", {"chat": 1}),
        (1, 0, "decode", {"chat": 1}),
    ]


def test_without_a_page_marks_go_nowhere_and_init_says_why(c_engine):
    engine = c_engine(
        # No descriptor to be had: EMFILE.
        "struct rlimit none = {0, 0};" + "setrlimit(RLIMIT_NOFILE, &none);" + IDS + "int i;"
        'printf("%s\\n", strerror(stepmark_init()));'
        "for (i = 0; i < 3; i++) { stepmark_begin(decode, chat); stepmark_end(); }"
        "stepmark_tick(decode, chat); stepmark_tock(); stepmark_queued(1, chat);"
        'printf("%u %u\\n", decode, chat);'
    )

    assert engine.said == ["Too many open files", "0 0"]

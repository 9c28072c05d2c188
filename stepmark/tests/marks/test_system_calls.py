"""No mark makes a system call: shown by a seccomp filter that kills at any but write."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

ONLY_WRITE = """
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
int only_write_from_now_on(void);
int only_write_from_now_on(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	struct sock_fprog program = {4, filter};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return 1;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}
"""
IN_C = """
#include "stepmark.h"
static uint32_t decode, chat;
static void mark(void)
{
	stepmark_begin(decode, chat);
	stepmark_begin(decode, 0);
	stepmark_end();
	stepmark_end();
	stepmark_tick(decode, chat);
	stepmark_tick(decode, chat);
	stepmark_tock();
	stepmark_queued(stepmark_now_ns(), chat);
}
int main(void)
{
	int i;

	decode = stepmark_kind("decode"), chat = stepmark_tenant("chat");
	for (i = 0; i < 1000; i++)
		mark();
	if (only_write_from_now_on())
		return 1;
	for (i = 0; i < 1000; i++)
		mark();
	if (write(1, "alive", 5) != 5)
		return 1;
	return getppid();
}
"""
IN_PYTHON = """
import ctypes, os
from stepmark import now_ns, queued, stage, step, tick, tock
decode = step('decode', 'chat')
def mark():
    with decode:
        with stage('sample'): pass
    with step('decode', {{'chat': 9, 'batch': 1}}): pass
    tick('token', 'chat'); tick('token', 'chat'); tock()
    queued(now_ns(), 'chat')
for _ in range(1000): mark()
assert ctypes.CDLL({library!r}).only_write_from_now_on() == 0
for _ in range(1000): {marks}
os.write(1, b"alive")
os.getppid()
"""
ALIVE_UNTIL_THE_NEXT_CALL = (b"alive", -signal.SIGSYS)


def run(*command):
    ended = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    return ended.stdout, ended.returncode


@pytest.fixture
def run_python(compiled):
    library = str(compiled("-shared", "-fPIC", filter_c=ONLY_WRITE))
    return lambda marks: run(sys.executable, "-c", IN_PYTHON.format(library=library, marks=marks))


def test_a_call_kills(run_python):
    assert run_python("os.getppid()") == (b"", -signal.SIGSYS)


def test_python_marks_make_no_system_call(run_python):
    if run_python("now_ns()") != ALIVE_UNTIL_THE_NEXT_CALL:
        pytest.skip("reading this machine's clock is a system call")

    assert run_python("mark()") == ALIVE_UNTIL_THE_NEXT_CALL


def test_c_marks_make_no_system_call(compiled, run_python):
    if run_python("now_ns()") != ALIVE_UNTIL_THE_NEXT_CALL:
        pytest.skip("reading this machine's clock is a system call")

    assert run(compiled(engine_c=ONLY_WRITE + IN_C)) == ALIVE_UNTIL_THE_NEXT_CALL

"""The kernel's own counts of threads, from a made /proc."""

from __future__ import annotations

from tracer.host.counters import ThreadCounters, of_threads


def make_thread(proc, tid, comm="rl-infer (x) y"):
    directory = proc / "7" / "task" / str(tid)
    directory.mkdir(parents=True)
    (directory / "schedstat").write_text("900 1234 56\n")
    (directory / "status").write_text(
        f"Name:\t{comm}\nvoluntary_ctxt_switches:\t11\nnonvoluntary_ctxt_switches:\t22\n"
    )
    (directory / "stat").write_text(f"{tid} ({comm}) S 1 2 3 4 5 6 100 7 3 8 9\n")
    return directory


def test_counts_are_read_behind_a_name_with_anything_in_it(tmp_path):
    make_thread(tmp_path, 7)

    assert of_threads(7, tmp_path) == {7: ThreadCounters("rl-infer (x) y", 1234, 11, 22, 100, 3)}


def test_a_thread_that_ends_meanwhile_is_left_out(tmp_path):
    make_thread(tmp_path, 7)
    (make_thread(tmp_path, 8) / "stat").unlink()

    assert list(of_threads(7, tmp_path)) == [7]
    assert of_threads(9, tmp_path) == {}

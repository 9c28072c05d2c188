"""What the bench reads of the agent: its metrics page, its memory, its profile."""

import cProfile
import pstats

from bench.agent import Window, resident, rows, shares, total

PAGE = """\
# TYPE tailtrace_step_elapsed_seconds histogram
tailtrace_step_elapsed_seconds_count{tenant="a",step="play"} 40.0
tailtrace_step_elapsed_seconds_count{tenant="b}",step="play"} 2.0
tailtrace_step_elapsed_seconds_sum{tenant="a",step="play"} 9.0
tailtrace_self_cpu_seconds_total 1.5
"""
STATUS = """\
Name:\tpython3
VmRSS:\t   50000 kB
RssAnon:\t   40000 kB
RssFile:\t   10000 kB
RssShmem:\t       0 kB
"""


def test_a_series_is_summed_over_its_labels():
    assert 42.0 == total(PAGE, "tailtrace_step_elapsed_seconds_count")
    assert 1.5 == total(PAGE, "tailtrace_self_cpu_seconds_total")


def test_memory_is_read_with_its_parts():
    assert {"VmRSS": 51.2, "RssAnon": 40.96, "RssFile": 10.24, "RssShmem": 0.0} == resident(STATUS)


def test_cpu_time_is_a_share_of_one_core():
    window = Window(
        seconds=2.0,
        agent_cpu_ns=50_000_000,
        switches=200_000,
        steps=4_000,
        lost=0,
        resident=resident(STATUS),
    )
    by_name = {row.what: row for row in rows([window], {"join": 0.5})}

    assert (2.5, False) == (
        by_name["CPU of one core"].measured.median,
        by_name["CPU of one core"].kept,
    )
    assert 1.25 == by_name["of it join"].measured.median
    assert 100_000 == by_name["switches of the load"].measured.median
    assert by_name["resident memory"].kept


def test_the_parts_are_found_in_a_profile_by_function_and_module():
    modules = {
        "publishing.py": "def publish(): sum(range(1_000))",
        "processes.py": "def scan(): sum(range(1_000))",
        "agent.py": """
import time
def read(): sum(range(1_000))
def join(): sum(range(1_000))
def run():
    read(), join(), scan(), publish(), time.sleep(0.01)
""",
    }
    names = {}
    for file, source in modules.items():
        exec(compile(source, file, "exec"), names)
    profile = cProfile.Profile()
    profile.runcall(names["run"])

    found = shares(pstats.Stats(profile))

    assert {"read", "join", "scan", "publish"} == found.keys()
    assert min(found.values()) > 0


class Profile:
    """As cProfile has it, of functions that took so many seconds."""

    def __init__(self, seconds):
        self.stats = {
            (file, 1, function): (1, 1, 0.0, took, {}) for (file, function), took in seconds.items()
        }

    def create_stats(self):
        """They are there."""


def test_shares_are_of_the_time_that_the_agent_did_not_sleep():
    profile = Profile(
        {
            ("/agent/agent.py", "run"): 20.0,
            ("~", "<built-in method time.sleep>"): 10.0,
            ("/agent/agent.py", "read"): 1.0,
            ("/agent/agent.py", "join"): 6.0,
            ("/targets/processes.py", "scan"): 2.0,
            ("/cli/publishing.py", "publish"): 0.5,
        }
    )

    assert {"read": 0.1, "join": 0.6, "scan": 0.2, "publish": 0.05} == shares(pstats.Stats(profile))

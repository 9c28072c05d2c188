"""Step kinds and tenants as the page names them."""

from __future__ import annotations

from stepmark import page as layout


def test_names_are_given_once_and_in_order(python):
    engine = python(
        "for kind in ('decode', 'prefill', 'decode'):\n    with step(kind, 'chat'): pass"
    )

    assert engine.page().kinds() == ["", "decode", "prefill"]
    assert engine.page().tenants() == ["", "chat"]


def test_a_name_is_cut_between_characters(python):
    engine = python("with step('é' * 40, 'x' * 100): pass")

    # 63 bytes are 31 characters of 2 bytes and a byte to spare.
    assert engine.page().kinds() == ["", "é" * 31]
    assert engine.page().tenants() == ["", "x" * 63]


def test_names_that_are_cut_to_the_same_are_the_same(python):
    engine = python("for end in 'ab':\n    with step('k' * 63 + end): pass")

    assert engine.page().kinds() == ["", "k" * 63]


def test_text_that_is_no_unicode_is_replaced(python):
    assert python(r"with step('a\udc80b'): pass").page().kinds() == ["", "a?b"]


def test_the_empty_name_is_no_name(python):
    engine = python("with step('', ''): pass")
    (done,) = engine.page().done()

    assert (engine.page().kinds(), done.kind, done.shares) == ([""], "", {"": 1})


def test_names_beyond_the_table_are_nameless_and_counted(python):
    engine = python(
        "for i in range(260):\n    with step(f'kind {i}', f'tenant {i}'): pass\n"
        "with step('kind 3', 'tenant 3'): pass\n"
        "print(stepmark.status().lost)"
    )
    page = engine.page()

    assert (len(page.kinds()), len(page.tenants())) == (layout.KINDS, layout.TENANTS)
    assert page.lost() == [0, 5, 5, 0]
    assert [it.kind for it in page.done()[-7:]] == ["kind 254", "", "", "", "", "", "kind 3"]
    assert engine.said == [
        "{'slots_full': 0, 'kinds_full': 5, 'tenants_full': 5, 'shares_full': 0}"
    ]


def test_ever_new_names_and_weights_leave_no_memory_behind(python):
    engine = python(
        "import stepmark.marks as marks\n"
        "for i in range(3 * marks.KEPT_MARKS):\n"
        "    with step('decode', {'chat': i + 1}): pass\n"
        "    queued(now_ns(), f'tenant {i}')\n"
        "print(max(map(len, (marks._steps, marks._waits))) <= marks.KEPT_MARKS)"
    )

    assert engine.said == ["True"]

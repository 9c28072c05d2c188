"""Decorated functions: calls, and runs of generators and coroutines."""

from __future__ import annotations

import inspect

import stepmark


def kinds(engine):
    return [(it.parent, it.kind) for it in engine.page().done()]


def test_a_call_is_a_step(python):
    engine = python("@step('add')\ndef add(a, b=1): return a + b\nprint(add(2, b=5), add.__name__)")

    assert (engine.said, kinds(engine)) == (["7 add"], [(0, "add")])


def test_a_decorated_function_is_still_of_its_kind():
    decode = stepmark.step("decode")

    @decode
    def generator():
        yield

    @decode
    async def coroutine(): ...

    @decode
    async def async_generator():
        yield

    assert inspect.isgeneratorfunction(generator)
    assert inspect.iscoroutinefunction(coroutine)
    assert inspect.isasyncgenfunction(async_generator)


def test_each_run_of_a_generator_is_a_step(python):
    engine = python(
        "@step('token')\n"
        "def tokens():\n"
        "    got = yield 1\n"
        "    yield got\n"
        "    return 'end'\n"
        "def outer():\n"
        "    print((yield from tokens()))\n"
        "it = outer()\n"
        "print(next(it))\n"
        "with step('elsewhere'): pass\n"  # between two runs: not a stage of either
        "print(it.send(7), list(it))"
    )

    assert engine.said == ["1", "end", "7 []"]
    assert kinds(engine) == [(0, "token"), (0, "elsewhere"), (0, "token"), (0, "token")]


def test_a_generator_may_catch_what_is_thrown_into_it(python):
    engine = python(
        "@step('token')\n"
        "def tokens():\n"
        "    try: yield 1\n"
        "    except KeyError: yield 2\n"
        "    finally: print('closed')\n"
        "it = tokens()\n"
        "print(next(it), it.throw(KeyError('x')))\n"
        "it.close()"
    )

    assert engine.said == ["1 2", "closed"]


def test_tasks_that_take_turns_do_not_lie_inside_each_others_steps(python):
    engine = python(
        "import asyncio\n"
        "@step('run')\n"
        "async def run(name):\n"
        "    for _ in range(3):\n"
        "        with stage(name): pass\n"
        "        await asyncio.sleep(0)\n"
        "    return name\n"
        "async def main(): return await asyncio.gather(run('a'), run('b'))\n"
        "print(asyncio.run(main()))"
    )
    done = engine.page().done()
    runs = [it for it in done if it.kind == "run"]

    assert engine.said == ["['a', 'b']"]
    assert [it.parent for it in runs] == [0] * 8  # three waits each: four runs each
    assert all(a.end_ns <= b.begin_ns for a, b in zip(runs, runs[1:]))
    assert {it.parent for it in done if it.kind != "run"} <= {it.number for it in runs}


def test_a_cancelled_coroutine_cleans_up_inside_a_step(python):
    engine = python(
        "import asyncio\n"
        "@step('run')\n"
        "async def run():\n"
        "    try: await asyncio.sleep(60)\n"
        "    finally:\n"
        "        with stage('clean up'): pass\n"
        "async def main():\n"
        "    task = asyncio.ensure_future(run())\n"
        "    await asyncio.sleep(0)\n"
        "    task.cancel()\n"
        "    try: await task\n"
        "    except asyncio.CancelledError: print('cancelled')\n"
        "asyncio.run(main())"
    )

    assert engine.said == ["cancelled"]
    assert kinds(engine) == [(0, "run"), (2, "clean up"), (0, "run")]


def test_an_asynchronous_generator_is_marked_run_by_run(python):
    engine = python(
        "import asyncio\n"
        "@step('token')\n"
        "async def tokens():\n"
        "    try:\n"
        "        got = yield 1\n"
        "        await asyncio.sleep(0)\n"
        "        yield got\n"
        "    except KeyError: yield 'caught'\n"
        "    finally: print('closed')\n"
        "async def main():\n"
        "    it = tokens()\n"
        "    print(await it.asend(None), await it.asend(7), await it.athrow(KeyError('x')))\n"
        "    await it.aclose()\n"
        "    print([item async for item in tokens()])\n"
        "asyncio.run(main())"
    )

    assert engine.said == ["1 7 caught", "closed", "closed", "[1, None]"]
    assert set(kinds(engine)) == {(0, "token")}


def test_a_step_held_across_an_await_ends_with_what_is_inside(python):
    """The wrong use that the documentation names: it may mislead, but not corrupt."""
    engine = python(
        "import asyncio\n"
        "async def run(name, turns):\n"
        "    with step(name):\n"
        "        for _ in range(turns): await asyncio.sleep(0)\n"
        "async def main(): await asyncio.gather(run('a', 1), run('b', 3))\n"
        "asyncio.run(main())\n"
        "with step('after'): pass"
    )

    assert kinds(engine) == [(1, "b"), (0, "a"), (0, "after")]
    assert engine.page().slot().step == 0

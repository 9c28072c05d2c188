"""Functions of modules that stay as they are, marked."""

from __future__ import annotations

import pytest

ENGINE = """
class Engine:
    def __init__(self): self.step_function = self.step
    def step(self, number): return 2 * number
    @staticmethod
    def static(): return "static"
    @classmethod
    def named(cls): return cls.__name__
    def tokens(self):
        yield 1
        yield 2
    async def serve(self): return 3
class Special(Engine): pass
LIMIT = 7
def forward(): return 4
"""


@pytest.fixture
def importing(python, tmp_path):
    """Runs code that can import the module ``engine``."""
    (tmp_path / "engine.py").write_text(ENGINE)
    path = f"import sys\nsys.path.insert(0, {str(tmp_path)!r})\nfrom stepmark import wrap\n"
    return lambda code: python(path + code)


def kinds(engine):
    return [it.kind for it in engine.page().done()]


def test_a_module_is_patched_when_it_is_imported(importing):
    engine = importing(
        "wrap('engine:Engine.step')\nwrap('engine:forward', kind='pass', tenants='chat')\n"
        "assert 'engine' not in sys.modules\n"
        "import engine\nprint(engine.Engine().step(4), engine.forward())"
    )
    _, passed = engine.page().done()

    assert (engine.said, kinds(engine)) == (["8 4"], ["Engine.step", "pass"])
    assert passed.shares == {"chat": 1}


def test_a_module_that_is_imported_is_patched_now(importing):
    engine = importing("import engine\nwrap('engine:forward')\nengine.forward()")

    assert kinds(engine) == ["forward"]


def test_instances_bind_the_patched_method(importing):
    engine = importing(
        "wrap('engine:Engine.step')\nfrom engine import Engine\nEngine().step_function(1)"
    )

    assert kinds(engine) == ["Engine.step"]


def test_methods_of_each_kind_work_as_before(importing):
    engine = importing(
        "import asyncio\n"
        "for name in ('static', 'named', 'tokens', 'serve'): wrap(f'engine:Engine.{name}')\n"
        "from engine import Engine, Special\n"
        "print(Engine.static(), Engine().static(), Special.named(), list(Engine().tokens()))\n"
        "print(asyncio.run(Engine().serve()))"
    )

    assert engine.said == ["static static Special [1, 2]", "3"]
    assert kinds(engine) == [
        *["Engine.static"] * 2,
        "Engine.named",
        *["Engine.tokens"] * 3,
        "Engine.serve",
    ]


def test_an_inherited_method_is_patched_for_the_class_named_alone(importing):
    engine = importing(
        "wrap('engine:Special.step')\nfrom engine import Engine, Special\n"
        "print(Engine().step(1), Special().step(2))"
    )

    assert (engine.said, kinds(engine)) == (["2 4"], ["Special.step"])


def test_a_module_keeps_its_own_loader(importing):
    engine = importing(
        "import inspect\nwrap('engine:forward')\nimport engine\n"
        "print(type(engine.__loader__).__name__, engine.__spec__.loader is engine.__loader__)\n"
        "print(inspect.getsource(engine.Engine.step).strip())"
    )

    assert engine.said == [
        "SourceFileLoader True",
        "def step(self, number): return 2 * number",
    ]


def test_asking_whether_a_module_exists_changes_nothing(importing):
    engine = importing(
        "import importlib.util\nwrap('engine:forward')\nwrap('nowhere:f')\n"
        "print(importlib.util.find_spec('engine').name, importlib.util.find_spec('nowhere'))\n"
        "import engine\nengine.forward()\n"
        "try: import nowhere\nexcept ModuleNotFoundError as error: print(error)"
    )

    assert engine.said == ["engine None", "No module named 'nowhere'"]
    assert kinds(engine) == ["forward"]


def test_a_missing_function_does_not_fail_the_import(importing):
    engine = importing(
        "import warnings\n"
        "wrap('engine:Engine.gone')\nwrap('engine:LIMIT')\nwrap('engine:forward')\n"
        "with warnings.catch_warnings(record=True) as caught:\n"
        "    warnings.simplefilter('always')\n"
        "    import engine\n"
        "for warning in caught: print(warning.message)\n"
        "engine.forward()"
    )

    assert engine.said == [
        "stepmark: module engine has no Engine.gone",
        "stepmark: engine:LIMIT is 7, must be a function or method",
    ]
    assert kinds(engine) == ["forward"]


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("engine", "ValueError wrap target is 'engine', must look like module:Class.method"),
        ("engine:", "ValueError wrap target is 'engine:', must look like module:Class.method"),
        ("a b:c", "ValueError wrap target is 'a b:c', must look like module:Class.method"),
        ("engine:gone", "AttributeError module engine has no gone"),
        ("engine:LIMIT", "TypeError engine:LIMIT is 7, must be a function or method"),
        (
            "engine:Engine",
            "TypeError engine:Engine is <class 'engine.Engine'>, must be a function or method",
        ),
    ],
)
def test_what_cannot_be_wrapped_is_refused_in_one_line(importing, target, said):
    engine = importing(
        f"import engine\ntry: wrap({target!r})\n"
        "except (ValueError, AttributeError, TypeError) as error:\n"
        "    print(type(error).__name__, error)"
    )

    assert engine.said == [said]

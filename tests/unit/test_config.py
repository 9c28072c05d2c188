"""Configuration: what is accepted, and the one line that every mistake gets."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tracer.config import Config, ExpectedNode, Kubelet, Match, Memory, Rule, Tenants, load
from tracer.errors import UsageError

REPOSITORY = Path(__file__).parents[2]
in_one_directory = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "tailtrace.yaml"


def refusal(file: Path, text: str) -> str:
    file.write_text(text)
    with pytest.raises(UsageError) as refused:
        load(file)
    return str(refused.value).removeprefix(f"{file}: ")


def test_without_a_file_every_marked_process_is_traced_under_its_comm():
    (rule,) = Config().targets

    assert (rule.match.marked, rule.tenant) == (True, "{comm}")


@pytest.mark.parametrize("text", ["", "# only a comment\n", "{}"])
def test_an_empty_file_gives_the_defaults(file, text):
    file.write_text(text)

    assert Config() == load(file)


def test_the_example_has_every_key_and_the_defaults_of_all_but_targets():
    path = REPOSITORY / "tailtrace.example.yaml"

    assert set(Config.__struct_fields__) == set(yaml.safe_load(path.read_text()))
    assert Config() == msgspec.structs.replace(load(path), targets=Config().targets)


@pytest.mark.parametrize("struct", [Config, Tenants, Memory, ExpectedNode, Rule, Match, Kubelet])
def test_the_documentation_names_every_key(struct):
    text = (REPOSITORY / "docs/configuration.md").read_text()

    assert [key for key in struct.__struct_fields__ if f"`{key}`" not in text] == []


def test_text_stays_text_whatever_yaml_makes_of_it(file):
    file.write_text("targets: [{name: 123, match: {comm: yes, user: 1000}}]")

    (rule,) = load(file).targets
    assert (rule.name, rule.match.comm, rule.match.user) == ("123", "yes", "1000")


def test_rules_may_overlap_while_each_decides_something(file):
    file.write_text(
        "targets:\n"
        "- {name: a, match: {comm: x, marked: true}}\n"
        "- {name: b, match: {comm: x, user: root}}\n"
        "- {name: c, match: {marked: true}}\n"
        "- {name: d, match: {marked: false}}\n"
    )

    assert ["a", "b", "c", "d"] == [rule.name for rule in load(file).targets]


def test_a_rule_without_tenant_uses_its_own_name():
    assert Rule(name="chat", match=Match(comm="chat*")).tenant == "chat"


MATCH = "match: {marked: true}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("window_seconds: abc", "window_seconds is 'abc', must be a whole number"),
        ("window_seconds: 4", "window_seconds is 4, must be 10 to 3600"),
        ("drain_ms: 5001", "drain_ms is 5001, must be 20 to 5000"),
        ("outlier_ms: .nan", "outlier_ms is '.nan', must be a number"),
        ("outlier_ms: nan", "outlier_ms is nan, must be 0.05 to 60000"),
        ("outlier_ms: 0", "outlier_ms is 0.0, must be 0.05 to 60000"),
        ("tenants: {max: 1}", "tenants.max is 1, must be 2 to 1000"),
        ("tenants: 7", "tenants is '7', must be a mapping of keys to values"),
        ("tenants: {min: 7}", "tenants.'min': no such key, must be one of max"),
        ("[1]", "the file is ['1'], must be a mapping of keys to values"),
        ("targets: []", "targets is [], must be 1 to 1000 rules, each with a name of its own"),
        (f"targets: [{{{MATCH}}}]", "targets[0].name is missing and has no default"),
        (
            "targets: [{name: a, match: {}}]",
            "targets[0].match.comm, cmdline, cgroup, user, marked, namespace, pod, labels are all "
            "missing, give at least one",
        ),
        (
            "targets: [{name: a, match: {marked: maybe}}]",
            "targets[0].match.marked is 'maybe', must be true or false",
        ),
        (
            "targets: [{name: a, match: {cmdline: 'x('}}]",
            "targets[0].match.cmdline is 'x(', must be a valid pattern: "
            "missing ), unterminated subpattern at position 1",
        ),
        (
            f"targets: [{{name: a b, {MATCH}}}]",
            "targets[0].name is 'a b', must be 1 to 63 letters, digits, '_', '.', '-' (not first)",
        ),
        (
            f"targets: [{{name: a, {MATCH}}}, {{name: a, {MATCH}}}]",
            "targets is ['a', 'a'], must be 1 to 1000 rules, each with a name of its own",
        ),
        (
            f"targets: [{{name: a, {MATCH}, tenant: '{{pid}}'}}]",
            "targets[0].tenant is '{pid}', must be 1 to 128 printable characters "
            "with only {comm}, {container}, {namespace}, {pod}, {labels[KEY]}, {annotations[KEY]} "
            "in braces",
        ),
        (
            "targets: [{name: a, match: {labels: 'tier in (gold)'}}]",
            "targets[0].match.labels is 'tier in (gold)', must be terms such as app=chat, "
            "tier!=batch, gpu, !debug, joined by commas",
        ),
        (
            "targets: [{name: a, match: {labels: gpu}}]",
            "kubelet.host is '', must be given, because the rule a asks for pods",
        ),
        (
            f"targets: [{{name: a, {MATCH}, tenant: '{{labels[app]}}'}}]",
            "kubelet.host is '', must be given, because the rule a asks for pods",
        ),
        (
            "kubelet: {host: 'https://node'}",
            "kubelet.host is 'https://node', must be a name or address, or $VARIABLE",
        ),
        ("kubelet: {port: 0}", "kubelet.port is 0, must be 1 to 65535"),
        ("kubelet: {interval_seconds: 1}", "kubelet.interval_seconds is 1, must be 5 to 3600"),
        (
            "kubelet: {url: x}",
            "kubelet.'url': no such key, must be one of host, port, server_name, ca_file, "
            "token_file, interval_seconds",
        ),
        (
            f"targets: [{{name: a, {MATCH}}}, {{name: b, match: {{comm: x, marked: true}}}}]",
            "targets: the rule b decides nothing, because a before it matches all that it matches; "
            "put it first, or remove it",
        ),
        ("window_seconds: 5\nwindow_seconds: 6", "line 1, column 1: a key of this mapping is "
         "given twice, or is not one word"),
        ("a: &a [x]\nb: *a", "line 2, column 4: aliases are not allowed"),
        ("a: [1", "line 1, column 6: expected ',' or ']', but got '<stream end>'"),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_its_place_and_what_is_allowed(file, text, message):
    assert message == refusal(file, text)


@pytest.mark.parametrize("field", ["{comm!r}", "{comm:>99}", "{comm.x}", "{}", "{0}", "{", "a\nb"])
def test_a_tenant_template_has_plain_fields_only(field):
    with pytest.raises(ValueError, match="tenant is"):
        Rule(name="a", match=Match(marked=True), tenant=field)


@pytest.mark.parametrize(
    ("listen", "address"),
    [
        ("127.0.0.1:9435", ("127.0.0.1", 9435)),
        ("[::1]:0", ("::1", 0)),
        ("localhost:65535", ("localhost", 65535)),
    ],
)
def test_an_address_is_host_and_port(listen, address):
    assert address == Config(listen=listen).address


@pytest.mark.parametrize("listen", ["9435", ":9435", "::1:9435", "[:::1]:1", "a:65536", "a:-1", "a b:1", "a:١"])  # fmt: skip  # noqa: E501, RUF001
def test_anything_else_is_not_an_address(listen):
    with pytest.raises(ValueError, match=r"listen is .*, must be HOST:PORT or \[IPV6\]:PORT"):
        Config(listen=listen)


@pytest.mark.parametrize(
    "text",
    [
        "x" * (1 << 20) + "x",
        "[" * 100_000,
        "{a: " * 100_000,
        "- 1\n" * 30_000,
        "window_seconds: " + "9" * 100_000,
        "!!python/object/apply:os.system [true]",
        "\x00",
    ],
    ids=["too large", "deep lists", "deep mappings", "many", "long number", "tag", "NUL"],
)
def test_an_excessive_file_is_refused_in_one_short_line(file, text):
    message = refusal(file, text)

    assert "\n" not in message
    assert len(message) < 200


@pytest.mark.parametrize("name", [".", "missing.yaml"])
def test_an_unreadable_path_is_named(tmp_path, name):
    with pytest.raises(UsageError, match="give a readable YAML file"):
        load(tmp_path / name)


def test_bytes_that_are_not_utf8_are_refused(file):
    file.write_bytes(b"listen: \xff")

    with pytest.raises(UsageError, match="byte 8 is not UTF-8"):
        load(file)


keys = st.sampled_from([*Config.__struct_fields__, *Rule.__struct_fields__, "max", "x"])
trees = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4),
)


@in_one_directory
@given(tree=trees)
def test_any_tree_is_a_configuration_or_one_line(file, tree):
    file.write_text(yaml.safe_dump(tree))
    try:
        assert isinstance(load(file), Config)
    except UsageError as refused:
        assert "\n" not in str(refused)


@in_one_directory
@given(raw=st.binary(max_size=200))
def test_any_bytes_are_a_configuration_or_a_usage_error(file, raw):
    file.write_bytes(raw)
    try:
        assert isinstance(load(file), Config)
    except UsageError as refused:
        assert str(file) in str(refused)

"""
The system's ``libbpf.so.1`` through ctypes. The only module that knows pointers.
"""

from __future__ import annotations

import ctypes as c
import errno
import os
import struct
from collections.abc import Collection, Iterable
from functools import cache
from pathlib import Path
from threading import Thread
from typing import Any

from tracer.errors import UnavailableError
from tracer.host.privileges import Privilege, in_words, lacking

Pointer = c.c_void_p
_LOG_SIZE = 1 << 16

# include/uapi/linux/perf_event.h, PERF_ATTR_SIZE_VER0: type, size, config, sample_period, ...
_PERF_EVENT_ATTR = struct.Struct("=IIQQ40x")
_PERF_TYPE_SOFTWARE = 1  # whose config 0 is PERF_COUNT_SW_CPU_CLOCK
_PERF_FLAG_FD_CLOEXEC = 8
_PERF_EVENT_OPEN = {"x86_64": 298, "aarch64": 241}

_BPF_F_TEST_RUN_ON_CPU = 1  # include/uapi/linux/bpf.h


class _TestRunOptions(c.Structure):
    """struct bpf_test_run_opts of libbpf's bpf.h."""

    _fields_ = (
        ("size", c.c_size_t),
        ("data_in", c.c_void_p),
        ("data_out", c.c_void_p),
        ("data_size_in", c.c_uint32),
        ("data_size_out", c.c_uint32),
        ("context", c.c_void_p),
        ("context_out", c.c_void_p),
        ("context_size", c.c_uint32),
        ("context_size_out", c.c_uint32),
        ("returned", c.c_uint32),
        ("repeat", c.c_int),
        ("duration", c.c_uint32),
        ("flags", c.c_uint32),
        ("cpu", c.c_uint32),
        ("batch_size", c.c_uint32),
    )


@cache
def _library() -> c.CDLL:
    try:
        library = c.CDLL("libbpf.so.1", use_errno=True)
    except OSError as e:
        raise UnavailableError(
            "libbpf.so.1 is not installed (Debian and Ubuntu: apt-get install libbpf1)"
        ) from e
    library.libbpf_set_print(None)  # errors are ours to tell
    return library


@cache
def _function(name: str, result: Any, *arguments: Any) -> Any:
    function = getattr(_library(), name)
    function.restype, function.argtypes = result, arguments
    return function


def _not_null(pointer: int | None, doing: str) -> Pointer:
    """libbpf 1.x returns NULL and sets errno."""
    if not pointer:
        raise UnavailableError(f"{doing}: {os.strerror(c.get_errno())}")
    return c.c_void_p(pointer)


def btf_parse(path: Path) -> Pointer:
    parse = _function("btf__parse", c.c_void_p, c.c_char_p, c.c_void_p)
    return _not_null(parse(os.fsencode(path), None), f"{path}: no debug information")


def btf_of_kernel() -> Pointer:
    """Raises UnavailableError when the kernel has none."""
    handle = _function("btf__load_vmlinux_btf", c.c_void_p)()
    if not handle:
        raise UnavailableError(
            "this kernel has no BTF, /sys/kernel/btf/vmlinux: boot one with CONFIG_DEBUG_INFO_BTF"
        )
    return c.c_void_p(handle)


def btf_free(btf: Pointer) -> None:
    _function("btf__free", None, c.c_void_p)(btf)


def btf_find(btf: Pointer, name: str, kind: int) -> int | None:
    """The id of a type by name and kind."""
    find = _function("btf__find_by_name_kind", c.c_int32, c.c_void_p, c.c_char_p, c.c_uint32)
    found: int = find(btf, name.encode(), kind)
    return found if found > 0 else None


def btf_type_bytes(btf: Pointer, at: int, offset: int, size: int) -> bytes:
    """Raw bytes of a ``struct btf_type`` and of what follows it."""
    by_id = _function("btf__type_by_id", c.c_void_p, c.c_void_p, c.c_uint32)
    return c.string_at(by_id(btf, at) + offset, size)


def btf_name(btf: Pointer, offset: int) -> str:
    by_offset = _function("btf__name_by_offset", c.c_char_p, c.c_void_p, c.c_uint32)
    name: bytes = by_offset(btf, offset)
    return name.decode()


class BpfObject:
    """
    One object file, from opening to closing. Nothing is pinned: programs, links and maps end with
    the process, however it ends.
    """

    def __init__(self, path: Path) -> None:
        opened = _function("bpf_object__open", c.c_void_p, c.c_char_p)(os.fsencode(path))
        self._object = _not_null(opened, f"{path}: cannot be opened as a BPF object")
        self._path = path
        self._links: dict[str, Pointer] = {}
        self._log = c.create_string_buffer(_LOG_SIZE)
        self._loading = Thread(target=self._load, name="load")
        self._load_error = 0

    @property
    def btf(self) -> Pointer:
        return _not_null(_function("bpf_object__btf", c.c_void_p, c.c_void_p)(self._object), "btf")

    def programs(self) -> dict[str, Pointer]:
        """Name -> program, in the order of the file."""
        found = {}
        following = _function("bpf_object__next_program", c.c_void_p, c.c_void_p, c.c_void_p)
        name = _function("bpf_program__name", c.c_char_p, c.c_void_p)
        program = following(self._object, None)
        while program:
            found[name(program).decode()] = c.c_void_p(program)
            program = following(self._object, program)
        return found

    def keep_programs(self, wanted: Collection[str]) -> None:
        """Before load: the others will be neither loaded nor attached."""
        autoload = _function("bpf_program__set_autoload", c.c_int, c.c_void_p, c.c_bool)
        for name, program in self.programs().items():
            autoload(program, name in wanted)

    def trace_function(self, program: str, function: str) -> None:
        """
        Before load: the kernel function that a program for an entry or a return is meant for.

        Raises UnavailableError when this kernel has no such function.
        """
        set_target = _function(
            "bpf_program__set_attach_target", c.c_int, c.c_void_p, c.c_int, c.c_char_p
        )
        if error := set_target(self.programs()[program], 0, function.encode()):
            raise UnavailableError(f"no function {function} in BTF: {os.strerror(-error)}")

    def constants(self) -> memoryview:
        """The bytes of ``.rodata``, writable until load."""
        size = c.c_size_t()
        value = _function("bpf_map__initial_value", c.c_void_p, c.c_void_p, c.c_void_p)
        data = value(self._section(".rodata"), c.byref(size))
        return memoryview((c.c_char * size.value).from_address(data)).cast("B")

    def section_fd(self, suffix: str) -> int:
        """After load: the map that holds the variables of a section such as ``.bss``."""
        return self._fd(self._section(suffix))

    def _section(self, suffix: str) -> Pointer:
        """libbpf puts a part of the object's name before the section's."""
        following = _function("bpf_object__next_map", c.c_void_p, c.c_void_p, c.c_void_p)
        name = _function("bpf_map__name", c.c_char_p, c.c_void_p)
        bpf_map = following(self._object, None)
        while bpf_map and not name(bpf_map).endswith(suffix.encode()):
            bpf_map = following(self._object, bpf_map)
        return _not_null(bpf_map, f"{self._path}: section {suffix}")

    def resize_map(self, name: str, entries: int) -> None:
        """Before load: how many entries the map has."""
        resize = _function("bpf_map__set_max_entries", c.c_int, c.c_void_p, c.c_uint32)
        if resize(self._map(name), entries):
            raise UnavailableError(f"{self._path}: map {name} cannot have {entries} entries")

    def load(self) -> None:
        """
        Hand everything to the kernel. Raises UnavailableError with the verifier's last words.
        """
        self.begin_loading()
        self.finish_loading()

    def begin_loading(self) -> None:
        """The same in a thread: the verifier takes its time."""
        self._loading.start()

    def finish_loading(self) -> None:
        self._loading.join()
        if self._load_error:
            raise UnavailableError(self._refusal(-self._load_error))

    def _load(self) -> None:
        set_log = _function("bpf_program__set_log_buf", c.c_int, c.c_void_p, c.c_void_p, c.c_size_t)
        for program in self.programs().values():
            set_log(program, self._log, _LOG_SIZE)
        self._load_error = _function("bpf_object__load", c.c_int, c.c_void_p)(self._object)

    def _refusal(self, error: int) -> str:
        lines = self._log.value.decode(errors="replace").strip().splitlines()
        said = [line for line in lines if not line.startswith(("processed ", "-- END"))]
        why = f"{os.strerror(error)}: {said[-1]}" if said else os.strerror(error)
        if error == errno.EPERM:
            why += f" ({_what_forbids()})"
        return f"{self._path.name}: the kernel refuses it: {why}"

    def attach(self, names: Iterable[str]) -> None:
        """Attach all or none of the loaded programs. Iterators wait for :meth:`run_iterator`."""
        attach = _function("bpf_program__attach", c.c_void_p, c.c_void_p)
        programs = self.programs()
        try:
            for name in names:
                self._links[name] = _not_null(attach(programs[name]), f"attach {name}")
        except UnavailableError:
            self.detach()
            raise

    def detach(self) -> None:
        destroy = _function("bpf_link__destroy", c.c_int, c.c_void_p)
        while self._links:
            destroy(self._links.popitem()[1])

    def run_iterator(self, name: str) -> None:
        """Run an attached iterator program once over all of its objects."""
        link_fd = _function("bpf_link__fd", c.c_int, c.c_void_p)(self._links[name])
        fd: int = _function("bpf_iter_create", c.c_int, c.c_int)(link_fd)
        if fd < 0:
            raise UnavailableError(f"run {name}: {os.strerror(-fd)}")
        try:
            while os.read(fd, 4096):
                pass
        finally:
            os.close(fd)

    def run_once(self, name: str, context: bytes, cpu: int | None = None) -> None:
        """
        Run a loaded program now, on this CPU or, one of type raw_tracepoint, on another, and wait
        for its end.
        """
        given = c.create_string_buffer(context, len(context))
        options = _TestRunOptions(
            size=c.sizeof(_TestRunOptions),
            context=c.cast(given, c.c_void_p),
            context_size=len(context),
            flags=0 if cpu is None else _BPF_F_TEST_RUN_ON_CPU,
            cpu=cpu or 0,
        )
        run = _function("bpf_prog_test_run_opts", c.c_int, c.c_int, c.c_void_p)
        if error := run(self._program_fd(name), c.byref(options)):
            raise UnavailableError(f"run {name}: {os.strerror(-error)}")

    def map_fd(self, name: str) -> int:
        return self._fd(self._map(name))

    def _fd(self, bpf_map: Pointer) -> int:
        fd: int = _function("bpf_map__fd", c.c_int, c.c_void_p)(bpf_map)
        return fd

    def update(self, name: str, key: bytes, value: bytes) -> None:
        """Write one entry of a map."""
        update = _function(
            "bpf_map_update_elem", c.c_int, c.c_int, c.c_char_p, c.c_char_p, c.c_uint64
        )
        if error := update(self.map_fd(name), key, value, 0):
            raise UnavailableError(f"map {name}: {os.strerror(-error)}")

    def lookup(self, name: str, key: bytes) -> bytes:
        """Read one entry of a map. Raises UnavailableError when there is none."""
        size = _function("bpf_map__value_size", c.c_uint32, c.c_void_p)(self._map(name))
        value = c.create_string_buffer(size)
        lookup = _function("bpf_map_lookup_elem", c.c_int, c.c_int, c.c_char_p, c.c_void_p)
        if error := lookup(self.map_fd(name), key, value):
            raise UnavailableError(f"map {name}: {os.strerror(-error)}")
        return value.raw

    def entries(self, name: str) -> tuple[bytes, bytes]:
        """All of a hash map, in one call: its keys and its values, one behind the other."""
        sizes = [
            _function(f"bpf_map__{what}", c.c_uint32, c.c_void_p)(self._map(name))
            for what in ("key_size", "value_size", "max_entries")
        ]
        keys, values = (c.create_string_buffer(size * sizes[-1]) for size in sizes[:2])
        count, position = c.c_uint32(sizes[-1]), c.c_uint64()
        lookup = _function("bpf_map_lookup_batch", c.c_int, c.c_int, *[c.c_void_p] * 6)
        error = lookup(
            self.map_fd(name), None, c.byref(position), keys, values, c.byref(count), None
        )
        if error not in (0, -errno.ENOENT):  # ENOENT: these are all
            raise UnavailableError(f"map {name}: {os.strerror(-error)}")
        return keys.raw[: sizes[0] * count.value], values.raw[: sizes[1] * count.value]

    def delete(self, name: str, key: bytes) -> None:
        """Remove one entry of a map; one that is not there is fine."""
        _function("bpf_map_delete_elem", c.c_int, c.c_int, c.c_char_p)(self.map_fd(name), key)

    def program_info(self, name: str, size: int) -> bytes:
        """The kernel's ``struct bpf_prog_info`` of a loaded program, ``size`` bytes of it."""
        info, length = c.create_string_buffer(size), c.c_uint32(size)
        get = _function("bpf_obj_get_info_by_fd", c.c_int, c.c_int, c.c_void_p, c.c_void_p)
        if error := get(self._program_fd(name), info, c.byref(length)):
            raise UnavailableError(f"program {name}: {os.strerror(-error)}")
        return info.raw

    def _program_fd(self, name: str) -> int:
        fd: int = _function("bpf_program__fd", c.c_int, c.c_void_p)(self.programs()[name])
        return fd

    def _map(self, name: str) -> Pointer:
        find = _function("bpf_object__find_map_by_name", c.c_void_p, c.c_void_p, c.c_char_p)
        return _not_null(find(self._object, name.encode()), f"{self._path}: map {name}")

    def close(self) -> None:
        self.detach()
        _function("bpf_object__close", None, c.c_void_p)(self._object)


def _what_forbids() -> str:
    """What a process that may not load BPF programs lacks."""
    if missing := lacking(Privilege.BPF, Privilege.PERFMON):
        return f"the agent lacks {in_words(missing)}: grant that, or run it as root"
    return "capabilities suffice: a seccomp profile, a user namespace or lockdown forbids it"


def expire_regularly(cpu: int, period_ns: int) -> int:
    """Have a hard timer expire on a CPU, for nobody, until the returned descriptor is closed.

    It is that of a ``cpu-clock`` event of perf_event_open(2) (perf_swevent_start_hrtimer), of
    which nobody takes the samples.
    """
    attributes = _PERF_EVENT_ATTR.pack(_PERF_TYPE_SOFTWARE, _PERF_EVENT_ATTR.size, 0, period_ns)
    number = _PERF_EVENT_OPEN.get(os.uname().machine)
    if number is None:
        raise UnavailableError(f"a timer on CPU {cpu}: not known how on {os.uname().machine}")
    system_call = c.CDLL(None, use_errno=True).syscall
    fd: int = system_call(number, attributes, -1, cpu, -1, _PERF_FLAG_FD_CLOEXEC)
    if fd < 0:
        raise UnavailableError(f"a timer on CPU {cpu}: {os.strerror(c.get_errno())}")
    return fd


def count_run_time() -> int:
    """Have the kernel measure run times of BPF programs until the returned descriptor is closed."""
    fd: int = _function("bpf_enable_stats", c.c_int, c.c_int)(0)  # BPF_STATS_RUN_TIME
    if fd < 0:
        raise UnavailableError(f"BPF statistics: {os.strerror(-fd)}")
    return fd

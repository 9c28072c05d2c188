"""Whether the kernel allows programs at the entry and the return of its functions."""

from __future__ import annotations

from tracer.errors import UnavailableError
from tracer.kernel.btf import Btf, object_path
from tracer.kernel.libbpf import BpfObject


def refusal(kernel: Btf, function: str) -> str:
    """
    Why a function cannot be traced here; empty when it can.

    Asked by attaching a program that does nothing: types tell that a function exists, not that it
    was left whole by the compiler or that it may be traced. One that does not exist is not asked
    for: libbpf 1.1 looks for it in all modules, and leaves a descriptor open for each.
    """
    if not kernel.has_function(function):
        return f"no function {function}() in this kernel's BTF"
    program = BpfObject(object_path("fentry"))
    try:
        program.trace_function("on_entry", function)
        program.load()
        program.attach(["on_entry"])
    except UnavailableError as e:
        return f"{function}() cannot be traced: {e}"
    finally:
        program.close()
    return ""

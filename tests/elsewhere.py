"""A process in which Python is as on Windows, so far as that can be had on Linux: ``hide`` makes it so.

What Windows lacks is taken from the stubs that mypy ships. Windows also refuses to open a folder, to synchronize a file
that was opened to be read, to remove or replace a file that is open, and to rename a file onto another one.
"""

import ast
import errno
import io
import json
import os
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import mypy

ROOT = Path(__file__).parents[1]
STUBS = Path(mypy.__file__).parent / "typeshed" / "stdlib"
#: What asks for the platform when it is imported, which stays: so it is imported before anything is hidden.
LIBRARIES = ("apache_beam", "click._termui_impl", "matplotlib.pyplot", "pyarrow.parquet", "scipy.special", "shutil")
#: Modules that Windows has, and has less of.
PARTLY = ("errno", "mmap", "os", "select", "signal", "socket", "time")


@cache
def names_of(module: str, platform: str) -> frozenset[str]:
    """The names that a module of the standard library has on a platform; of one that the platform lacks, none."""
    path = STUBS / module / "__init__.pyi" if (STUBS / module).is_dir() else STUBS / f"{module}.pyi"
    return frozenset(_named(ast.parse(path.read_text(encoding="utf-8")).body, platform))


def _named(nodes: Iterable[ast.stmt], platform: str) -> Iterable[str]:
    known = {"sys": SimpleNamespace(platform=platform, version_info=sys.version_info)}
    for node in nodes:
        match node:
            case ast.If(test=test, body=then, orelse=otherwise):
                holds = eval(compile(ast.Expression(test), "stub", "eval"), known)
                yield from _named(then if holds else otherwise, platform)
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.AnnAssign(target=ast.Name(name)):
                yield name
            case ast.ImportFrom(module=str(module), names=names) if module.startswith("_") and module != "_typeshed":
                yield from (alias.asname or alias.name for alias in names)


@cache
def lacking(module: str, platform: str = "win32") -> frozenset[str]:
    """The names that a module has on Linux, and not on the platform."""
    return names_of(module, "linux") - names_of(module, platform)


@cache
def lacking_modules() -> frozenset[str]:
    """The modules of the standard library that Windows lacks."""
    modules = {path.stem for path in STUBS.glob("*.pyi")} & sys.stdlib_module_names
    return frozenset(each for each in modules if names_of(each, "linux") and not names_of(each, "win32"))


def hide(*, links: bool = True) -> None:
    """Let this process lack what Windows lacks; without ``links``, hard links too."""
    for library in LIBRARIES:
        import_module(library)
    flock = import_module("fcntl").flock
    sys.modules["msvcrt"] = msvcrt(flock)
    for name in lacking_modules() - {"posix"}:  # which is Python itself
        sys.modules[name] = None  # type: ignore[assignment]
    for module in (os, import_module("signal")):
        for name in (lacking(module.__name__) & vars(module).keys()) - {"statvfs"}:  # by which shutil says what is free
            delattr(module, name)
    if not links:
        del os.link
    _as_windows_does()


def msvcrt(flock: Callable[[int, int], None]) -> ModuleType:
    """Stand for the module of Windows. The lock of one byte behind the end of a file is here that of the file."""
    exclusive, at_once, none = 2, 4, 8

    def locking(descriptor: int, mode: int, nbytes: int) -> None:
        assert (os.lseek(descriptor, 0, os.SEEK_CUR), nbytes) == (1 << 30, 1)
        try:
            flock(descriptor, mode)
        except BlockingIOError:
            raise PermissionError(errno.EACCES, "Permission denied") from None

    module: Any = ModuleType("msvcrt")
    module.LK_NBLCK, module.LK_UNLCK, module.locking = exclusive | at_once, none, locking
    return module  # type: ignore[no-any-return]


def _as_windows_does() -> None:
    opened, fsync, replace, rename, unlink = os.open, os.fsync, os.replace, os.rename, os.unlink

    def refuse(path: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    def open_no_folder(path: Any, *arguments: Any, **named: Any) -> int:
        if not isinstance(path, int) and os.path.isdir(path):
            refuse(path)
        return opened(path, *arguments, **named)

    def fsync_written(fd: Any) -> None:
        descriptor = fd if isinstance(fd, int) else fd.fileno()
        flags = Path(f"/proc/self/fdinfo/{descriptor}").read_text(encoding="ascii").split("flags:")[1].split()[0]
        if not int(flags, 8) & (os.O_WRONLY | os.O_RDWR):
            raise OSError(errno.EBADF, "Bad file descriptor")
        fsync(fd)

    def refuse_open(path: Any) -> None:
        if any(os.path.realpath(path) == os.path.realpath(each) for each in Path("/proc/self/fd").iterdir()):
            refuse(path)

    def of_closed(call: Callable[..., None], *, both: bool) -> Callable[..., None]:
        def called(path: Any, *others: Any, **named: Any) -> None:
            if not named:  # as tempfile calls it, in folders of its own
                for each in (path, *others) if both else (path,):
                    refuse_open(each)
            call(path, *others, **named)

        return called

    def rename_new(path: Any, new: Any) -> None:
        if os.path.lexists(new):
            raise FileExistsError(errno.EEXIST, "File exists", str(new))
        rename(path, new)

    os.open, os.fsync = open_no_folder, fsync_written
    os.unlink = os.remove = of_closed(unlink, both=False)
    os.replace, os.rename = of_closed(replace, both=True), of_closed(rename_new, both=False)


def run(commands: Sequence[Sequence[str]]) -> list[tuple[int, str, str]]:
    """Run ``uldp`` with the arguments of each command; return exit codes, outputs and errors."""
    from uldp.pipelines.cli import main

    results = []
    for arguments in commands:
        sys.argv, code = ["uldp", *arguments], 0
        with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
            try:
                main()
            except SystemExit as stop:
                code = int(stop.code or 0)
            except BaseException:
                traceback.print_exc()
                code = -1
        results.append((code, out.getvalue(), err.getvalue()))
    return results


def elsewhere(
    cwd: Path, commands: Sequence[Sequence[str | Path]], answers: str = "", *, links: bool = True
) -> list[tuple[int, str, str]]:
    """Run commands in a folder, one after the other in one such process, which reads the answers; return as ``run``."""
    given = json.dumps([[str(each) for each in arguments] for arguments in commands])
    program = f"import json, sys; sys.path.append({str(ROOT)!r}); from tests.elsewhere import hide, run"
    program += f"; hide(links={links}); commands, sys.argv = json.loads(sys.argv[1]), []; found = run(commands)"
    program += "; json.dump(found, sys.stdout)"
    done = subprocess.run(
        [sys.executable, "-c", program, given], input=answers, capture_output=True, text=True, check=True, cwd=cwd
    )
    return [(code, out, err) for code, out, err in json.loads(done.stdout)]

"""The sockets on which processes of this machine listen, as Linux lists them."""

import ipaddress
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
#: The state of a socket that listens, in the tables of the kernel.
LISTENS = "0A"


@dataclass(frozen=True, order=True)
class Listener:
    """A port, and the address that it is bound to.

    Attributes:
        program: The arguments of the process that listens.
    """

    address: str
    port: int
    program: str

    @property
    def is_loopback(self) -> bool:
        """Return whether only programs of this machine reach it."""
        address = ipaddress.ip_address(self.address)
        return (getattr(address, "ipv4_mapped", None) or address).is_loopback


def listeners_below(process: int) -> set[Listener]:
    """Return the ports of a process and of all that it has started."""
    parents = {number: int(_fields(number)[1]) for number in _processes()}

    def below(number: int) -> bool:
        return number == process or (number in parents and below(parents[number]))

    return _listeners(below)


def listeners_of_session(leader: int) -> set[Listener]:
    """Return the ports of all processes of a session, such as a terminal's."""
    return _listeners(lambda number: int(_fields(number)[3]) == leader)


def _listeners(belongs: Callable[[int], bool]) -> set[Listener]:
    sockets = dict(_sockets())
    return {
        Listener(*sockets[inode], program)
        for number in _processes()
        if belongs(number)
        for program, inode in _open(number)
        if inode in sockets
    }


def _processes() -> list[int]:
    return [int(folder.name) for folder in PROC.iterdir() if folder.name.isdecimal()]


def _fields(process: int) -> list[str]:
    """Return state, parent, group and session of a process; zeros if it has ended."""
    try:
        return (PROC / str(process) / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return ["0"] * 4


def _open(process: int) -> Iterator[tuple[str, str]]:
    folder = PROC / str(process)
    try:
        program = (folder / "cmdline").read_text(encoding="utf-8").replace("\0", " ")
        for file in (folder / "fd").iterdir():
            yield program, file.readlink().name.removeprefix("socket:[").removesuffix("]")
    except OSError:  # it has ended
        return


def _sockets() -> Iterator[tuple[str, tuple[str, int]]]:
    for table in ("tcp", "tcp6"):
        for row in (PROC / "net" / table).read_text(encoding="utf-8").splitlines()[1:]:
            _, local, _, state, *_, inode = row.split()[:10]
            if state == LISTENS:
                address, port = local.split(":")
                # The kernel writes an address as numbers of four bytes, in the order of the machine.
                swapped = b"".join(bytes.fromhex(address[n : n + 8])[::-1] for n in range(0, len(address), 8))
                yield inode, (str(ipaddress.ip_address(swapped)), int(port, 16))

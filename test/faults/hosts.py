# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Hosts on one machine, and the links between them.

A host is a process with a network, a mount and, without root, a user namespace of its own.
Each of its interfaces is a TUN device. A link carries packets between the interfaces with
one number of all hosts: late, or not all of them, or none.
"""

import ctypes
import fcntl
import heapq
import os
import random
import select
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time

CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWNET = 0x20000, 0x10000000, 0x40000000
MS_REC, MS_PRIVATE, MS_BIND = 0x4000, 1 << 18, 0x1000
TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 1, 0x1000
PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None, use_errno=True)


class CannotMakeHosts(Exception):
    """This machine does not allow namespaces or TUN devices."""


def call(name, *arguments):
    if getattr(LIBC, name)(*arguments):
        error = ctypes.get_errno()
        raise OSError(error, f"{name}: {os.strerror(error)}")


def write(path, text):
    with open(path, "w") as file:
        file.write(text)


def open_tun(name):
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH14x", name.encode(),
                                               IFF_TUN | IFF_NO_PI))
    return device


class Host:
    """|interfaces| are lists of addresses, as `ip` writes them. |names| is a file of
    hosts."""

    def __init__(self, interfaces, names="", has_ipv6=True):
        self.is_root = os.geteuid() == 0
        here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.pid = os.fork()
        if self.pid == 0:
            here.close()
            self._serve(there, interfaces, names, has_ipv6)
        there.close()
        here.settimeout(20)
        message, self.devices, _, _ = socket.recv_fds(here, 4096, len(interfaces))
        here.close()
        if message != b"ok":
            os.waitpid(self.pid, 0)
            raise CannotMakeHosts(message.decode() or "the process of a host ended")

    def _serve(self, end, interfaces, names, has_ipv6):
        try:
            LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            self._leave_the_machine()
            with tempfile.NamedTemporaryFile("w") as file:
                file.write(f"127.0.0.1 localhost\n{names}\n")
                file.flush()
                call("mount", file.name.encode(), b"/etc/hosts", None, MS_BIND, None)
                if not has_ipv6:
                    write("/proc/sys/net/ipv6/conf/all/disable_ipv6", "1")
                devices = [open_tun(f"net{i}") for i in range(len(interfaces))]
                commands = ["link set lo up"]
                for number, addresses in enumerate(interfaces):
                    name = f"net{number}"
                    commands += [f"addr add {a} dev {name} {'nodad' * (':' in a)}"
                                 for a in addresses]
                    commands.append(f"link set {name} up")
                subprocess.run(["ip", "-batch", "-"], input="\n".join(commands),
                               text=True, check=True, capture_output=True)
            socket.send_fds(end, [b"ok"], devices)
            while True:
                signal.pause()
        except subprocess.CalledProcessError as error:
            end.send(f"ip: {error.stderr}".encode())
        except BaseException as error:  # the caller's code must not go on here
            end.send(str(error).encode() or b"stopped")
        finally:
            os._exit(1)

    def _leave_the_machine(self):
        user, group = os.geteuid(), os.getegid()
        spaces = CLONE_NEWNET | CLONE_NEWNS | (0 if self.is_root else CLONE_NEWUSER)
        call("unshare", spaces)
        if not self.is_root:
            write("/proc/self/setgroups", "deny")
            write("/proc/self/uid_map", f"0 {user} 1")
            write("/proc/self/gid_map", f"0 {group} 1")
        call("mount", b"none", b"/", None, MS_REC | MS_PRIVATE, None)

    def start(self, command, environment, output):
        user = [] if self.is_root else ["--user", "--preserve-credentials"]
        enter = ["nsenter", "--target", str(self.pid), "--net", "--mount", *user, "--"]
        return subprocess.Popen([*enter, *command], stdout=output, stderr=output,
                                env={**os.environ, **environment})

    def close(self):
        for device in self.devices:
            os.close(device)
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


def can_make_hosts():
    try:
        Host([["10.9.0.1/24", "fd09::1/64"]]).close()
        Host([["10.9.0.1/24"]], has_ipv6=False).close()
    except (CannotMakeHosts, TimeoutError):
        return False
    return True


def find_target(packet):
    if packet[0] >> 4 == 4:
        return socket.inet_ntop(socket.AF_INET, packet[16:20])
    return socket.inet_ntop(socket.AF_INET6, packet[24:40])


class Link:
    """Between the interfaces |devices|, which maps addresses to TUN devices. A packet is
    |delay| seconds under way, and lost with probability |loss|. |counts| are the packets
    that came to the link, and those that it lost."""

    def __init__(self, devices, delay=0.0, loss=0.0, seed=7):
        self.devices, self.delay, self.loss = devices, delay, loss
        self.is_cut = False
        self.came = self.lost = 0
        self._random = random.Random(seed)
        self._under_way, self._number = [], 0
        self._is_over = False
        self._thread = threading.Thread(target=self._carry, daemon=True)
        self._thread.start()

    def _carry(self):
        while not self._is_over:
            wait = self._under_way[0][0] - time.monotonic() if self._under_way else 0.05
            ready, _, _ = select.select(list(self.devices.values()), [], [],
                                        max(0.0, min(wait, 0.05)))
            for device in ready:
                self._take(os.read(device, 65536))
            while self._under_way and self._under_way[0][0] <= time.monotonic():
                _, _, target, packet = heapq.heappop(self._under_way)
                try:
                    os.write(target, packet)
                except OSError:
                    self.lost += 1  # the device is full or down

    def _take(self, packet):
        target = self.devices.get(find_target(packet))
        if target is None:  # of no host, such as multicast
            return
        self.came += 1
        if self.is_cut or self._random.random() < self.loss:
            self.lost += 1
            return
        self._number += 1  # packets do not overtake each other
        heapq.heappush(self._under_way, (time.monotonic() + self.delay, self._number,
                                         target, packet))

    def close(self):
        self._is_over = True
        self._thread.join()

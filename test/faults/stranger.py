#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A process that is no rank connects to a job over TCP, and does not matter.

    stranger.py JOB RANKS

JOB is the program of job.c for RANKS ranks, at least 3. Rank 0 listens, the stranger
connects to its port, and the last rank starts a while later. All ranks must have the
bits of a job without a stranger, and the job may take one second longer.
"""

import hashlib
import hmac
import os
import pathlib
import re
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "exec", "Inputs"))
from free_port import free_port  # noqa: E402

SECRET = "correct horse battery staple"
JOB = "job 7"
MAGIC = 0x7A65726F2D746375
HELLO = struct.Struct("<Q64s32siiii64s32s")
PATH = slice(HELLO.size - 96, HELLO.size - 32)
CONTACT = struct.Struct("<16sii160s")
CHALLENGE_BYTES = 320
WELCOME_BYTES = 32
WAIT = 0.4  # seconds in which the stranger is alone with rank 0


def proof(secret, message, challenge, contact):
    transcript = (b"connect\0" + message + challenge[256:288] + contact)
    return hmac.new(secret.encode(), transcript, hashlib.sha256).digest() + contact


def prove_hello(secret, message):
    """A hello with its proof."""
    message = message[: PATH.stop] + bytes(32)
    transcript = b"hello".ljust(8, b"\0") + message + bytes(32 + CONTACT.size)
    return message[: PATH.stop] + hmac.new(secret.encode(), transcript,
                                           hashlib.sha256).digest()


def path_of(connection):
    """The ends of a connection over IPv4 as messages describe them."""
    ends = [connection.getsockname(), connection.getpeername()]
    places = [struct.pack("<i12x4s", 4, socket.inet_aton(host)) for host, _ in ends]
    boot = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text()
    space = os.stat("/proc/self/ns/net")
    numbers = struct.pack("<QQ", space.st_ino, space.st_dev)
    machine = bytes(a ^ b for a, b in zip(bytes.fromhex(boot.replace("-", "")), numbers))
    return b"".join([*places, struct.pack("<ii", *(port for _, port in ends)), machine])


class Stranger:
    """Connects to a port until it is told to stop."""

    def __init__(self, port, ranks, record):
        self.port, self.ranks, self.record = port, ranks, record
        self.is_over = threading.Event()
        self.kept = []  # connections
        self.welcomed = False
        self.was_pushed_out = False

    def hello(self, ranks=None, rank=1, job=JOB, to=0, has_secret=1, path=b""):
        """A hello without |path| gets that of the connection."""
        ranks = self.ranks if ranks is None else ranks
        return HELLO.pack(MAGIC, job.encode(), os.urandom(32), rank, to, ranks, has_secret,
                          path, b"")

    def connect(self):
        while not self.is_over.is_set():
            try:
                s = socket.create_connection(("127.0.0.1", self.port), 1)
                s.settimeout(1)
                return s
            except OSError:
                time.sleep(0.005)
        return None

    def say(self, data, said=None, secret=None):
        s = self.connect()
        if s:
            self.kept.append(s)
            if data[: 8] == struct.pack("<Q", MAGIC) and data[PATH] == bytes(64):
                data = data[: PATH.start] + path_of(s) + data[PATH.stop:]
            if secret:
                data = prove_hello(secret, data)
            if said is not None:
                said.append(data)
            try:
                s.sendall(data)
            except OSError:
                pass
        return s

    def shake(self, message, secret):
        """A handshake with |secret|. Returns what was said."""
        said = []
        s = self.say(message, said, secret)
        try:
            [message] = said
            challenge = s.recv(CHALLENGE_BYTES, socket.MSG_WAITALL) if s else b""
            if len(challenge) == CHALLENGE_BYTES:
                contact = CONTACT.pack(b"", 9, 0, bytes(160))
                answer = proof(secret, message, challenge, contact)
                s.sendall(answer)
                welcome = s.recv(WELCOME_BYTES, socket.MSG_WAITALL)
                self.welcomed |= len(welcome) == WELCOME_BYTES
                return message + answer
        except OSError:
            pass
        return message

    # What strangers do.
    def garbage(self):
        for _ in range(20):
            self.say(os.urandom(4096))

    def http(self):
        self.say(b"GET / HTTP/1.1\r\nHost: rank0\r\n\r\n")

    def silence(self):
        for _ in range(50):
            self.say(b"")

    def early_close(self):
        for _ in range(50):
            s = self.say(self.hello()[:17])
            if s:
                s.close()

    def half_a_hello(self):
        for _ in range(50):
            self.say(self.hello()[:100])

    def replay(self):
        for _ in range(5):
            self.say(self.record)

    def hello_twice(self):
        self.say(self.record[: HELLO.size] * 2)

    def wrong_secret(self):
        for _ in range(5):
            self.shake(self.hello(), "correct horse battery stable")

    def no_secret(self):
        self.shake(self.hello(has_secret=0), "x")

    def wrong_job(self):
        self.shake(self.hello(job="job 8"), SECRET)

    def wrong_numbers(self):
        for rank in (-1, 0, 77, 2**31 - 1):
            self.shake(self.hello(rank=rank), SECRET)
        for ranks in (-1, 0, 1 << 20):
            self.shake(self.hello(ranks=ranks), SECRET)
        self.shake(self.hello(to=2), SECRET)
        self.shake(self.hello(path=os.urandom(64)), SECRET)

    def too_much(self):
        self.say(self.hello() + b"\xff" * 1000000)

    def crowd(self):
        """Many that are silent come after one that was asked for its proof."""
        first = self.say(self.hello(), secret=SECRET)
        if not first or len(first.recv(CHALLENGE_BYTES, socket.MSG_WAITALL)) == 0:
            return
        for _ in range(400):
            self.say(b"")
        try:
            first.settimeout(0.2)
            self.was_pushed_out = first.recv(1) == b""
        except socket.timeout:
            self.was_pushed_out = False
        except OSError:
            self.was_pushed_out = True

    def flood(self):
        while not self.is_over.is_set() and len(self.kept) < 900:
            self.say(b"")

    def hellos(self):
        """Each asks to be asked, and never proves anything."""
        while not self.is_over.is_set() and len(self.kept) < 900:
            self.say(self.hello(rank=2))

    def steady_hellos(self):
        """As many as are open for a second, without a pause."""
        while not self.is_over.is_set():
            self.say(self.hello(rank=2))
            if len(self.kept) > 300:
                self.kept.pop(0).close()
            time.sleep(0.003)


def run_ranks(job, ranks, port, stranger=None, ports=None, order=1, timeout=20000,
              descriptors=None):
    """Runs the job; its time without the wait, and its lines by rank.

    The stranger comes with the first rank, and the last rank comes a while later. With
    |order| -1 that is rank 0. A rank may have so many |descriptors|."""
    environment = {**os.environ, "WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1",
                   "ZERO_RT_SECRET": SECRET, "ZERO_RT_JOB": JOB}
    limit = ["prlimit", f"--nofile={descriptors}"] if descriptors else []
    processes, outputs = [], []
    start = time.monotonic()
    thread = None
    for position, rank in enumerate(range(ranks)[::order]):
        if position == ranks - 1:
            time.sleep(WAIT)
        output = tempfile.TemporaryFile("w+")
        processes.append(subprocess.Popen(
            [*limit, job, "tcp", "one", str(timeout), "none@never:0"], stdout=output,
            env={**environment, "RANK": str(rank),
                 "ZERO_RT_PORT": str((ports or {}).get(rank, port))}))
        outputs.append(output)
        if position == 0 and stranger:
            thread = threading.Thread(target=stranger)
            thread.start()
    for process in processes:
        try:
            process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()
    took = time.monotonic() - start - WAIT
    if thread:
        if isinstance(getattr(stranger, "__self__", None), Stranger):
            stranger.__self__.is_over.set()
        thread.join()
    lines = []
    for output in outputs:
        output.seek(0)
        lines.append(output.read().strip())
        output.close()
    return took, lines


def shake_hands(job, ranks):
    """What a process that has the secret says to rank 0 before it is let in."""
    stranger = Stranger(free_port(), ranks, b"")
    process = subprocess.Popen(
        [job, "tcp", "one", "1000", "none@never:0"], stdout=subprocess.DEVNULL,
        env={**os.environ, "WORLD_SIZE": str(ranks), "RANK": "0",
             "ZERO_RT_SECRET": SECRET, "ZERO_RT_JOB": JOB,
             "ZERO_RT_PORT": str(stranger.port)})
    said = stranger.shake(stranger.hello(), SECRET)
    process.wait()
    assert SECRET.encode() not in said
    return said, stranger.welcomed


def hear_a_wrong_word(job, ranks):
    """What rank 0 says where a rank that was let in ends with no status, for terminals."""
    stranger = Stranger(free_port(), ranks, b"")
    process = subprocess.Popen(
        [job, "tcp", "one", "3000", "none@never:0"], stdout=subprocess.PIPE, text=True,
        env={**os.environ, "WORLD_SIZE": str(ranks), "RANK": "0",
             "ZERO_RT_SECRET": SECRET, "ZERO_RT_JOB": JOB,
             "ZERO_RT_PORT": str(stranger.port)})
    stranger.shake(stranger.hello(), SECRET)
    stranger.kept[-1].sendall(struct.pack("<ii248s", 12345, 0, b"\x1b[2Jowned"))
    return process.communicate()[0].strip()


def pass_on(client, server):
    """Passes on what two ends send, and says which bytes the server sent."""
    answers = []

    def pump(source, sink, seen):
        try:
            while data := source.recv(65536):
                seen.append(data)
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    for pair in ((client, server, []), (server, client, answers)):
        threading.Thread(target=pump, args=pair, daemon=True).start()
    return answers


def relay_to_another_port(job, ranks):
    """A stranger leads rank 1, which dials its port, to rank 0 at another port."""
    port, proxy = free_port(), socket.create_server(("127.0.0.1", 0))

    def forward():
        while True:
            client, _ = proxy.accept()
            try:
                pass_on(client, socket.create_connection(("127.0.0.1", port)))
            except OSError:
                client.close()

    threading.Thread(target=forward, daemon=True).start()
    dialled = proxy.getsockname()[1]
    _, lines = run_ranks(job, ranks, port, ports={1: dialled}, timeout=1500)
    expected = (f"rank 1 has dialled 127.0.0.1 port {dialled}, and rank 0 is at 127.0.0.1 "
                f"port {port}; ranks connect directly, without mapped addresses or ports")
    return "bits" not in "".join(lines) and expected in lines[1]


def relay_at_the_port(job, ranks, expected):
    """A stranger has the port before rank 0 has it, keeps a rank that comes, gives the port
    free, and comes between the two when rank 0 listens, or comes too late. Whether the job
    is right, whether the stranger was refused, and the lines of the job."""
    proxy = socket.create_server(("127.0.0.1", 0))
    port = proxy.getsockname()[1]
    answers = []

    def come_between():
        client, _ = proxy.accept()
        proxy.close()
        end = time.monotonic() + 5
        while time.monotonic() < end:
            try:
                server = socket.create_connection(("127.0.0.1", port))
            except OSError:
                time.sleep(0.0005)
                continue
            answers.append(pass_on(client, server))
            return

    _, lines = run_ranks(job, ranks, port, come_between, order=-1)
    end = time.monotonic() + 1
    while answers and not answers[0] and time.monotonic() < end:
        time.sleep(0.01)
    heard = b"".join(answers[0]) if answers else b""
    return sorted(lines) == expected, b"ranks connect directly" in heard, lines


def impostor_is_outlasted(job, ranks, is_silent):
    """A stranger listens before rank 0 does, answers a hello, or keeps silent, and leaves.

    Rank 1 comes to the stranger first. What the stranger says ends no rank."""
    server = socket.create_server(("127.0.0.1", 0))
    kept = []

    def pose():
        client, _ = server.accept()
        if is_silent:
            kept.append(client)
            server.close()
            return
        client.recv(HELLO.size, socket.MSG_WAITALL)
        text = b"the job moved; come again later\x1b[2J"
        client.sendall(struct.pack("<Qi244s64s", MAGIC, 7, text, os.urandom(64)))
        client.close()
        server.close()

    return run_ranks(job, ranks, server.getsockname()[1], pose, order=-1)


def main():
    job, ranks = sys.argv[1], int(sys.argv[2])
    record, is_let_in = shake_hands(job, ranks)
    usual, expected = run_ranks(job, ranks, free_port())
    failed = False
    if not all(re.fullmatch(r"rank \d: bits: [0-9a-f]+", l) for l in expected):
        sys.exit(f"the job fails without a stranger: {expected}")
    for name in ("garbage", "http", "silence", "early_close", "half_a_hello", "replay",
                 "hello_twice", "wrong_secret", "no_secret", "wrong_job",
                 "wrong_numbers", "too_much", "crowd", "flood", "hellos"):
        port = free_port()
        stranger = Stranger(port, ranks, record)
        took, lines = run_ranks(job, ranks, port, getattr(stranger, name))
        for s in stranger.kept:
            s.close()
        answer = "ok"
        if lines != expected:
            answer = f"wrong result {lines}"
        elif stranger.welcomed:
            answer = "was let in"
        elif stranger.was_pushed_out:
            answer = "was pushed out by those who say nothing"
        elif took > usual + 1:
            answer = f"took {took:.2f} s instead of {usual:.2f} s"
        failed |= answer != "ok"
        print(f"{name}: {answer}")
    stranger = Stranger(free_port(), ranks, record)
    _, lines = run_ranks(job, ranks, stranger.port, stranger.steady_hellos,
                         descriptors=64)
    if lines != expected:
        print(f"hellos where descriptors are few: wrong result {lines}")
        failed = True
    for is_silent in (False, True):
        took, lines = impostor_is_outlasted(job, ranks, is_silent)
        if sorted(lines) != expected or took > usual + 1:
            print(f"impostor: {took:.2f} s instead of {usual:.2f} s, {lines}")
            failed = True
    if not relay_to_another_port(job, ranks):
        print("a rank is led to a port that it did not dial")
        failed = True
    for _ in range(10):
        is_right, is_refused, lines = relay_at_the_port(job, ranks, expected)
        if not is_right or is_refused:
            break
    if not is_right or not is_refused:
        print(f"a stranger comes between two ranks, or always too late: {lines}")
        failed = True
    word = hear_a_wrong_word(job, ranks)
    if word != "rank 0: connect: internal: ?[2Jowned":
        print(f"a rank says what no rank says: {word!r}")
        failed = True
    if not is_let_in:
        print("a stranger with the secret is not let in: this test tries nothing")
        failed = True
    return failed


if __name__ == "__main__":
    sys.exit(main())

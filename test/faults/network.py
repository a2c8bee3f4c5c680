#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A job over TCP on two hosts, whose link is slow, loses packets or is cut.

    network.py JOB

JOB is the program of job.c for 3 ranks. Ranks 0 and 1 are on one host, and rank 2 is on
another one. Without an error all ranks have the bits of a job in one process. Of a link
that stays cut each rank names a rank on the other host, within the timeout and a second.
"""

import contextlib
import os
import re
import subprocess
import sys
import tempfile
import time

from hosts import Host, Link

RANKS = 3
PLACE = [0, 0, 1]  # the host of each rank
TIMEOUT = 4.0
NO_FAULT = "none@never:0"
SECRET = "correct horse battery staple"


def list_ends(lines):
    return [line for line in lines if ": bits: " in line]


def run_threads(job):
    text = subprocess.run([job, "threads", "one", "20000", NO_FAULT], check=True,
                          capture_output=True, text=True).stdout
    return sorted(list_ends(text.splitlines()))


class Network:
    """Two hosts with the addresses |networks|, in which {} is the number of a host, and a
    link for each of them."""

    def __init__(self, stack, networks, names=("", ""), **options):
        self.hosts = []
        for number, name in enumerate(names, 1):
            interfaces = [[network.format(number)] for network in networks]
            host = Host(interfaces, name, options.get("has_ipv6", True))
            stack.callback(host.close)
            self.hosts.append(host)
        self.links = []
        for i, network in enumerate(networks):
            ends = {network.format(number).split("/")[0]: host.devices[i]
                    for number, host in enumerate(self.hosts, 1)}
            link = Link(ends, options.get("delay", 0.0), options.get("loss", 0.0))
            stack.callback(link.close)
            self.links.append(link)

    def run(self, job, master, fault=NO_FAULT, on_fault=None, **environment):
        """The lines of all ranks, and the seconds from the fault to the end of the last
        one."""
        outputs = [tempfile.TemporaryFile("w+") for _ in range(RANKS)]
        processes = []
        for rank, output in enumerate(outputs):
            variables = {"RANK": str(rank), "WORLD_SIZE": str(RANKS),
                         "MASTER_ADDR": master, "ZERO_RT_PORT": "4000",
                         "ZERO_RT_SECRET": SECRET, **environment}
            if PLACE[rank] != PLACE[0]:  # another host has other memory
                variables["ZERO_RT_SHARED_MEMORY"] = "0"
            command = [job, "tcp", "one", str(int(TIMEOUT * 1000)), fault]
            host = self.hosts[PLACE[rank]]
            processes.append(host.start(command, variables, output))
        begin = time.monotonic()
        if on_fault:
            while not re.search("fault", read(outputs[int(fault[-1])])):
                if time.monotonic() - begin > 30:
                    break
                time.sleep(0.01)
            begin = time.monotonic()
            on_fault()
        for process in processes:
            try:
                process.wait(timeout=30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        took = time.monotonic() - begin
        lines = [line for output in outputs for line in read(output).splitlines()]
        for output in outputs:
            output.close()
        return lines, took


def read(output):
    # A process that writes to the file has the same offset.
    return os.pread(output.fileno(), 1 << 20, 0).decode()


# --------------------------------------------------------------------------------------
# Cases. Each says what is wrong; an empty text if nothing is.
# --------------------------------------------------------------------------------------

V4 = "10.7.0.{}/24"
V6 = "fd07::{}/64"


def compare(lines, expected):
    return "" if sorted(list_ends(lines)) == expected else " | ".join(lines)


def other_system(job, what):
    library = os.path.join(os.path.dirname(job), "libother_system.so")
    return {"LD_PRELOAD": library, what: "1"}


def try_plain(stack, job, expected):
    network = Network(stack, [V4])
    lines, _ = network.run(job, "10.7.0.1")
    if network.links[0].came < 100:
        return "nothing went over the link: this test tries nothing"
    return compare(lines, expected)


def try_ipv4_only(stack, job, expected):
    network = Network(stack, [V4], has_ipv6=False)
    return compare(network.run(job, "10.7.0.1", **other_system(job, "NO_IPV6"))[0], expected)


def try_ipv6_only(stack, job, expected):
    network = Network(stack, [V6])
    return compare(network.run(job, "fd07::1")[0], expected)


def try_name_of_loopback(stack, job, expected):
    """As Debian names its own host."""
    network = Network(stack, [V4], ["127.0.1.1 alpha", "10.7.0.1 alpha"])
    return compare(network.run(job, "alpha")[0], expected)


def try_name_that_nobody_answers(stack, job, _):
    network = Network(stack, [V4])
    lines, took = network.run(job, "alpha", **other_system(job, "NO_NAMES"))
    if took > TIMEOUT + 1:
        return f"took {took:.1f} s: {' | '.join(lines)}"
    waited = "connect: timeout: cannot find host 'alpha' in time"
    found = all(f"rank {rank}: {waited}" in lines for rank in (1, 2))
    return "" if found else " | ".join(lines)


def try_network_that_leads_nowhere(stack, job, expected):
    """The first address of each host is of no use, and has a limit of its own."""
    network = Network(stack, ["10.6.0.{}/24", V4])
    network.links[0].is_cut = True
    wrong = compare(network.run(job, "10.7.0.1")[0], expected)
    if not network.links[0].lost:
        return "nobody tried the first address: this test tries nothing"
    return wrong


def try_interface(stack, job, expected):
    network = Network(stack, ["10.6.0.{}/24", V4])
    network.links[0].is_cut = True
    lines, _ = network.run(job, "10.7.0.1", ZERO_RT_INTERFACE="net1")
    if network.links[0].came:
        return f"{network.links[0].came} packets to the other interface"
    return compare(lines, expected)


def try_slow(stack, job, expected):
    network = Network(stack, [V4], delay=0.03)
    return compare(network.run(job, "10.7.0.1")[0], expected)


def try_lossy(stack, job, expected):
    network = Network(stack, [V4], loss=0.05)
    lines, _ = network.run(job, "10.7.0.1")
    if not network.links[0].lost:
        return "no packet was lost: this test tries nothing"
    return compare(lines, expected)


def try_mended(stack, job, expected):
    """Cut for less than the timeout, while rank 0 sleeps for as long."""
    network = Network(stack, [V4])

    def cut():
        network.links[0].is_cut = True
        time.sleep(0.3 * TIMEOUT)
        network.links[0].is_cut = False

    lines, _ = network.run(job, "10.7.0.1", "delay@apply:0", cut)
    if not network.links[0].lost:
        return "no packet was lost: this test tries nothing"
    return compare(lines, expected)


def try_cut(stack, job, _):
    network = Network(stack, [V4])

    def cut():
        network.links[0].is_cut = True

    lines, took = network.run(job, "10.7.0.1", "delay@apply:0", cut)
    # Rank 0 comes to the collective after 0.3 times the timeout.
    if took > 1.3 * TIMEOUT + 1:
        return f"took {took:.1f} s: {' | '.join(lines)}"
    for rank in range(RANKS):
        first = next((l for l in lines if l.startswith(f"rank {rank}: ")
                      and not re.match(r"rank \d: fault", l)), "")
        named = {int(n) for n in re.findall(r"ranks? (\d)", first.split(": ", 1)[-1])}
        others = {r for r in range(RANKS) if PLACE[r] != PLACE[rank]}
        if ": timeout: " not in first or not named & others:
            return f"rank {rank} names nobody on the other host: {' | '.join(lines)}"
    return ""


CASES = [try_plain, try_ipv4_only, try_ipv6_only, try_name_of_loopback,
         try_name_that_nobody_answers, try_network_that_leads_nowhere, try_interface,
         try_slow, try_lossy, try_mended, try_cut]


def main():
    job, failed = sys.argv[1], False
    expected = run_threads(job)
    for case in CASES:
        begin = time.monotonic()
        with contextlib.ExitStack() as stack:
            wrong = case(stack, job, expected)
        name = case.__name__.removeprefix("try_").replace("_", " ")
        print(f"{name}: {wrong or 'ok'}", flush=True)
        print(f"{name}: {time.monotonic() - begin:.1f} s", file=sys.stderr)
        failed |= bool(wrong)
    return failed


if __name__ == "__main__":
    sys.exit(main())

"""Transfers over paths with an MTU other than 1500 bytes, between two network namespaces."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.realtime

PREPARE = """
set -e
mount -t tmpfs none /run && mkdir -p /run/netns
ip netns add far
ip link add near0 type veth peer name far0 netns far
ip link set lo up && ip link set near0 up
ip -n far link set lo up && ip -n far link set far0 up
ip addr add 10.9.0.1/24 dev near0
ip -n far addr add 10.9.0.2/24 dev far0
"""


HALF = """
until [ "$(stat -c %s "$inbox"/file.cwnd-part 2>/dev/null || echo 0)" -gt 1048576 ]; do
    sleep 0.1
done
"""


@pytest.fixture
def send(isolated, tmp_path):
    """Send a file from one namespace to the other, after the shell's commands for the link."""
    source, inbox, told = tmp_path / "file", tmp_path / "in", tmp_path / "recv"
    source.write_bytes(os.urandom(3 << 20))
    inbox.mkdir()

    def run(
        link: str,
        *,
        options: str = "--insecure",
        meanwhile: str = "",
        after: str = "",
        rate: str = "",
        to: tuple[str, str] = ("far", "10.9.0.2"),
    ) -> str:
        namespace, address = to
        cwnd = f'"{sys.executable}" -m cwnd'
        script = f"""{PREPARE}
        inbox={inbox}
        {link}
        ip netns exec {namespace} {cwnd} recv {options} --bind {address} \
            --port 9000 --once --out {inbox} > {tmp_path / "received"} 2> {told} &
        until grep -q receiving {told}; do sleep 0.05; done
        {cwnd} send {source} {address}:9000 {options} {rate} 2> {tmp_path / "sent"} &
        sender=$!
        {meanwhile}
        wait $sender
        {after}
        """
        done = isolated(script)
        assert done.returncode == 0, done.stderr + told.read_text()
        assert (inbox / "file").read_bytes() == source.read_bytes()
        return next((line for line in done.stdout.splitlines() if line.startswith("[{")), "")

    return run


@pytest.fixture
def key(complete, tmp_path):
    """Return the options of a shared key."""
    complete(sys.executable, "-m", "cwnd", "keygen", tmp_path / "key")
    return f"--key {tmp_path / 'key'}"


def mtus(near: int, far: int) -> str:
    """Return the commands that set the MTUs of the two interfaces."""
    return f"ip link set near0 mtu {near} && ip -n far link set far0 mtu {far}"


@pytest.mark.parametrize("mtu", [576, 1280, 1400, 1420, 1460, 1492, 9000])
def test_the_interfaces_have_another_mtu(send, mtu):
    send(mtus(mtu, mtu))


@pytest.mark.parametrize(("near", "far"), [(1500, 1400), (1400, 1500), (1500, 1280)])
def test_only_one_interface_has_another_mtu(send, near, far):
    """The larger packets are lost without an error: veth drops what exceeds the MTU of the peer."""
    send(mtus(near, far))


@pytest.mark.parametrize(("near", "far"), [(1400, 1400), (1500, 1400), (576, 576)])
def test_an_encrypted_connection_over_another_mtu(send, key, near, far):
    send(mtus(near, far), options=key)


ROUTER = """
ip netns add end
ip -n far link add mid0 type veth peer name end0 netns end
ip -n far addr add 10.9.1.1/24 dev mid0
ip -n far link set mid0 up
ip -n end addr add 10.9.1.2/24 dev end0
ip -n end link set end0 up
ip -n end link set lo up
ip -n end route add default via 10.9.1.1
ip route add 10.9.1.0/24 via 10.9.0.2
ip netns exec far sh -c 'echo 1 > /proc/sys/net/ipv4/ip_forward'
echo 3 > /proc/sys/net/ipv4/ip_no_pmtu_disc
"""
"""The far namespace forwards to a third one, and its errors are ignored."""
NARROW = "ip -n far link set mid0 mtu 1400; ip -n end link set end0 mtu 1400"
END = ("end", "10.9.1.2")


def test_a_router_on_the_path_has_a_smaller_mtu_and_its_errors_are_lost(send):
    send(f"{ROUTER}{NARROW}", to=END)


def test_the_mtu_behind_a_router_falls_during_a_transfer_and_its_errors_are_lost(send, tmp_path):
    """The router fragments from then on: the connection does not end."""
    send(ROUTER, to=END, meanwhile=f"{HALF}{NARROW}", rate="--rate-limit 8mbit")
    assert "retry" not in (tmp_path / "sent").read_text()


@pytest.mark.parametrize(("near", "far"), [(1400, 1400), (9000, 9000)])
def test_the_mtu_changes_during_a_transfer(send, near, far):
    """The system fragments what an interface does not carry any more."""
    send("", meanwhile=f"{HALF}{mtus(near, far)}", rate="--rate-limit 8mbit")


def test_a_link_loses_larger_packets_from_the_middle_of_a_transfer_on(send, tmp_path):
    """Fragments are lost, too. The next connection probes the path again."""
    send("", meanwhile=f"{HALF}ip -n far link set far0 mtu 1400", rate="--rate-limit 8mbit")
    assert "retry 1 of 5" in (tmp_path / "sent").read_text()


@pytest.mark.parametrize(
    ("mtu", "option", "least"), [(9000, "auto", 5000), (9000, "1500", 1000), (9000, "700", 400)]
)
def test_packets_are_as_large_as_the_option_and_the_path_allow(send, mtu, option, least):
    """The mean size of the packets sent, which acknowledge nothing."""
    told = send(
        f"{mtus(mtu, mtu)} && ip link set near0 gso_max_segs 1",
        options=f"--insecure --mtu {option}",
        after="echo; ip -s -j link show near0 | tr -d '\\n'; echo",
    )
    (link,) = json.loads(told)
    sent, packets = (link["stats64"]["tx"][each] for each in ("bytes", "packets"))
    assert least < sent / packets <= (9014 if option == "auto" else int(option) + 14)


CWND_PEER = """
import os, sys
from cwnd import udt

def fnv(data):
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 % (1 << 64)
    return value

size = int(sys.argv[2])
if sys.argv[1] == "send":
    with udt.connect("10.9.0.2", 9000) as connection:
        data = os.urandom(size)
        connection.send(data)
else:
    with udt.listen(9000, "10.9.0.2") as listener:
        print("listening", flush=True)
        connection = listener.accept(timeout=20)
        data = b""
        while len(data) < size:
            data += connection.recv(1 << 20)
print(f"cwnd {fnv(data):016x}")
"""
"""One end of a connection with UDT4, which prints a hash of the data."""


@pytest.fixture(scope="session")
def udt4(tmp_path_factory):
    """Return the program of the UDT4 library."""
    if not Path("/usr/include/udt/udt.h").exists() or shutil.which("c++") is None:
        pytest.skip("the UDT4 library or a C++ compiler is not installed")
    source = Path(__file__).parents[2] / "crates/cwnd-udt/tests/support/udt4.cpp"
    program = tmp_path_factory.mktemp("udt4") / "udt4"
    compiler = ["c++", "-std=c++17", "-O2", "-o", program, source, "-ludt", "-lpthread"]
    subprocess.run(compiler, check=True)
    return program


@pytest.mark.parametrize("sender", ["cwnd", "udt4"])
@pytest.mark.parametrize("mtu", [576, 1400, 9000])
def test_udt4_is_a_peer_over_another_mtu(isolated, tmp_path, udt4, sender, mtu):
    size = 1_000_000
    peer = tmp_path / "peer.py"
    peer.write_text(CWND_PEER)
    cwnd = f'"{sys.executable}" {peer}'
    if sender == "cwnd":
        far = f"{udt4} listen --bind 10.9.0.2 --port 9000 --recv {size} --until-closed"
        near = f"{cwnd} send {size}"
    else:
        far, near = f"{cwnd} recv {size}", f"{udt4} connect --to 10.9.0.2:9000 --send {size}"
    script = f"""{PREPARE}{mtus(mtu, mtu)}
    ip netns exec far {far} > {tmp_path}/far &
    until grep -q "port\\|listening" {tmp_path}/far; do sleep 0.05; done
    {near} > {tmp_path}/near
    wait
    cat {tmp_path}/far {tmp_path}/near
    """
    done = isolated(script)
    assert done.returncode == 0, done.stderr
    # Both ends print a hash of 16 digits.
    first, second = re.findall(r"\b[0-9a-f]{16}\b", done.stdout)
    assert first == second

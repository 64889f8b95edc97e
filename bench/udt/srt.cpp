// Transfers bytes with SRT's file mode, for bench/udt.py:
//
//     srt recv PORT BYTES
//     srt send PORT BYTES
//
// The receiver prints the seconds from the first byte to the last.

#include <arpa/inet.h>
#include <srt/srt.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

static const int PIECE = 1 << 20;

[[noreturn]] static void fail(const char* what) {
    std::fprintf(stderr, "srt %s: %s\n", what, srt_getlasterror_str());
    std::exit(1);
}

template <typename Value>
static void set(SRTSOCKET socket, SRT_SOCKOPT option, Value value) {
    if (srt_setsockflag(socket, option, &value, sizeof value) == SRT_ERROR) fail("setsockflag");
}

static SRTSOCKET open_socket() {
    SRTSOCKET socket = srt_create_socket();
    set(socket, SRTO_TRANSTYPE, SRTT_FILE);
    set(socket, SRTO_MSS, 1500);
    const int buffer = 64 << 20;
    set(socket, SRTO_FC, 1 << 16);
    set(socket, SRTO_SNDBUF, buffer);
    set(socket, SRTO_RCVBUF, buffer);
    return socket;
}

static void receive(const sockaddr_in& here, int64_t left) {
    SRTSOCKET listener = open_socket();
    if (srt_bind(listener, reinterpret_cast<const sockaddr*>(&here), sizeof here) == SRT_ERROR) fail("bind");
    if (srt_listen(listener, 1) == SRT_ERROR) fail("listen");
    SRTSOCKET socket = srt_accept(listener, nullptr, nullptr);
    if (socket == SRT_INVALID_SOCK) fail("accept");
    std::vector<char> piece(PIECE);
    std::chrono::steady_clock::time_point start;
    for (bool first = true; left > 0; first = false) {
        int count = srt_recv(socket, piece.data(), PIECE);
        if (count <= 0) fail("recv");
        if (first) start = std::chrono::steady_clock::now();
        left -= count;
    }
    auto took = std::chrono::steady_clock::now() - start;
    std::printf("received %.6f\n", std::chrono::duration<double>(took).count());
    srt_close(socket);
    srt_close(listener);
}

static void transmit(const sockaddr_in& there, int64_t left) {
    SRTSOCKET socket = open_socket();
    // SRT's file mode does not linger by default.
    linger how{1, 60};
    set(socket, SRTO_LINGER, how);
    if (srt_connect(socket, reinterpret_cast<const sockaddr*>(&there), sizeof there) == SRT_ERROR) {
        fail("connect");
    }
    std::vector<char> piece(PIECE, 'z');
    while (left > 0) {
        int count = srt_send(socket, piece.data(), static_cast<int>(std::min<int64_t>(left, PIECE)));
        if (count <= 0) fail("send");
        left -= count;
    }
    srt_close(socket);
}

int main(int count, char** words) {
    if (count != 4) {
        std::fprintf(stderr, "srt recv|send PORT BYTES\n");
        return 2;
    }
    srt_startup();
    srt_setloglevel(0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(std::atoi(words[2])));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    bool receives = words[1] == std::string("recv");
    (receives ? receive : transmit)(address, std::atoll(words[3]));
    srt_cleanup();
}

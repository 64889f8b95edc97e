// One end of a UDT connection on the reference library, for the tests and benchmarks of cwnd-udt:
//
//     udt4 listen|connect|rendezvous [--name value ...]
//
// It prints one machine-readable line for each event, and "error ..." with exit status 1 for a failure. The data are the
// words of SplitMix64, little-endian, so that the receiver can generate them from the seed.

#include <arpa/inet.h>
#include <udt/udt.h>

#include <atomic>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

// The library takes a client's initial sequence number from rand(). The value of rand() while it connects; -1 is random.
static std::atomic<int64_t> forced{-1};

extern "C" int rand(void) noexcept {
    static std::atomic<uint32_t> state{2463534242u};
    if (forced >= 0) return static_cast<int>(forced.load());
    uint32_t x = state;
    x ^= x << 13, x ^= x >> 17, x ^= x << 5;
    state = x;
    return static_cast<int>(x & RAND_MAX);
}

static std::mutex printing;

template <typename... Values>
static void say(const char* format, Values... values) {
    std::lock_guard<std::mutex> lock(printing);
    std::printf(format, values...);
    std::putchar('\n');
    std::fflush(stdout);
}

[[noreturn]] static void fail(const char* what) {
    say("error %s: %s", what, UDT::getlasterror().getErrorMessage());
    std::_Exit(1);
}

[[noreturn]] static void misuse(const std::string& what) {
    std::fprintf(stderr, "udt4: %s\n", what.c_str());
    std::_Exit(2);
}

class Options {
public:
    Options(int count, char** words) {
        for (int n = 2; n < count; ++n) {
            std::string name = words[n];
            if (name.rfind("--", 0) != 0) misuse("unknown argument: " + name);
            bool value = n + 1 < count && std::strncmp(words[n + 1], "--", 2) != 0;
            values[name.substr(2)] = value ? words[++n] : "";
        }
    }

    bool has(const char* name) const { return values.count(name) > 0; }
    std::string text(const char* name) const { return values.at(name); }
    int64_t number(const char* name, int64_t otherwise) const {
        return has(name) ? std::stoll(values.at(name)) : otherwise;
    }

private:
    std::map<std::string, std::string> values;
};

class Random {
public:
    explicit Random(uint64_t seed) : state(seed) {}
    uint64_t next() {
        uint64_t z = state += 0x9e3779b97f4a7c15u;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        return z ^ (z >> 31);
    }
    // Generates the next bytes. Only the last call may have a length that is not a multiple of 8.
    void fill(char* out, size_t length) {
        for (size_t at = 0; at < length; at += 8) {
            uint64_t word = next();
            std::memcpy(out + at, &word, std::min<size_t>(8, length - at));
        }
    }

private:
    uint64_t state;
};

// An FNV-1a hash of 64 bits.
struct Hash {
    uint64_t value = 0xcbf29ce484222325u;
    void add(const char* bytes, size_t length) {
        for (size_t n = 0; n < length; ++n) {
            value = (value ^ static_cast<unsigned char>(bytes[n])) * 0x100000001b3u;
        }
    }
};

class Clock {
public:
    double seconds() const {
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    }

private:
    std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
};

static sockaddr_in address(const std::string& text) {
    size_t colon = text.rfind(':');
    sockaddr_in result{};
    result.sin_family = AF_INET;
    result.sin_port = htons(static_cast<uint16_t>(std::stoi(text.substr(colon + 1))));
    if (inet_pton(AF_INET, text.substr(0, colon).c_str(), &result.sin_addr) != 1) {
        misuse("invalid address: " + text);
    }
    return result;
}

template <typename Value>
static void set(UDTSOCKET socket, UDT::SOCKOPT option, Value value, const char* name) {
    if (UDT::setsockopt(socket, 0, option, &value, sizeof value) == UDT::ERROR) fail(name);
}

static UDTSOCKET open_socket(const Options& options) {
    int type = options.has("message") ? SOCK_DGRAM : SOCK_STREAM;
    UDTSOCKET socket = UDT::socket(AF_INET, type, 0);
    struct {
        const char* name;
        UDT::SOCKOPT option;
    } const numbers[] = {
        {"mss", UDT_MSS},           {"window", UDT_FC},          {"send-buffer", UDT_SNDBUF},
        {"recv-buffer", UDT_RCVBUF}, {"udp-send", UDP_SNDBUF},   {"udp-recv", UDP_RCVBUF},
    };
    for (const auto& number : numbers) {
        if (!options.has(number.name)) continue;
        set(socket, number.option, static_cast<int>(options.number(number.name, 0)), number.name);
    }
    if (options.has("max-bandwidth")) {
        set(socket, UDT_MAXBW, options.number("max-bandwidth", -1), "max-bandwidth");
    }
    if (options.has("linger")) {
        linger how{1, static_cast<int>(options.number("linger", 180))};
        set(socket, UDT_LINGER, how, "linger");
    }
    return socket;
}

static void bind(UDTSOCKET socket, const Options& options) {
    auto host = options.has("bind") ? options.text("bind") : "127.0.0.1";
    auto here = address(host + ":" + std::to_string(options.number("port", 0)));
    if (UDT::bind(socket, reinterpret_cast<sockaddr*>(&here), sizeof here) == UDT::ERROR) fail("bind");
    int length = sizeof here;
    UDT::getsockname(socket, reinterpret_cast<sockaddr*>(&here), &length);
    say("port %d", ntohs(here.sin_port));
}

static const size_t PIECE = 1 << 20;

static void send_stream(UDTSOCKET socket, const Options& options) {
    auto left = options.number("send", 0), total = left;
    bool plain = options.has("plain");
    Random random(static_cast<uint64_t>(options.number("seed", 1)));
    std::vector<char> piece(PIECE);
    Hash hash;
    Clock clock;
    while (left > 0) {
        auto length = static_cast<int>(std::min<int64_t>(left, PIECE));
        if (!plain) {
            random.fill(piece.data(), static_cast<size_t>(length));
            hash.add(piece.data(), static_cast<size_t>(length));
        }
        for (int sent = 0; sent < length;) {
            int count = UDT::send(socket, piece.data() + sent, length - sent, 0);
            if (count == UDT::ERROR) fail("send");
            sent += count;
        }
        left -= length;
    }
    say("sent %" PRId64 " %016" PRIx64 " %.6f", total, hash.value, clock.seconds());
}

static void recv_stream(UDTSOCKET socket, const Options& options) {
    auto total = options.number("recv", 0);
    bool plain = options.has("plain");
    std::vector<char> piece(PIECE);
    Hash hash;
    Clock clock;
    for (int64_t left = total; left > 0;) {
        auto most = static_cast<int>(std::min<int64_t>(left, PIECE));
        int count = UDT::recv(socket, piece.data(), most, 0);
        if (count == UDT::ERROR) fail("recv");
        if (!plain) hash.add(piece.data(), static_cast<size_t>(count));
        left -= count;
    }
    say("received %" PRId64 " %016" PRIx64 " %.6f", total, hash.value, clock.seconds());
}

// Message n: the number n in eight bytes, and up to --size bytes generated from it.
static std::vector<char> message(uint64_t seed, uint64_t n, int64_t size) {
    Random random(seed ^ n);
    std::vector<char> bytes(8 + random.next() % static_cast<uint64_t>(size + 1));
    random.fill(bytes.data(), bytes.size());
    std::memcpy(bytes.data(), &n, 8);
    return bytes;
}

static void send_messages(UDTSOCKET socket, const Options& options) {
    auto count = options.number("send", 0), size = options.number("size", 4000);
    auto seed = static_cast<uint64_t>(options.number("seed", 1));
    auto ttl = static_cast<int>(options.number("ttl", -1));
    for (int64_t n = 0; n < count; ++n) {
        auto bytes = message(seed, static_cast<uint64_t>(n), size);
        auto length = static_cast<int>(bytes.size());
        if (UDT::sendmsg(socket, bytes.data(), length, ttl, options.has("in-order")) == UDT::ERROR) {
            fail("sendmsg");
        }
    }
    say("sent %" PRId64, count);
}

// Receives up to --recv messages; with --until-closed, fewer if the peer closes before.
static void recv_messages(UDTSOCKET socket, const Options& options) {
    auto count = options.number("recv", 0), size = options.number("size", 4000);
    auto seed = static_cast<uint64_t>(options.number("seed", 1));
    std::vector<char> bytes(static_cast<size_t>(size) + 9);
    int64_t whole = 0, wrong = 0, early = 0;
    uint64_t next = 0;
    while (whole + wrong < count) {
        int length = UDT::recvmsg(socket, bytes.data(), static_cast<int>(bytes.size()));
        if (length == UDT::ERROR) {
            if (!options.has("until-closed")) fail("recvmsg");
            break;
        }
        uint64_t n = 0;
        std::memcpy(&n, bytes.data(), std::min(length, 8));
        auto right = message(seed, n, size);
        bool good = right.size() == static_cast<size_t>(length)
            && std::memcmp(right.data(), bytes.data(), right.size()) == 0;
        ++(good ? whole : wrong);
        early += n < next;
        next = n + 1;
    }
    say("messages %" PRId64 " wrong %" PRId64 " early %" PRId64, whole, wrong, early);
}

static void print_statistics(UDTSOCKET socket) {
    UDT::TRACEINFO t;
    if (UDT::perfmon(socket, &t, false) == UDT::ERROR) return;
    say("perfmon pktSentTotal %" PRId64 " pktRecvTotal %" PRId64
        " pktSndLossTotal %d pktRcvLossTotal %d pktRetransTotal %d pktSentACKTotal %d pktRecvACKTotal %d"
        " pktSentNAKTotal %d pktRecvNAKTotal %d usPktSndPeriod %.3f pktFlowWindow %d"
        " pktCongestionWindow %d msRTT %.3f mbpsBandwidth %.3f",
        t.pktSentTotal, t.pktRecvTotal, t.pktSndLossTotal, t.pktRcvLossTotal, t.pktRetransTotal,
        t.pktSentACKTotal, t.pktRecvACKTotal, t.pktSentNAKTotal, t.pktRecvNAKTotal, t.usPktSndPeriod,
        t.pktFlowWindow, t.pktCongestionWindow, t.msRTT, t.mbpsBandwidth);
}

// Sends and receives over an open connection as the options say, and closes it.
static void use(UDTSOCKET socket, const Options& options) {
    bool messages = options.has("message");
    std::this_thread::sleep_for(std::chrono::milliseconds(options.number("idle", 0)));
    std::thread sender, receiver;
    if (options.has("send")) {
        sender = std::thread(messages ? send_messages : send_stream, socket, std::cref(options));
    }
    if (options.has("recv")) {
        receiver = std::thread(messages ? recv_messages : recv_stream, socket, std::cref(options));
    }
    if (sender.joinable()) sender.join();
    if (receiver.joinable()) receiver.join();
    if (options.has("perfmon")) print_statistics(socket);
    // Wait for a line or the end of the input.
    if (options.has("hold")) std::getchar();
    if (options.has("until-closed")) {
        char byte;
        int count = messages ? UDT::recvmsg(socket, &byte, 1) : UDT::recv(socket, &byte, 1, 0);
        if (count != UDT::ERROR) {
            say("error more data than expected");
            std::_Exit(1);
        }
        say("peer-closed %d", UDT::getlasterror().getErrorCode());
    }
    UDT::close(socket);
    say("closed");
}

static void listen(const Options& options) {
    UDTSOCKET listener = open_socket(options);
    bind(listener, options);
    if (UDT::listen(listener, 1024) == UDT::ERROR) fail("listen");
    std::vector<std::thread> threads;
    for (int64_t n = options.number("count", 1); n > 0; --n) {
        UDTSOCKET socket = UDT::accept(listener, nullptr, nullptr);
        if (socket == UDT::INVALID_SOCK) fail("accept");
        say("connected");
        threads.emplace_back(use, socket, std::cref(options));
    }
    for (auto& thread : threads) thread.join();
    UDT::close(listener);
}

// The address of the peer: of a rendezvous, which has to tell its own port first, it is a line of the input.
static sockaddr_in read_peer(const Options& options, bool rendezvous) {
    if (!rendezvous) return address(options.text("to"));
    std::string line;
    std::getline(std::cin, line);
    return address(line);
}

static void connect(const Options& options, bool rendezvous) {
    std::vector<std::thread> threads;
    for (int64_t n = options.number("count", 1); n > 0; --n) {
        UDTSOCKET socket = open_socket(options);
        if (rendezvous) set(socket, UDT_RENDEZVOUS, true, "rendezvous");
        if (rendezvous || options.has("port")) bind(socket, options);
        auto to = read_peer(options, rendezvous);
        forced = options.number("isn", -1);
        if (UDT::connect(socket, reinterpret_cast<sockaddr*>(&to), sizeof to) == UDT::ERROR) {
            fail("connect");
        }
        forced = -1;
        say("connected");
        threads.emplace_back(use, socket, std::cref(options));
    }
    for (auto& thread : threads) thread.join();
}

int main(int count, char** words) {
    std::string verb = count > 1 ? words[1] : "";
    Options options(count, words);
    UDT::startup();
    if (verb == "listen") {
        listen(options);
    } else if (verb == "connect" || verb == "rendezvous") {
        connect(options, verb == "rendezvous");
    } else {
        misuse("the first argument must be listen, connect or rendezvous");
    }
    UDT::cleanup();
}

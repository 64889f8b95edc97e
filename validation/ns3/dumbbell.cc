// A dumbbell in ns-3.37: TCP flows, and optionally constant-rate UDP, through one bottleneck. Prints one line of JSON.
//
// Each flow has a host on the left, whose access link determines the round-trip time of the flow, and a host on the right. Start times
// and access delays are random: the seed selects them. Counters begin at the end of the warm-up.

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <sstream>
#include <string>
#include <vector>

using namespace ns3;

// Reno as in RFC 5681, with the byte counting of RFC 3465. ns-3's TcpLinuxReno keeps its count of acknowledged packets at a reduction,
// and the acknowledgement that ends a recovery adds all packets that it acknowledges to the count: after each reduction the window is one
// to two packets too large. ns-3's TcpNewReno counts acknowledgements and halves the packets in flight instead of the window.
class Reno : public TcpNewReno
{
  public:
    static TypeId GetTypeId()
    {
        static TypeId id = TypeId("Reno").SetParent<TcpNewReno>().AddConstructor<Reno>();
        return id;
    }

    uint32_t GetSsThresh(Ptr<const TcpSocketState> state, uint32_t) override
    {
        return std::max(2 * state->m_segmentSize, state->m_cWnd.Get() / 2);
    }

    void CwndEvent(Ptr<TcpSocketState>, const TcpSocketState::TcpCAEvent_t event) override
    {
        m_recovered = event == TcpSocketState::CA_EVENT_COMPLETE_CWR;
    }

    void IncreaseWindow(Ptr<TcpSocketState> state, uint32_t acked) override
    {
        if (m_recovered)
        {
            m_recovered = false;
            return;
        }
        const uint32_t size = state->m_segmentSize;
        uint32_t window = state->m_cWnd;
        const uint32_t threshold = state->m_ssThresh;
        double bytes = double(acked) * size;
        if (window < threshold)
        {
            const uint32_t slow_start = std::min(acked * size, threshold - window);
            window += slow_start;
            bytes -= slow_start;
        }
        state->m_cWnd = window + uint32_t(bytes * size / window);
    }

    Ptr<TcpCongestionOps> Fork() override
    {
        return CopyObject<Reno>(this);
    }

  private:
    bool m_recovered = false;
};

// A law of ns-3 without two departures from RFC 5681. In slow start ns-3's window grows by all packets that one acknowledgement covers, also
// beyond the threshold: after a timeout, the acknowledgement that fills the last hole enlarges the window by a whole window. The
// acknowledgement that ends a recovery counts all packets that it acknowledges.
template <typename Law>
class Repaired : public Law
{
  public:
    void CwndEvent(Ptr<TcpSocketState>, const TcpSocketState::TcpCAEvent_t event) override
    {
        m_recovered = event == TcpSocketState::CA_EVENT_COMPLETE_CWR;
    }

    void IncreaseWindow(Ptr<TcpSocketState> state, uint32_t acked) override
    {
        if (m_recovered)
        {
            m_recovered = false;
            return;
        }
        if (state->m_cWnd < state->m_ssThresh)
        {
            const uint32_t size = state->m_segmentSize;
            const uint32_t room = (state->m_ssThresh - state->m_cWnd + size - 1) / size;
            const uint32_t slow_start = std::min(acked, room);
            state->m_cWnd += slow_start * size;
            acked -= slow_start;
        }
        if (acked > 0)
        {
            AvoidCongestion(state, acked);
        }
    }

  protected:
    virtual void AvoidCongestion(Ptr<TcpSocketState> state, uint32_t acked)
    {
        Law::IncreaseWindow(state, acked);
    }

  private:
    bool m_recovered = false;
};

// A timeout of ns-3's TcpCubic forgets W_max.
class Cubic : public Repaired<TcpCubic>
{
  public:
    static TypeId GetTypeId()
    {
        static TypeId id = TypeId("Cubic").SetParent<TcpCubic>().AddConstructor<Cubic>();
        return id;
    }

    void CongestionStateSet(Ptr<TcpSocketState>, const TcpSocketState::TcpCongState_t) override
    {
    }

    Ptr<TcpCongestionOps> Fork() override
    {
        return CopyObject<Cubic>(this);
    }
};

// ns-3's TcpIllinois counts whole packets: at each acknowledgement it rounds alpha times the packets acknowledged down, so that the window
// does not grow where alpha is below 1/2. Here its segment is a byte, and its count is in units of which a segment has the square of
// its size. It compares the window in bytes with a threshold in packets, and reduces the packets in flight instead of the window. For each
// duplicate acknowledgement it adds the last estimate to the mean of the round, which so remains at the delay of the loss.
class Illinois : public Repaired<TcpIllinois>
{
  public:
    static TypeId GetTypeId()
    {
        static TypeId id = TypeId("Illinois").SetParent<TcpIllinois>().AddConstructor<Illinois>();
        return id;
    }

    uint32_t GetSsThresh(Ptr<const TcpSocketState> state, uint32_t) override
    {
        Ptr<TcpSocketState> bytes = CopyObject(state);
        bytes->m_segmentSize = 1;
        return std::max(2 * state->m_segmentSize, TcpIllinois::GetSsThresh(bytes, state->m_cWnd));
    }

    void PktsAcked(Ptr<TcpSocketState> state, uint32_t acked, const Time& rtt) override
    {
        if (state->m_congState == TcpSocketState::CA_OPEN || rtt != m_last)
        {
            TcpIllinois::PktsAcked(state, acked, rtt);
        }
        m_last = rtt;
    }

    Ptr<TcpCongestionOps> Fork() override
    {
        return CopyObject<Illinois>(this);
    }

  protected:
    void AvoidCongestion(Ptr<TcpSocketState> state, uint32_t acked) override
    {
        const uint32_t size = state->m_segmentSize;
        state->m_segmentSize = 1;
        TcpIllinois::IncreaseWindow(state, acked * size * size);
        state->m_segmentSize = size;
    }

  private:
    Time m_last;
};

// ns-3's TcpHybla halves the packets in flight instead of the window, and updates rho only where the smoothed round-trip time is the
// least one so far: the handshake's, which it does not see, often remains the least. Its slow start is left out.
class Hybla : public Repaired<TcpHybla>
{
  public:
    static TypeId GetTypeId()
    {
        static TypeId id = TypeId("Hybla").SetParent<TcpHybla>().AddConstructor<Hybla>();
        return id;
    }

    uint32_t GetSsThresh(Ptr<const TcpSocketState> state, uint32_t) override
    {
        return std::max(2 * state->m_segmentSize, state->m_cWnd.Get() / 2);
    }

    void PktsAcked(Ptr<TcpSocketState> state, uint32_t acked, const Time&) override
    {
        TcpHybla::PktsAcked(state, acked, state->m_minRtt);
    }

    Ptr<TcpCongestionOps> Fork() override
    {
        return CopyObject<Hybla>(this);
    }
};

namespace
{

TypeId
LawNamed(const std::string& law)
{
    if (law == "reno")
    {
        return Reno::GetTypeId();
    }
    if (law == "cubic")
    {
        return Cubic::GetTypeId();
    }
    if (law == "illinois")
    {
        return Illinois::GetTypeId();
    }
    if (law == "hybla")
    {
        return Hybla::GetTypeId();
    }
    if (law == "bbr")
    {
        return TcpBbr::GetTypeId();
    }
    if (law == "dctcp")
    {
        return TcpDctcp::GetTypeId();
    }
    NS_FATAL_ERROR("law is reno, cubic, illinois, hybla, bbr or dctcp");
}

// Payload of a data packet. With 32 bytes of TCP header (timestamps), 20 of IPv4 and 2 of PPP it has 1502 bytes on the wire.
constexpr uint32_t SEGMENT = 1448;
constexpr uint32_t CBR_WIRE = 1000;
// IPv4, UDP and PPP.
constexpr uint32_t CBR_HEADERS = 20 + 8 + 2;
// Far above any window, and small enough for ns-3's buffers, whose cost grows with their contents.
constexpr uint32_t BUFFER = 4000000;

// Queueing delays of the transmitted packets in seconds.
std::vector<double> g_sojourns;
bool g_measuring = false;
uint64_t g_drops = 0;
uint64_t g_marks = 0;
uint64_t g_bytes = 0;

// A TCP sender.
struct Sender
{
    Ptr<Socket> socket;
    Ptr<PacketSink> sink;
    uint64_t received_before = 0;
    SequenceNumber32 highest{0};
    uint64_t sent = 0;
    uint64_t retransmissions = 0;
    uint64_t timeouts = 0;
    uint64_t cuts = 0;
    // Bytes, and those times seconds since the end of the warm-up.
    double window = 0;
    double window_seconds = 0;
    Time window_since;
    FILE* trace = nullptr;
};

std::vector<Sender> g_senders;

void
Dequeued(Ptr<const QueueDiscItem> item)
{
    if (g_measuring)
    {
        g_sojourns.push_back((Simulator::Now() - item->GetTimeStamp()).GetSeconds());
    }
}

void
Dropped(Ptr<const QueueDiscItem>)
{
    g_drops += g_measuring;
}

// The discipline dropped the packet that it has just dequeued: the queueing delay is that of transmitted packets.
void
DroppedAfterDequeue(Ptr<const QueueDiscItem>, const char*)
{
    if (g_measuring && !g_sojourns.empty())
    {
        g_sojourns.pop_back();
    }
}

void
Marked(Ptr<const QueueDiscItem>, const char*)
{
    g_marks += g_measuring;
}

// ns-3's device takes a packet from the discipline while it transmits another. These two stop the device's queue during a
// transmission, so that packets wait in the discipline only.
void
TransmissionBegins(Ptr<NetDeviceQueue> queue, Ptr<const Packet> packet)
{
    queue->Stop();
    if (g_measuring)
    {
        g_bytes += packet->GetSize();
    }
}

void
TransmissionEnds(Ptr<NetDeviceQueue> queue, Ptr<const Packet>)
{
    queue->Wake();
}

void
Sent(std::size_t index, Ptr<const Packet> packet, const TcpHeader& header, Ptr<const TcpSocketBase>)
{
    Sender& sender = g_senders[index];
    const uint32_t size = packet->GetSize();
    if (size == 0)
    {
        return;
    }
    const SequenceNumber32 end = header.GetSequenceNumber() + size;
    const bool again = end <= sender.highest;
    sender.highest = std::max(sender.highest, end);
    if (g_measuring)
    {
        sender.sent += 1;
        sender.retransmissions += again;
    }
}

void
State(std::size_t index, TcpSocketState::TcpCongState_t before, TcpSocketState::TcpCongState_t after)
{
    if (g_measuring && before != after)
    {
        g_senders[index].timeouts += after == TcpSocketState::CA_LOSS;
        g_senders[index].cuts += after == TcpSocketState::CA_LOSS || after == TcpSocketState::CA_RECOVERY ||
                                 after == TcpSocketState::CA_CWR;
    }
}

// Adds the time since the last change of the window.
void
AddWindow(Sender& sender)
{
    if (g_measuring)
    {
        sender.window_seconds += sender.window * (Simulator::Now() - sender.window_since).GetSeconds();
    }
    sender.window_since = Simulator::Now();
}

void
Window(std::size_t index, uint32_t, uint32_t bytes)
{
    Sender& sender = g_senders[index];
    AddWindow(sender);
    sender.window = bytes;
    if (sender.trace)
    {
        std::fprintf(sender.trace, "%.6f %zu %.3f\n", Simulator::Now().GetSeconds(), index, double(bytes) / SEGMENT);
    }
}

void
Measure()
{
    for (Sender& sender : g_senders)
    {
        AddWindow(sender);
        sender.received_before = sender.sink->GetTotalRx();
    }
    g_measuring = true;
}

// Removes the default discipline of a device: its packets wait in the device, which has room for all.
void
AddInfiniteLink(NetDeviceContainer devices, Ipv4AddressHelper& addresses, std::vector<Ipv4Address>* out)
{
    Ipv4InterfaceContainer interfaces = addresses.Assign(devices);
    addresses.NewNetwork();
    TrafficControlHelper().Uninstall(devices);
    if (out)
    {
        out->push_back(interfaces.GetAddress(1));
    }
}

template <typename Number>
std::string
List(const std::vector<Number>& numbers)
{
    std::ostringstream text;
    text.precision(10);
    for (std::size_t at = 0; at < numbers.size(); ++at)
    {
        text << (at ? ", " : "") << numbers[at];
    }
    return "[" + text.str() + "]";
}

double
Percentile(double part)
{
    return g_sojourns[std::min(g_sojourns.size() - 1, std::size_t(part * double(g_sojourns.size())))];
}

template <typename Of>
auto
OfSenders(Of of)
{
    std::vector<decltype(of(g_senders[0]))> values;
    for (Sender& sender : g_senders)
    {
        values.push_back(of(sender));
    }
    return values;
}

} // namespace

int
main(int argc, char** argv)
{
    uint32_t seed = 1;
    std::string queue = "droptail";
    uint32_t limit = 100;
    uint32_t threshold = 20;
    std::string law = "reno";
    std::string recovery = "sack";
    uint32_t flows = 2;
    double rate = 10e6;
    double rtt_min = 0.04;
    double rtt_max = 0.045;
    double loss = 0;
    double cbr = 0;
    double duration = 60;
    double warmup = 10;
    bool ecn = false;
    bool derandomize = true;
    std::string trace;
    CommandLine command(__FILE__);
    command.AddValue("seed", "Selects the random draws", seed);
    command.AddValue("queue", "droptail, step, codel, fq_codel or pie", queue);
    command.AddValue("limit", "Largest queue in packets", limit);
    command.AddValue("threshold", "Packets in a step queue above which packets are marked", threshold);
    command.AddValue("law", "reno, cubic, illinois, hybla, bbr or dctcp", law);
    command.AddValue("recovery", "sack (RFC 6675) or prr", recovery);
    command.AddValue("flows", "TCP flows", flows);
    command.AddValue("rate", "Rate of the bottleneck in bit/s", rate);
    command.AddValue("rtt_min", "Propagation time both ways in seconds of the first flow, to which up to 5 ms are added", rtt_min);
    command.AddValue("rtt_max", "The same of the last flow; those between are spaced evenly", rtt_max);
    command.AddValue("loss", "Probability of random loss after the bottleneck", loss);
    command.AddValue("cbr", "Rate of a constant-rate UDP flow in bit/s on the wire", cbr);
    command.AddValue("duration", "Seconds", duration);
    command.AddValue("warmup", "Seconds", warmup);
    command.AddValue("ecn", "ECN of flows and queue", ecn);
    command.AddValue("derandomize", "De-randomisation of PIE", derandomize);
    command.AddValue("trace", "File for the congestion windows", trace);
    command.Parse(argc, argv);
    RngSeedManager::SetRun(seed);

    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(LawNamed(law)));
    Config::SetDefault("ns3::TcpL4Protocol::RecoveryType",
                       TypeIdValue(recovery == "prr" ? TcpPrrRecovery::GetTypeId() : TcpClassicRecovery::GetTypeId()));
    Config::SetDefault("ns3::TcpCubic::HyStart", BooleanValue(false));
    Config::SetDefault("ns3::TcpIllinois::WinThresh", UintegerValue(15 * SEGMENT));
    // The round-trip time of the paper.
    Config::SetDefault("ns3::TcpHybla::RRTT", TimeValue(MilliSeconds(25)));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(SEGMENT));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(BUFFER));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(BUFFER));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
    Config::SetDefault("ns3::TcpSocket::DelAckTimeout", TimeValue(MilliSeconds(40)));
    Config::SetDefault("ns3::TcpSocket::ConnTimeout", TimeValue(Seconds(1)));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(Seconds(1)));
    Config::SetDefault("ns3::TcpSocketBase::UseEcn", EnumValue(ecn ? TcpSocketState::On : TcpSocketState::Off));
    // CoDel of RFC 8289 does not drop the last packet of a queue (`bytes() <= maxpacket_`): ns-3 compares with <.
    Config::SetDefault("ns3::CoDelQueueDisc::MinBytes", UintegerValue(SEGMENT + 52 + 1));
    // A connection that has lost a packet six times in a row would end.
    Config::SetDefault("ns3::TcpSocket::DataRetries", UintegerValue(1000));

    // Half a millisecond of the round-trip time is on the links to the hosts on the right.
    const Time right_delay = MicroSeconds(250);
    const Time trunk_delay = Seconds(rtt_min / 4);
    Ptr<UniformRandomVariable> random = CreateObject<UniformRandomVariable>();
    random->SetStream(1);
    std::vector<double> starts;
    std::vector<double> rtts;
    for (uint32_t flow = 0; flow < flows; ++flow)
    {
        const double step = flows > 1 ? double(flow) / (flows - 1) : 0;
        starts.push_back(std::round(random->GetValue(0, 2) * 1e6) / 1e6);
        rtts.push_back(std::round((rtt_min + step * (rtt_max - rtt_min) + random->GetValue(0, 0.005)) * 1e6) / 1e6);
    }
    const double cbr_start = std::round(random->GetValue(0, 2) * 1e6) / 1e6;

    NodeContainer routers;
    routers.Create(2);
    NodeContainer hosts;
    hosts.Create(2 * flows + (cbr > 0 ? 2 : 0));
    InternetStackHelper internet;
    internet.Install(routers);
    internet.Install(hosts);

    PointToPointHelper trunk;
    trunk.SetDeviceAttribute("DataRate", DataRateValue(DataRate(uint64_t(rate))));
    trunk.SetChannelAttribute("Delay", TimeValue(trunk_delay));
    NetDeviceContainer bottleneck = trunk.Install(routers);
    Ptr<NetDeviceQueue> device = bottleneck.Get(0)->GetObject<NetDeviceQueueInterface>()->GetTxQueue(0);
    bottleneck.Get(0)->TraceConnectWithoutContext("PhyTxBegin", MakeBoundCallback(&TransmissionBegins, device));
    bottleneck.Get(0)->TraceConnectWithoutContext("PhyTxEnd", MakeBoundCallback(&TransmissionEnds, device));
    if (loss > 0)
    {
        Ptr<RateErrorModel> errors = CreateObject<RateErrorModel>();
        errors->SetUnit(RateErrorModel::ERROR_UNIT_PACKET);
        errors->SetRate(loss);
        errors->AssignStreams(2);
        bottleneck.Get(1)->SetAttribute("ReceiveErrorModel", PointerValue(errors));
    }

    const QueueSizeValue size(QueueSize(QueueSizeUnit::PACKETS, limit));
    TrafficControlHelper control;
    if (queue == "droptail")
    {
        control.SetRootQueueDisc("ns3::FifoQueueDisc", "MaxSize", size);
    }
    else if (queue == "step")
    {
        // RED of the instantaneous queue: no packet is marked at the threshold, and each one above it.
        control.SetRootQueueDisc("ns3::RedQueueDisc",
                                 "MaxSize",
                                 size,
                                 "UseEcn",
                                 BooleanValue(ecn),
                                 "UseHardDrop",
                                 BooleanValue(false),
                                 "Gentle",
                                 BooleanValue(false),
                                 "QW",
                                 DoubleValue(1),
                                 "MinTh",
                                 DoubleValue(threshold),
                                 "MaxTh",
                                 DoubleValue(threshold + 1),
                                 "MeanPktSize",
                                 UintegerValue(SEGMENT + 52));
    }
    else if (queue == "codel")
    {
        control.SetRootQueueDisc("ns3::CoDelQueueDisc", "MaxSize", size, "UseEcn", BooleanValue(ecn));
    }
    else if (queue == "fq_codel")
    {
        // As many flow queues as keep two flows from sharing one.
        control.SetRootQueueDisc("ns3::FqCoDelQueueDisc",
                                 "MaxSize",
                                 size,
                                 "UseEcn",
                                 BooleanValue(ecn),
                                 "Flows",
                                 UintegerValue(65536),
                                 "Perturbation",
                                 UintegerValue(seed));
    }
    else if (queue == "pie")
    {
        control.SetRootQueueDisc("ns3::PieQueueDisc",
                                 "MaxSize",
                                 size,
                                 "UseEcn",
                                 BooleanValue(ecn),
                                 "MeanPktSize",
                                 UintegerValue(SEGMENT + 52),
                                 "UseDerandomization",
                                 BooleanValue(derandomize));
    }
    else
    {
        NS_FATAL_ERROR("queue is droptail, step, codel, fq_codel or pie");
    }
    Ptr<QueueDisc> discipline = control.Install(bottleneck.Get(0)).Get(0);
    if (queue == "pie")
    {
        DynamicCast<PieQueueDisc>(discipline)->AssignStreams(3);
    }
    discipline->TraceConnectWithoutContext("Dequeue", MakeCallback(&Dequeued));
    discipline->TraceConnectWithoutContext("Drop", MakeCallback(&Dropped));
    discipline->TraceConnectWithoutContext("DropAfterDequeue", MakeCallback(&DroppedAfterDequeue));
    discipline->TraceConnectWithoutContext("Mark", MakeCallback(&Marked));

    Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.0");
    addresses.Assign(bottleneck);
    addresses.NewNetwork();
    TrafficControlHelper().Uninstall(bottleneck.Get(1));
    std::vector<Ipv4Address> sinks;
    PointToPointHelper access;
    access.SetDeviceAttribute("DataRate", StringValue("1Gbps"));
    access.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", StringValue("100000p"));
    const auto attach = [&](uint32_t index, double rtt) {
        access.SetChannelAttribute("Delay", TimeValue(Seconds(rtt / 2) - trunk_delay - right_delay));
        AddInfiniteLink(access.Install(hosts.Get(2 * index), routers.Get(0)), addresses, nullptr);
        access.SetChannelAttribute("Delay", TimeValue(right_delay));
        AddInfiniteLink(access.Install(routers.Get(1), hosts.Get(2 * index + 1)), addresses, &sinks);
    };
    for (uint32_t flow = 0; flow < flows; ++flow)
    {
        attach(flow, rtts[flow]);
    }
    if (cbr > 0)
    {
        attach(flows, rtt_min);
    }
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();

    FILE* file = trace.empty() ? nullptr : std::fopen(trace.c_str(), "w");
    g_senders.resize(flows);
    for (uint32_t flow = 0; flow < flows; ++flow)
    {
        PacketSinkHelper receive("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), 5000));
        g_senders[flow].sink = DynamicCast<PacketSink>(receive.Install(hosts.Get(2 * flow + 1)).Get(0));
        g_senders[flow].trace = file;
        BulkSendHelper send("ns3::TcpSocketFactory", InetSocketAddress(sinks[flow], 5000));
        send.SetAttribute("SendSize", UintegerValue(SEGMENT));
        Ptr<BulkSendApplication> source = DynamicCast<BulkSendApplication>(send.Install(hosts.Get(2 * flow)).Get(0));
        source->SetStartTime(Seconds(starts[flow]));
        // The application creates its socket when it starts.
        Simulator::Schedule(Seconds(starts[flow]) + NanoSeconds(1), [source, flow] {
            Ptr<Socket> socket = source->GetSocket();
            socket->TraceConnectWithoutContext("Tx", MakeBoundCallback(&Sent, std::size_t(flow)));
            socket->TraceConnectWithoutContext("CongState", MakeBoundCallback(&State, std::size_t(flow)));
            socket->TraceConnectWithoutContext("CongestionWindow", MakeBoundCallback(&Window, std::size_t(flow)));
        });
    }
    Ptr<PacketSink> cbr_sink;
    uint64_t cbr_before = 0;
    if (cbr > 0)
    {
        PacketSinkHelper receive("ns3::UdpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), 5000));
        cbr_sink = DynamicCast<PacketSink>(receive.Install(hosts.Get(2 * flows + 1)).Get(0));
        const uint32_t payload = CBR_WIRE - CBR_HEADERS;
        OnOffHelper send("ns3::UdpSocketFactory", InetSocketAddress(sinks[flows], 5000));
        send.SetConstantRate(DataRate(uint64_t(cbr * payload / CBR_WIRE)), payload);
        send.Install(hosts.Get(2 * flows)).Get(0)->SetStartTime(Seconds(cbr_start));
        Simulator::Schedule(Seconds(warmup), [&] { cbr_before = cbr_sink->GetTotalRx(); });
    }
    Simulator::Schedule(Seconds(warmup), &Measure);
    Simulator::Stop(Seconds(duration));
    Simulator::Run();

    const double seconds = duration - warmup;
    const auto window = OfSenders([&](Sender& sender) {
        AddWindow(sender);
        return sender.window_seconds / seconds / SEGMENT;
    });
    std::sort(g_sojourns.begin(), g_sojourns.end());
    double sum = 0;
    for (double sojourn : g_sojourns)
    {
        sum += sojourn;
    }
    const auto goodput = OfSenders(
        [&](const Sender& sender) { return 8.0 * double(sender.sink->GetTotalRx() - sender.received_before) / seconds; });
    std::ostringstream text;
    text.precision(8);
    text << "{\"seed\": " << seed << ", \"start\": " << List(starts) << ", \"rtt\": " << List(rtts);
    if (cbr > 0)
    {
        const double received = double(cbr_sink->GetTotalRx() - cbr_before) * CBR_WIRE / (CBR_WIRE - CBR_HEADERS);
        text << ", \"cbr_start\": " << cbr_start << ", \"cbr_delivered\": " << 8.0 * received / seconds;
    }
    text << ", \"goodput\": " << List(goodput) << ", \"window\": " << List(window)
         << ", \"sent\": " << List(OfSenders([](const Sender& sender) { return sender.sent; }))
         << ", \"retransmissions\": " << List(OfSenders([](const Sender& sender) { return sender.retransmissions; }))
         << ", \"cuts\": " << List(OfSenders([](const Sender& sender) { return sender.cuts; }))
         << ", \"timeouts\": " << List(OfSenders([](const Sender& sender) { return sender.timeouts; }))
         << ", \"drops\": " << g_drops << ", \"marks\": " << g_marks << ", \"utilization\": " << 8.0 * double(g_bytes) / rate / seconds
         << ", \"delay\": " << List(std::vector<double>{sum / double(g_sojourns.size()), Percentile(0.5), Percentile(0.95), Percentile(0.99)})
         << "}";
    std::puts(text.str().c_str());
    if (file)
    {
        std::fclose(file);
    }
    Simulator::Destroy();
    return 0;
}

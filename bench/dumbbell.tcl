# The dumbbell of bench/networks.py in ns-2: SACK flows through one RED queue.
#   ns dumbbell.tcl RATE_MBIT FLOWS SECONDS
foreach {rate flows seconds} $argv break

# TCP's headers only, which makes ns-2 about a quarter faster.
remove-all-packet-headers
add-packet-header Flags IP RTP TCP

set ns [new Simulator]
set left [$ns node]
set right [$ns node]
set bdp [expr {int($rate * 1e6 * 0.1 / 8000)}]
set limit [expr {int(2.5 * $bdp)}]
foreach {name value} [list bytes_ false queue_in_bytes_ false mean_pktsize_ 1000 \
        thresh_ [expr {0.15 * $limit}] maxthresh_ [expr {0.5 * $limit}] \
        q_weight_ 0.002 linterm_ 10 wait_ true gentle_ true use_mark_p_ false] {
    Queue/RED set $name $value
}
$ns duplex-link $left $right ${rate}Mb 40ms RED
$ns queue-limit $left $right $limit
$ns queue-limit $right $left $limit

Agent/TCP set packetSize_ 1000
Agent/TCP set window_ 100000
# The access links must never be the bottleneck.
set access [expr {$rate > 900 ? 10 * $rate : 1000}]
set spacing [expr {$flows > 20 ? 0.01 : 0.1}]
set senders {}
for {set i 0} {$i < $flows} {incr i} {
    set delay [expr {1 + 0.1 * $i}]ms
    set source [$ns node]
    set sink [$ns node]
    $ns duplex-link $source $left ${access}Mb $delay DropTail
    $ns duplex-link $right $sink ${access}Mb $delay DropTail
    foreach {a b} [list $source $left $right $sink] {
        $ns queue-limit $a $b 1000000
        $ns queue-limit $b $a 1000000
    }
    set tcp [new Agent/TCP/Sack1]
    set receiver [new Agent/TCPSink/Sack1]
    $ns attach-agent $source $tcp
    $ns attach-agent $sink $receiver
    $ns connect $tcp $receiver
    set ftp [new Application/FTP]
    $ftp attach-agent $tcp
    $ns at [expr {$spacing * $i}] "$ftp start"
    lappend senders $tcp
}

proc report {} {
    global senders
    set sent 0
    set again 0
    foreach tcp $senders {
        incr sent [$tcp set ndatapack_]
        incr again [$tcp set nrexmitpack_]
    }
    puts "packets $sent retransmissions $again"
    exit 0
}
$ns at $seconds report
$ns run

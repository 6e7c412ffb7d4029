# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
# shellcheck disable=SC2034 # the names of targets are for the jobs
# What the jobs share. POSIX sh, runs in the guest; each step sources it anew.

OUT=/lab/out
IQN_LIO=iqn.2026-01.org.example:lio
IQN_ISERD=iqn.2026-01.org.example:iserd
IQN_TGT=iqn.2026-01.org.example:tgt
# the kernel's end of the cable, and the end where no RDMA device is
HERE=192.0.2.9
FAR=192.0.2.10

uptime_s() { cut -d' ' -f1 /proc/uptime; }

# ---- results: the host prints and counts these lines ----

result() {
	echo "$*" >>"$OUT/results"
	echo "== $*"
}
ok() { result "ok $1"; }
bad() { result "not ok $*"; }
skip() { result "skip $*"; }
figure() { result "figure $*"; } # figure NAME VALUE UNIT

# step NAME LIMIT COMMAND...: a program or a function of this file, in seconds at
# most; its output goes to out/NAME.txt, the last line of it tells why it failed.
step() {
	step_name=$1 step_limit=$2
	shift 2
	timeout -k 3 "$step_limit" sh -c '. /lab/guest/lib.sh; "$@"' step "$@" >"$OUT/$step_name.txt" 2>&1
	step_status=$?
	case $step_status in
	0) ok "$step_name" ;;
	77) skip "$step_name" "$(last_line "$step_name")" ;;
	124 | 137) bad "$step_name" "no end within $step_limit s: $(last_line "$step_name")" ;;
	*) bad "$step_name" "$(last_line "$step_name") (status $step_status)" ;;
	esac
	return $step_status
}
last_line() { tr '\r' '\n' <"$OUT/$1.txt" | grep -v '^ *$' | tail -1; }

wait_for() { # wait_for TENTHS COMMAND...: until it succeeds
	wait_left=$1
	shift
	until "$@"; do
		wait_left=$((wait_left - 1))
		[ $wait_left -gt 0 ] || return 1
		sleep 0.1
	done
}

# ---- cables ----

# far: a cable between here (near, HERE) and the namespace "far" (cord, FAR), which
# has no RDMA device. Packets of both directions go to out/NAME.pcap.
far() {
	ip netns add far
	ip link add near type veth peer name cord netns far
	ip addr add $HERE/24 dev near
	ip link set near up
	ip -n far addr add $FAR/24 dev cord
	ip -n far link set cord up
	ip -n far link set lo up
	wait_for 50 carrier near
}
carrier() { [ "$(cat "/sys/class/net/$1/carrier" 2>/dev/null)" = 1 ]; }
at_far() { nsenter --net=/run/netns/far "$@"; }

# cut and mend: every packet is lost in both directions, the carrier stays
cut_cable() {
	modprobe sch_netem
	tc qdisc add dev near root netem loss 100%
	at_far tc qdisc add dev cord root netem loss 100%
}
mend_cable() {
	tc qdisc del dev near root
	at_far tc qdisc del dev cord root
}

# wire: a cable with both ends (wa HERE, wb FAR) in this namespace, for the kernel's
# own parts, which live in the first one only. Rules keep the packets on the cable.
wire() {
	ip link add wa type veth peer name wb
	for i in all default wa wb; do
		echo 1 >/proc/sys/net/ipv4/conf/$i/accept_local
		echo 0 >/proc/sys/net/ipv4/conf/$i/rp_filter
		echo 1 >/proc/sys/net/ipv4/conf/$i/arp_ignore
		echo 2 >/proc/sys/net/ipv4/conf/$i/arp_announce
	done
	ip link set wa up
	ip link set wb up
	ip addr add $HERE/24 dev wa
	ip addr add $FAR/24 dev wb
	ip route add $FAR dev wa src $HERE table 101
	ip route add $HERE dev wb src $FAR table 102
	ip rule add pref 100 lookup local
	ip rule add pref 10 iif lo to $FAR lookup 101
	ip rule add pref 11 iif lo to $HERE lookup 102
	ip rule del pref 0
	wait_for 50 carrier wa
}

# capture NAME NETDEV [PACKETS]: in the background, ends by itself after so many
capture() {
	tcpdump -i "$2" -U -s 0 -c "${3:-2000}" -w "$OUT/$1.pcap" 'tcp or udp port 4791' >"$OUT/$1.tcpdump" 2>&1 &
	echo $! >/run/capture.pid
	wait_for 50 grep -q listening "$OUT/$1.tcpdump"
}
capture_end() {
	sleep 0.3
	kill "$(cat /run/capture.pid)" 2>/dev/null
	true
}

# ---- RDMA ----

# rdma_device siw|rxe NETDEV: the netdev needs a MAC and an address of its own
rdma_device() {
	case $1 in rxe) rdma_driver=rdma_rxe ;; *) rdma_driver=$1 ;; esac
	modprobe -a ib_core rdma_cm iw_cm ib_cm ib_uverbs rdma_ucm "$rdma_driver" &&
		rdma link add "$1_$2" type "$1" netdev "$2"
}

# ---- targets ----

# lio ADDRESS PORT tcp|iser [MIB]: the kernel's target, a ram disk, open to all
lio() {
	lio_root=/sys/kernel/config/target
	modprobe -a target_core_mod iscsi_target_mod
	[ -d $lio_root ] || mount -t configfs configfs /sys/kernel/config
	mkdir -p $lio_root/core/rd_mcp_0/ram
	echo rd_pages=$((${4:-128} * 256)) >$lio_root/core/rd_mcp_0/ram/control
	echo 1 >$lio_root/core/rd_mcp_0/ram/enable
	echo lab-0001 >$lio_root/core/rd_mcp_0/ram/wwn/vpd_unit_serial # without: no VPD pages
	lio_tpg=$lio_root/iscsi/$IQN_LIO/tpgt_1
	mkdir -p $lio_tpg/lun/lun_0
	ln -s $lio_root/core/rd_mcp_0/ram $lio_tpg/lun/lun_0/ram
	echo 0 >$lio_tpg/attrib/authentication
	echo 1 >$lio_tpg/attrib/generate_node_acls
	echo 0 >$lio_tpg/attrib/demo_mode_write_protect
	echo 1 >$lio_tpg/attrib/cache_dynamic_acls
	"lio_portal_$3" "$lio_tpg/np/$1:$2" || return 1
	echo 1 >$lio_tpg/enable
}
lio_portal_tcp() { mkdir "$1"; }
# The new portal listens on TCP; siw's listener is a TCP listener too. The first one
# goes to a namespace where it is in nobody's way.
lio_portal_iser() {
	modprobe ib_isert
	ip netns add aside
	nsenter --net=/run/netns/aside mkdir "$1" && echo 1 >"$1/iser"
}

# iserd_at_far [OPTION]... LUN...: our daemon where no RDMA device is
iserd_at_far() {
	iserd_watched "$@" &
	wait_for 100 grep -q . "$OUT/iserd.urls" && return
	tail -1 "$OUT/iserd.log"
	return 1
}
iserd_watched() { # keeps its process and its exit status in /run
	: >"$OUT/iserd.urls"
	at_far sh -c 'echo $$ >/run/iserd.pid; exec "$@"' iserd iserd serve --name $IQN_ISERD \
		--listen $FAR:3260 --control /run/iserd.ctl "$@" >"$OUT/iserd.urls" 2>"$OUT/iserd.log"
	echo $? >/run/iserd.status
}
iserd_ends() { # in order: exit status 0, within 15 s, no word of an error
	kill "$(cat /run/iserd.pid)"
	wait_for 150 [ -s /run/iserd.status ] || return 1
	cat "$OUT/iserd.log"
	[ "$(cat /run/iserd.status)" = 0 ] && ! grep -qiE 'runtime error|sanitizer' "$OUT/iserd.log"
}

# ---- the kernel's initiator ----

iscsid_start() {
	modprobe -a crc32c_generic crct10dif_generic crc64_rocksoft_generic sd_mod sg ib_iser iscsi_tcp
	mkdir -p /run/lock/iscsi /etc/iscsi/nodes /etc/iscsi/send_targets
	iscsid -f -d 2 >"$OUT/iscsid.log" 2>&1 &
	wait_for 50 iscsiadm -m iface >/dev/null 2>&1
}

# The next ones: ADDRESS IQN INTERFACE (default is TCP, iser is iSER); kernel_login
# also takes settings of the node record, NAME=VALUE
kernel_discovery() {
	iscsiadm -m discovery -t st -p "$1:3260" -I "$3" | tee /run/found
	grep -q "$2" /run/found
}
kernel_login() {
	iscsiadm -m node -o delete >/dev/null 2>&1 # what discovery left
	iscsiadm -m node -T "$2" -p "$1:3260" -I "$3" -o new >/dev/null || return 1
	shift 3
	for setting; do
		iscsiadm -m node -o update -n "${setting%%=*}" -v "${setting#*=}" || return 1
	done
	iscsiadm -m node --login && wait_for 150 kernel_disk
}
# prints the disk's path
kernel_disk() {
	for d in /sys/class/iscsi_session/session*/device/target*/*/block/*; do
		[ -b "/dev/${d##*/}" ] && echo "/dev/${d##*/}" && return
	done
	return 1
}
kernel_logout() {
	iscsiadm -m node --logoutall=all && iscsiadm -m node -o delete && ! kernel_disk
}
kernel_state() { cat /sys/class/iscsi_session/session*/state; }
kernel_logged_in() { [ "$(kernel_state)" = LOGGED_IN ]; }

# ---- what is done with a disk ----

disk_small() { # a few commands for the capture: immediate data, R2T or RDMA Read, reads
	disk=$(kernel_disk)
	for size in 4k 64k; do
		dd if=/dev/urandom of=/tmp/small bs=$size count=1 &&
			dd if=/tmp/small of="$disk" bs=$size seek=16 oflag=direct &&
			dd if="$disk" of=/tmp/small.back bs=$size skip=16 count=1 iflag=direct &&
			cmp /tmp/small /tmp/small.back || return 1
	done
}
disk_compare() { # disk_compare MIB: random bytes written, read, compared; past the caches
	disk=$(kernel_disk)
	dd if=/dev/urandom of=/tmp/reference bs=1M count="$1" &&
		dd if=/tmp/reference of="$disk" bs=1M oflag=direct conv=fsync &&
		dd if="$disk" of=/tmp/back bs=1M count="$1" iflag=direct &&
		cmp /tmp/reference /tmp/back
}
disk_fsck() {
	disk=$(kernel_disk)
	mkfs.ext4 -q -F "$disk" && mkdir -p /mnt && mount -t ext4 "$disk" /mnt &&
		dd if=/dev/urandom of=/mnt/file bs=1M count=8 && sum=$(sha256sum </mnt/file) &&
		umount /mnt && fsck.ext4 -f -n "$disk" &&
		mount -t ext4 "$disk" /mnt && [ "$sum" = "$(sha256sum </mnt/file)" ] && umount /mnt
}
# a LUN reset by hand: it was sent and answered, and the disk works afterwards
disk_reset() {
	before=$(kernel_statistic tmfcmd_pdus)
	sg_reset -d "$(kernel_disk)" && kernel_task_management "$before" && disk_small
}
# An abort as in life: the target stands still for longer than the command may take.
disk_abort() {
	disk=$(kernel_disk) before=$(kernel_statistic tmfcmd_pdus)
	echo 1 >"/sys/block/${disk##*/}/device/timeout"
	kill -STOP "$(cat /run/iserd.pid)"
	(
		sleep 12 # the block layer looks every 5 s
		kill -CONT "$(cat /run/iserd.pid)"
	) &
	dd if="$disk" of=/dev/null bs=4k count=1 iflag=direct
	abort_status=$?
	wait
	echo 30 >"/sys/block/${disk##*/}/device/timeout"
	[ $abort_status = 0 ] && kernel_task_management "$before" && disk_small
}
# kernel_task_management BEFORE: more requests were sent than before, all were answered
kernel_task_management() {
	sent=$(kernel_statistic tmfcmd_pdus) answered=$(kernel_statistic tmfrsp_pdus)
	echo "task management: sent $1 before, $sent since, answered $answered"
	[ "$sent" -gt "$1" ] && [ "$sent" = "$answered" ]
}
kernel_statistic() { iscsiadm -m session -s | sed -n "s/.*$1: *\([0-9]*\).*/\1/p"; }

# The kernel said nothing that it should not. DMESG_ALLOW: a regular expression of
# lines that the job itself brought about.
dmesg_clean() {
	dmesg | grep -E 'BUG|WARNING|Oops|Call Trace|general protection|blocked for more|soft lockup|stalls on|[Ee]rror|fail(ed|ure)|timed out' |
		grep -vE "${DMESG_ALLOW:-^$}|module verification failed" || return 0
	return 1
}

# ---- whole sessions ----

# kernel_session ADDRESS IQN INTERFACE NETDEV: everything that a kernel initiator is
# asked to do with a target on the other end of a cable; the first, short session is
# captured. False: no use going on.
kernel_session() {
	iscsid_start
	capture session "$4"
	step discovery 40 kernel_discovery "$1" "$2" "$3" || return 1
	step login 60 kernel_login "$1" "$2" "$3" || return 1
	step small 30 disk_small
	step logout 30 kernel_logout
	capture_end
	# Without pings a command that is late is aborted; with them the connection is tested first
	step login-again 60 kernel_login "$1" "$2" "$3" 'node.conn[0].timeo.noop_out_interval=0' \
		'node.conn[0].timeo.noop_out_timeout=0' || return 1
	iscsiadm -m session -P 2 >"$OUT/session.txt" 2>&1
	step compare 200 disk_compare 64
	step fsck 100 disk_fsck
	step reset 30 disk_reset
}

# iser_session SCHEME ADDRESS IQN NETDEV: the same of our initiator, run at the far
# end against a unit of 64 MiB
iser_session() {
	iser_url="$1://$2:3260/$3/0"
	capture session "$4" 500
	step discovery 20 iser_finds "$1://$2:3260" "$3"
	step login 20 at_far iser info "$iser_url" || return 1
	step ping 20 at_far iser ping --count 3 "$iser_url"
	step small 20 at_far iser bench --rw rw --bs 64k --amount 256k --depth 1 --yes-overwrite "$iser_url"
	capture_end
	step compare 200 iser_compare "$iser_url"
	step fsck 100 iser_fsck "$iser_url"
}
iser_finds() {
	at_far iser ls "$1" | tee /run/found
	grep -q "$2" /run/found
}
iser_compare() { # a file in, out again, and the digest of the unit
	dd if=/dev/urandom of=/tmp/reference bs=1M count=64 &&
		at_far iser copy --quiet /tmp/reference "$1" &&
		at_far iser copy --quiet "$1" /tmp/back &&
		sum=$(sha256sum </tmp/reference) && [ "$sum" = "$(sha256sum </tmp/back)" ] &&
		at_far iser hash "$1" | grep "${sum%% *}"
}
iser_fsck() {
	truncate -s 64M /tmp/image && mkfs.ext4 -q -F /tmp/image &&
		at_far iser copy --quiet /tmp/image "$1" &&
		at_far iser copy --quiet "$1" /tmp/image.back && cmp /tmp/image /tmp/image.back &&
		fsck.ext4 -f -n /tmp/image.back
}

# ---- what may not be there yet ----

# An MPA Request with iSER's private data, as ib_iser sends it: is there a Reply?
iserd_knows_iwarp() {
	printf 'MPA ID Req Frame\020\002\000\010\000\200\000\001\200\000\000\000' |
		timeout 3 nc $FAR 3260 | head -c 16 | grep -q 'MPA ID Rep Frame'
}

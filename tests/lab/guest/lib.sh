# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
# shellcheck disable=SC2034 # the names of targets are for the jobs
# Functions for all jobs. POSIX sh, runs in the guest; each step sources this file.

: "${OUT:=/lab/out}"
: "${PEERS_OWN:=}"
: "${PATIENCE:=1}" # the factor by which the host is slower than an idle machine
IQN_LIO=iqn.2026-01.org.example:lio
IQN_ISERD=iqn.2026-01.org.example:iserd
IQN_LIBISCSI=iqn.2026-01.org.example:libiscsi
IQN_TGT=iqn.2026-01.org.example:tgt
# the kernel's end of the cable, and the end without an RDMA device
HERE=192.0.2.9
FAR=192.0.2.10
HERE2=198.51.100.9
FAR2=198.51.100.10

export OPENISER_MODULES=/opt/openiser # rcap-verbs.so

# shellcheck source=tests/lab/guest/scsi.sh
. /lab/guest/scsi.sh
# shellcheck source=tests/lab/guest/killed.sh
. /lab/guest/killed.sh
# shellcheck source=tests/lab/guest/live.sh
. /lab/guest/live.sh
# shellcheck source=tests/lab/guest/attach.sh
. /lab/guest/attach.sh
# shellcheck source=tests/lab/guest/boot.sh
. /lab/guest/boot.sh
# shellcheck source=tests/lab/guest/gateways.sh
. /lab/guest/gateways.sh
# shellcheck source=tests/lab/guest/persist.sh
. /lab/guest/persist.sh

uptime_s() { cut -d' ' -f1 /proc/uptime; }

# ---- results: the host prints and counts these lines ----

result() {
	echo "$*" >>"$OUT/results"
	echo "== $*"
}
ok() { result "ok $1"; }
bad() { result "not ok $*"; }
skip() { result "skip $*"; }
figure() { # figure NAME VALUE UNIT
	if [ -n "$2" ]; then result "figure $*"; else not_ok "$1" "no figure"; fi
}
# pair INITIATOR | TARGET | OVER: the pair of the next figures
pair() { result "pair $*"; }

# step NAME LIMIT COMMAND...: runs a program or a function of this file, with a limit in seconds
# (on an idle machine); the output goes to out/NAME.txt, whose last line is the reason of a failure.
step() {
	step_name=$1 step_limit=$(($2 * PATIENCE))
	shift 2
	timeout -k 3 "$step_limit" sh -c '. /lab/guest/lib.sh; "$@"' step "$@" >"$OUT/$step_name.txt" 2>&1
	step_status=$?
	case $step_status in
	0) ok "$step_name" ;;
	77) skip "$step_name" "$(last_line "$step_name")" ;;
	124 | 137) not_ok "$step_name" "no end within $step_limit s: $(last_line "$step_name")" ;;
	*) not_ok "$step_name" "$(last_line "$step_name") (status $step_status)" ;;
	esac
	return $step_status
}
# PEERS_OWN: steps that fail between the peers without openiser, too
not_ok() {
	case " $PEERS_OWN " in
	*" $1 "*) skip "$1" "fails without openiser, too: $2" ;;
	*) bad "$@" ;;
	esac
}
last_line() { tr '\r' '\n' <"$OUT/$1.txt" | grep -v '^ *$' | tail -1; }

wait_for() { # wait_for TENTHS COMMAND...: repeats the command until it succeeds
	wait_left=$(($1 * PATIENCE))
	shift
	until "$@"; do
		wait_left=$((wait_left - 1))
		[ $wait_left -gt 0 ] || return 1
		sleep 0.1
	done
}

# ---- cables ----

# far: makes a cable between this namespace (near, HERE) and the namespace "far" (cord,
# FAR), which has no RDMA device; far_second: makes a second one (near2, cord2)
far() {
	ip netns add far
	ip -n far link set lo up
	far_cable '' $HERE $FAR
}
far_second() { far_cable 2 $HERE2 $FAR2; }
far_cable() {
	ip link add "near$1" type veth peer name "cord$1" netns far
	ip addr add "$2/24" dev "near$1"
	ip link set "near$1" up
	ip -n far addr add "$3/24" dev "cord$1"
	ip -n far link set "cord$1" up
	wait_for 50 carrier "near$1"
}
carrier() { [ "$(cat "/sys/class/net/$1/carrier" 2>/dev/null)" = 1 ]; }
at_far() { # a job with both ends in one namespace sets ONE_NAMESPACE=1
	if [ -n "${ONE_NAMESPACE:-}" ]; then
		"$@"
	else
		nsenter --net=/run/netns/far "$@"
	fi
}

# cut_cable and mend_cable [NEAR]: between the two, every packet is lost in both
# directions; the carrier stays
cut_cable() {
	modprobe sch_netem
	cable "${1:-}" add netem loss 100%
}
mend_cable() { cable "${1:-}" del; }
cable() { # cable NEAR add|del WHAT...: changes both ends of this cable, or of the only one
	cable_end=$1 cable_do=$2
	shift 2
	case ${cable_end:-$(ls /sys/class/net)} in
	*wa*)
		tc qdisc "$cable_do" dev wa root "$@" && tc qdisc "$cable_do" dev wb root "$@"
		;;
	eth*) tc qdisc "$cable_do" dev "$cable_end" root "$@" ;; # the other end is at the host
	*)
		cable_end=${cable_end:-near}
		tc qdisc "$cable_do" dev "$cable_end" root "$@" &&
			at_far tc qdisc "$cable_do" dev "cord${cable_end#near}" root "$@"
		;;
	esac
}

# wire: makes a cable with both ends (wa HERE, wb FAR) in this namespace, because the
# kernel's initiator and target work in the initial namespace only. Rules keep the packets on the cable.
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

# capture NAME NETDEV [PACKETS]: captures in the background, and ends after so many packets
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

# rdma_device siw|rxe NETDEV: the network device needs a MAC address and an IP address
rdma_device() {
	case $1 in rxe) rdma_driver=rdma_rxe ;; *) rdma_driver=$1 ;; esac
	modprobe -a ib_core rdma_cm iw_cm ib_cm ib_uverbs rdma_ucm "$rdma_driver" &&
		rdma link add "$1_$2" type "$1" netdev "$2"
}

# ---- targets ----

lio_root=/sys/kernel/config/target

# lio ADDRESS PORT tcp|iser [MIB]: starts the kernel's target with a ram disk, open to all initiators
lio() {
	modprobe -a target_core_mod iscsi_target_mod
	[ -d $lio_root ] || mount -t configfs configfs /sys/kernel/config
	mkdir -p $lio_root/core/rd_mcp_0/ram
	echo rd_pages=$((${4:-128} * 256)) >$lio_root/core/rd_mcp_0/ram/control
	echo 1 >$lio_root/core/rd_mcp_0/ram/enable
	echo lab-0001 >$lio_root/core/rd_mcp_0/ram/wwn/vpd_unit_serial # without a serial number LIO has no VPD pages
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
# lio_file FILE MIB: LUN 1 of the kernel's target, which is started
lio_file() {
	lio_tpg=$lio_root/iscsi/$IQN_LIO/tpgt_1
	truncate -s "$2M" "$1"
	mkdir -p $lio_root/core/fileio_0/file "$lio_tpg/lun/lun_1"
	echo "fd_dev_name=$1,fd_dev_size=$(($2 << 20))" >$lio_root/core/fileio_0/file/control
	echo 1 >$lio_root/core/fileio_0/file/enable
	ln -s $lio_root/core/fileio_0/file "$lio_tpg/lun/lun_1/file"
}
lio_portal_tcp() { mkdir "$1"; }
lio_ends() { # waits until its port is free
	echo 0 >$lio_root/iscsi/$IQN_LIO/tpgt_1/enable
	rmdir $lio_root/iscsi/$IQN_LIO/tpgt_1/np/*
}
# The new portal listens on TCP, and the listener of siw is a TCP listener, too. The
# portal goes to an empty namespace, so that the two do not collide.
lio_portal_iser() {
	modprobe ib_isert
	ip netns add aside
	nsenter --net=/run/netns/aside mkdir "$1" && echo 1 >"$1/iser"
}

# tgt: its iSER listens on every address, port 3260; its TCP portal has another port. tgt
# pins its buffers (1 GiB by default) and requires that address and name are bound.
tgt() { # tgt MIB
	echo 1 >/proc/sys/vm/overcommit_memory
	truncate -s "$1M" /tmp/tgt.disk
	tgtd -f --iscsi portal=127.0.0.1:3299 --iser pool_sz_mb=64 >"$OUT/tgtd.log" 2>&1 &
	wait_for 50 tgtadm --lld iser --mode sys --op show >/dev/null 2>&1
	tgtadm --lld iser --mode target --op new --tid 1 --targetname $IQN_TGT &&
		tgtadm --lld iser --mode logicalunit --op new --tid 1 --lun 1 --backing-store /tmp/tgt.disk &&
		tgtadm --lld iser --mode target --op bind --tid 1 --initiator-address ALL &&
		for name in example:lab-kernel openiser:lab; do # the names of open-iscsi and iser
			tgtadm --lld iser --mode target --op bind --tid 1 \
				--initiator-name iqn.2026-01.org.$name || return 1
		done
}

# iserd_at_far [OPTION]... LUN...: starts iserd in the namespace without an RDMA device
iserd_at_far() {
	: >"$OUT/iserd.urls" # removes the URLs of an earlier iserd
	iserd_watched "$@" &
	wait_for 100 grep -q . "$OUT/iserd.urls" && return
	tail -1 "$OUT/iserd.log"
	return 1
}
iserd_watched() { # writes its process id and its exit status to /run
	at_far sh -c 'echo $$ >/run/iserd.pid; exec "$@"' iserd iserd serve --name $IQN_ISERD \
		--listen "${ISERD_LISTEN:-$FAR:3260}" --control /run/iserd.ctl "$@" >"$OUT/iserd.urls" 2>"$OUT/iserd.log"
	echo $? >/run/iserd.status
}
iserd_ends() { # ends in order: exit status 0, within 15 s, no error in the log
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

# Arguments of the next functions: ADDRESS IQN INTERFACE (default is TCP, iser is iSER);
# kernel_login also accepts settings of the node record, NAME=VALUE
kernel_discovery() {
	iscsiadm -m discovery -t st -p "$1:3260" -I "$3" | tee /run/found
	grep -q "$2" /run/found
}
kernel_login() {
	node="iscsiadm -m node -T $2 -p $1:3260 -I $3"
	iscsiadm -m node -T "$2" -p "$1:3260" -o delete >/dev/null 2>&1 # the record of an earlier discovery
	$node -o new >/dev/null || return 1
	shift 3
	for setting; do
		$node -o update -n "${setting%%=*}" -v "${setting#*=}" || return 1
	done
	$node --login && wait_for 150 kernel_disk
}
# kernel_disk: prints the path of DISK, or of the first iSCSI disk
kernel_disk() {
	[ -z "${DISK:-}" ] || {
		echo "$DISK"
		return
	}
	for d in /sys/class/iscsi_session/session*/device/target*/*/block/*; do
		[ -b "/dev/${d##*/}" ] && echo "/dev/${d##*/}" && return
	done
	return 1
}
kernel_logout() {
	iscsiadm -m node --logoutall=all && iscsiadm -m node -o delete && ! kernel_disk
}
kernel_state() { cat /sys/class/iscsi_session/session*/state; }
kernel_logged_in() { ! kernel_state | grep -qv LOGGED_IN; }

# ---- tests of a disk ----

disk_small() { # sends a few commands for the capture: immediate data, R2T or RDMA Read, reads
	disk=$(kernel_disk)
	for size in 4k 16k; do
		dd if=/dev/urandom of=/tmp/small bs=$size count=1 &&
			dd if=/tmp/small of="$disk" bs=$size seek=16 oflag=direct &&
			dd if="$disk" of=/tmp/small.back bs=$size skip=16 count=1 iflag=direct &&
			cmp /tmp/small /tmp/small.back || return 1
	done
}
disk_compare() { # disk_compare MIB: writes, reads and compares random bytes, without caches
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
# dm_crypt_reads IMAGE KEY MIB: dm-crypt reads the same data from the image of an
# encrypted unit, where written, as the unit has
dm_crypt_reads() {
	modprobe -a dm_crypt loop && losetup -r /dev/loop7 "$1" || return 1
	dmsetup create plain --readonly --noudevsync --noudevrules --table \
		"0 $(($3 * 2048)) crypt aes-xts-plain64 $(od -An -v -tx1 "$2" | tr -d ' \n') 0 /dev/loop7 0" &&
		dmsetup mknodes plain &&
		dd if="$(kernel_disk)" of=/tmp/back bs=1M count="$3" iflag=direct &&
		cmp -n $(($3 << 20)) /tmp/back /dev/mapper/plain && cmp -s -n 4096 /tmp/back "$1"
	same=$?
	dmsetup remove --noudevsync --noudevrules plain
	losetup -d /dev/loop7
	[ $same = 1 ] # the last cmp: the encrypted image itself must differ
}
# disk_crypto_erase KEY MIB: the first MiB, random before, become zeros, and the key changes
disk_crypto_erase() {
	disk=$(kernel_disk)
	before=$(sha256sum <"$1")
	sg_opcodes --opcode=0x48,3 "$disk" && sg_vpd --page=bdc "$disk" &&
		sg_sanitize --crypto --quick --early "$disk" && sg_turs --num=20 "$disk"
	wait_for 100 sg_turs "$disk" && blockdev --flushbufs "$disk" &&
		dd if="$disk" of=/tmp/back bs=1M count="$2" iflag=direct &&
		cmp -n $(($2 << 20)) /tmp/back /dev/zero && [ "$before" != "$(sha256sum <"$1")" ]
}
# sends a LUN reset: it must be answered, and the disk must work afterwards
disk_reset() {
	before=$(kernel_statistic tmfcmd_pdus)
	sg_reset -d "$(kernel_disk)" && kernel_task_management "$before" && disk_small
}
# A realistic abort: the target is stopped for longer than the timeout of the command.
disk_abort() {
	disk=$(kernel_disk) before=$(kernel_statistic tmfcmd_pdus)
	echo 1 >"/sys/block/${disk##*/}/device/timeout"
	kill -STOP "$(cat /run/iserd.pid)"
	(
		sleep 12 # the block layer checks timeouts every 5 s
		kill -CONT "$(cat /run/iserd.pid)"
	) &
	dd if="$disk" of=/dev/null bs=4k count=1 iflag=direct
	abort_status=$?
	wait
	echo 30 >"/sys/block/${disk##*/}/device/timeout"
	[ $abort_status = 0 ] && kernel_task_management "$before" && disk_small
}
# kernel_task_management BEFORE: more requests than before were sent, and all were answered
kernel_task_management() {
	sent=$(kernel_statistic tmfcmd_pdus) answered=$(kernel_statistic tmfrsp_pdus)
	echo "task management: sent $1 before, $sent since, answered $answered"
	[ "$sent" -gt "$1" ] && [ "$sent" = "$answered" ]
}
kernel_statistic() { iscsiadm -m session -s | sed -n "s/.*$1: *\([0-9]*\).*/\1/p"; }

# Figures, comparable only within one run of the laboratory, because of the emulation
kernel_figures() {
	disk=$(kernel_disk)
	kernel_rate read-4k-depth-8 8 4 500 IOPS
	kernel_rate write-4k-depth-8 8 4 500 IOPS
	kernel_rate read-1m-depth-4 4 1024 24 MB/s
	kernel_rate write-1m-depth-4 4 1024 24 MB/s
}
kernel_rate() { # kernel_rate NAME PROCESSES KIB COUNT UNIT
	pids='' process=0 rate_began=$(uptime_s)
	while [ $process -lt "$2" ]; do
		case $1 in
		read*) dd if="$disk" of=/dev/null bs="$3k" count="$4" skip=$((process * $4)) iflag=direct 2>/dev/null & ;;
		*) dd if=/dev/zero of="$disk" bs="$3k" count="$4" seek=$((process * $4)) oflag=direct 2>/dev/null & ;;
		esac
		pids="$pids $!" process=$((process + 1))
	done
	for pid in $pids; do wait "$pid"; done
	figure "$1" "$(echo "$rate_began $(uptime_s) $2 $3 $4" | awk -v unit="$5" '{
		n = $3 * $5 / ($2 - $1); printf "%.0f", unit == "IOPS" ? n : n * $4 * 1024 / 1e6 }')" "$5"
}
# Figures of several pairs in one boot: same_boot_kernel and same_boot_iser, ADDRESS IQN PAIR
same_boot_kernel() {
	pair "Linux ib_iser | $3"
	step login 60 kernel_login "$1" "$2" iser && kernel_figures && step logout 30 kernel_logout
}
same_boot_iser() {
	pair "iser${iser_query:+, verbs} | $3"
	same_url="iser://$1:3260/$2/0${iser_query:-}"
	step login 20 at_far iser info "$same_url" && iser_figures "$same_url"
}
# iser_figures URL: the same for iser. LARGE: the largest request that the target accepts
iser_figures() {
	iser_large=${LARGE:-1m}
	iser_rate read-4k-depth-8 "$1" IOPS --rw randread --bs 4k --depth 8
	iser_rate write-4k-depth-8 "$1" IOPS --rw randwrite --bs 4k --depth 8 --yes-overwrite
	iser_rate "read-$iser_large-depth-4" "$1" MB/s --rw read --bs "$iser_large" --depth 4
	iser_rate "write-$iser_large-depth-4" "$1" MB/s --rw write --bs "$iser_large" --depth 4 --yes-overwrite
}
iser_rate() { # iser_rate NAME URL UNIT OPTION...
	rate_name=$1 rate_url=$2 rate_unit=$3
	shift 3
	at_far timeout 20 iser bench --json --time 2 "$@" "$rate_url" >"$OUT/$rate_name.json" 2>&1
	case $rate_unit in
	IOPS) rate_value=$(sed -n 's/.*"iops": *\([0-9]*\).*/\1/p' "$OUT/$rate_name.json" | sort -n | tail -1) ;;
	*) rate_value=$(sed -n 's/.*"bytes_per_second": *\([0-9]*\).*/\1/p' "$OUT/$rate_name.json" | sort -n | tail -1) &&
		rate_value=${rate_value:+$((rate_value / 1000000))} ;;
	esac
	figure "$rate_name" "$rate_value" "$rate_unit"
}

# ---- faults under load ----

# trouble COMMAND...: while a loop writes to the disk, piece by piece, runs the command,
# which interrupts and restores the connection; then all writes must be acknowledged,
# the session must exist, and the disk must have each piece. Writes the seconds from the
# end of the command to the next acknowledged write to /run/back.
trouble() {
	[ -e /tmp/pieces ] || dd if=/dev/urandom of=/tmp/pieces bs=1M count=48 2>/dev/null
	disk_pieces /tmp/pieces "$(kernel_disk)" &
	writer=$!
	sleep 1
	"$@" || return 1
	gone=$(uptime_s) before=$(cat /run/piece)
	wait_for 2000 writer_beyond "$before"
	echo "$(uptime_s) $gone" | awk '{ printf "%.1f\n", $1 - $2 }' | tee /run/back
	wait $writer && wait_for 100 kernel_logged_in || return 1
	dd if="$(kernel_disk)" of=/tmp/back bs=1M count=48 iflag=direct && cmp /tmp/pieces /tmp/back
}
disk_pieces() { # 48 acknowledged writes of 1 MiB, with a pause after each
	piece=0
	while [ $piece -lt 48 ]; do
		echo $piece >/run/piece
		dd if="$1" of="$2" bs=1M count=1 skip=$piece seek=$piece oflag=direct conv=notrunc 2>/run/piece.dd || {
			echo "write of piece $piece: $(tail -1 /run/piece.dd)"
			return 1
		}
		piece=$((piece + 1))
		sleep 0.05
	done
}
writer_beyond() { [ "$(cat /run/piece)" != "$1" ] || ! kill -0 "$writer" 2>/dev/null; }
cable_out() { # cable_out SECONDS [NEAR]
	cut_cable "${2:-}" && sleep "$1" && mend_cable "${2:-}"
}
iserd_killed() { # iserd_killed LUN...: kills iserd, and starts a new one 3 s later
	kill -KILL "$(cat /run/iserd.pid)"
	wait_for 50 [ -s /run/iserd.status ]
	rm -f /run/iserd.status /run/iserd.ctl
	sleep 3
	iserd_at_far "$@"
}
# iserd_replaced LUN...: a new iserd takes over (--takeover); the old one ends in order
iserd_replaced() {
	rm -f /run/iserd.status
	cp "$OUT/iserd.log" "$OUT/iserd.before.log"
	iserd_at_far --takeover "$@" || return 1
	wait_for 100 [ -s /run/iserd.status ] && [ "$(cat /run/iserd.status)" = 0 ] && rm /run/iserd.status
}
# replaced_session ADDRESS IQN INTERFACE: iserd is replaced three times under load
replaced_session() {
	iscsid_start
	step login 60 kernel_login "$1" "$2" "$3" || return 1
	for time in 1 2 3; do
		dd if=/dev/zero of="$(kernel_disk)" bs=1M count=48 oflag=direct 2>/dev/null
		step reconnect 150 trouble iserd_replaced --buffered /tmp/disk || return 1
		figure "back-after-takeover-$time" "$(cat /run/back)" s
	done
}
# ---- the persisted state of a unit, with sg3-utils and sdparm ----

STATE='--buffered --state /run/state --alua 1:optimized:1 --alua 2:standby:2 --sanitize-rate 8M --allow-lost-reservations /run/disk.img'
state_serve() {
	[ -e /run/disk.img ] || truncate -s 48M /run/disk.img
	# shellcheck disable=SC2086 # words
	iserd_at_far $STATE
}
state_again() { # kills iserd, runs COMMAND... on its state, and restarts iserd
	kill -KILL "$(cat /run/iserd.pid)"
	wait_for 50 [ -s /run/iserd.status ]
	rm -f /run/iserd.status /run/iserd.ctl
	"$@"
	state_serve && wait_for 300 kernel_logged_in || return 1
	for _ in 1 2 3 4; do sg_turs "$(kernel_disk)" >/dev/null 2>&1; done
	return 0
}
state_shows() { # state_shows PATTERN COMMAND...
	pattern=$1
	shift
	"$@" >/run/shown 2>&1
	cat /run/shown
	grep -qiE "$pattern" /run/shown
}
state_pages() {
	disk=$(kernel_disk)
	sdparm --set=TAS=0 --save "$disk" && sdparm --set=QErr=1 "$disk" &&
		state_shows 'TAS +0 .*sav: +0' sdparm --long --get=TAS "$disk" &&
		state_shows 'QErr +1 .*sav: +0' sdparm --long --get=QErr "$disk" &&
		printf 'till three' >/run/name && sg_ident --set "$disk" </run/name &&
		state_shows 'till three' sg_ident --ascii "$disk"
}
state_pages_kept() {
	disk=$(kernel_disk)
	state_shows 'TAS +0 .*sav: +0' sdparm --long --get=TAS "$disk" &&
		state_shows 'QErr +0 ' sdparm --long --get=QErr "$disk" &&
		state_shows 'till three' sg_ident --ascii "$disk"
}
state_reserve() {
	disk=$(kernel_disk)
	sg_persist --out --register --param-sark=abc --param-aptpl "$disk" &&
		sg_persist --out --reserve --param-rk=abc --prout-type=1 "$disk" &&
		state_shows 'Replace Lost.*: 1|RLR_C.*: 1' sg_persist --in --report-capabilities "$disk"
}
state_reserved() { state_shows "Key *= *0x$1" sg_persist --in --read-reservation "$(kernel_disk)"; }
state_damage() { for f in /run/state/*.reservations; do echo rubbish >"$f"; done; }
state_replace() {
	disk=$(kernel_disk)
	state_shows 'reservation information lost' sg_turs -v "$disk" &&
		sg_persist --out --replace-lost --param-sark=def --prout-type=1 --param-aptpl "$disk" &&
		sg_turs "$disk" && state_reserved def
}
state_groups() {
	disk=$(kernel_disk)
	state_shows 'active/optimized' sg_rtpg --decode --extended "$disk" && grep -q standby /run/shown || return 1
	sg_stpg --standby "$disk" && state_shows 'in standby state' sg_turs -v "$disk" || return 1
	state_shows 'by SET TARGET PORT GROUPS|explicit' sg_rtpg --decode "$disk" || return 1
	sg_stpg --optimized "$disk" && sg_turs "$disk" || return 1
	# changed by iserctl: a unit attention reports that first
	iserctl -s /run/iserd.ctl group id=1 state=transitioning &&
		state_shows 'access state changed' sg_turs -v "$disk" &&
		state_shows 'access state transition' sg_turs -v "$disk" &&
		state_shows '0x0f .transitioning' sg_rtpg --decode "$disk" || return 1
	iserctl -s /run/iserd.ctl group id=1 state=optimized && iserctl -s /run/iserd.ctl port id=2 state=offline &&
		state_shows 'access state changed' sg_turs -v "$disk" &&
		state_shows '0x0e .offline' sg_rtpg --decode "$disk" && sg_turs "$disk"
}
state_power() {
	disk=$(kernel_disk)
	sg_vpd --page=pc "$disk" && sg_start --pc=3 "$disk" && state_shows 'standby' sg_requests "$disk" &&
		sg_start --pc=2 --mod=1 "$disk" && state_shows 'idle_b|idle condition' sg_requests "$disk" &&
		sg_start --pc=1 "$disk" && ! state_shows 'standby|idle' sg_requests "$disk"
}
state_sanitize() { sg_sanitize --overwrite --zero --quick --early "$(kernel_disk)"; }
state_sanitizing() { state_shows 'sanitize in progress' sg_turs -v "$(kernel_disk)"; }
state_sanitized() {
	wait_for 400 sg_turs "$(kernel_disk)" >/dev/null 2>&1 && dd if=/run/disk.img bs=1M 2>/dev/null |
		cmp -n 50331648 - /dev/zero
}

siw_gone() { device_gone siw "$1"; } # siw_gone NETDEV: removes the device of the kernel
device_gone() { # device_gone siw|rxe NETDEV: removes the device for 3 s
	rdma link del "$1_$2" && sleep 3 && rdma_device "$1" "$2"
}
# iserd_listens, iserd_lost DEVICE N: iserd has found, or lost, the device N times
iserd_listens() { wait_for 150 log_says "$2" "listening, device $1"; }
iserd_lost() { wait_for 150 log_says "$2" "$1: the device was removed"; }
log_says() { [ "$(grep -c "$2" "$OUT/iserd.log")" -ge "$1" ]; }
# workers_serve N: each of N workers has a session over an RDMA device
workers_serve() {
	iserctl --socket /run/iserd.ctl --json status | tee /run/status | grep '"kind"' | sort | uniq -c
	worker=0
	while [ $worker -lt "$1" ]; do
		grep -q "\"worker\": *$worker" /run/status || return 1
		worker=$((worker + 1))
	done
	! grep '"kind"' /run/status | grep -v 'RDMA device'
}
# runs two sessions at once, each on its own range, and compares both
two_benches() { # URL
	iser bench --rw rw --bs 64k --time 3 --depth 4 --yes-overwrite "$1" &
	first=$!
	iser bench --rw rw --bs 4k --time 3 --depth 8 --yes-overwrite "$1" &
	sleep 2
	workers_serve 2
	serve_status=$?
	wait $first && wait $! && [ $serve_status = 0 ]
}
# ---- a machine that disappears under load ----

# vanish_writers: two writers write to each of the two disks (LUN 0 and 1, of the sessions
# in this order); $ACKED/acked.DISK.WRITER lists the acknowledged writes
: "${ACKED:=/run}"
vanish_writers() {
	[ -e /tmp/pieces ] || dd if=/dev/urandom of=/tmp/pieces bs=1M count=48 2>/dev/null
	for lun in 0 1; do
		disk=$(scsi_disk $((lun + 1)) $lun) || return 1
		for writer in 0 1; do
			vanish_writer "$disk" $((writer * 24)) "$ACKED/acked.$lun.$writer" &
			echo $! >>/run/writers
		done
	done
	wait_for 300 vanish_under_way
}
vanish_writer() { # DISK FIRST FILE: writes 24 pieces of 1 MiB in sequence
	piece=0
	while [ $piece -lt 24 ]; do
		dd if=/tmp/pieces of="$1" bs=1M count=1 skip=$(($2 + piece)) seek=$(($2 + piece)) oflag=direct conv=notrunc 2>/dev/null || return
		piece=$((piece + 1))
		echo $piece >"$3"
		sleep 0.1
	done
}
vanish_under_way() { [ -s "$ACKED/acked.0.0" ] && [ -s "$ACKED/acked.0.1" ] && [ -s "$ACKED/acked.1.0" ] && [ -s "$ACKED/acked.1.1" ]; }
# The initiator's machine disappears: no packet follows. iserd ends the sessions by its own
# timers: 15 s without a PDU, checked every 15 s, and 15 s for a ping.
vanish_initiator() {
	iserctl -s /run/iserd.ctl status | grep -A3 '^sessions' | grep -q '(none)' && return 1
	cut_cable near && cut_cable near2 || return 1
	began=$(uptime_s)
	wait_for 500 vanish_no_session || return 1
	echo "$(uptime_s) $began" | awk '{ printf "%.1f\n", $1 - $2 }' | tee /run/vanished
}
vanish_no_session() { iserctl -s /run/iserd.ctl status | grep -A1 '^sessions' | grep -q '(none)'; }
# Other initiators are served, and the disks have the acknowledged writes
vanish_acked() {
	for lun in 0 1; do
		at_far iser copy --quiet "iscsi://$FAR:3260/$IQN_ISERD/$lun" /tmp/back || return 1
		for writer in 0 1; do
			acked=$(cat "$ACKED/acked.$lun.$writer")
			echo "LUN $lun, writer $writer: $acked pieces acknowledged"
			[ "$acked" -gt 0 ] && [ "$acked" -lt 24 ] || return 1
			dd if=/tmp/pieces of=/tmp/want bs=1M skip=$((writer * 24)) count="$acked" 2>/dev/null
			dd if=/tmp/back bs=1M skip=$((writer * 24)) count="$acked" 2>/dev/null | cmp - /tmp/want || return 1
		done
	done
}
# vanish_target URL URL: iser writes to both when their machine disappears; both end by the
# timers of iser (5 s without a PDU, 10 s for a ping), with the reason
vanish_target() {
	at_far iser bench --rw write --bs 64k --depth 16 --time 120 --yes-overwrite "$1" >/run/vanish.1 2>&1 &
	one=$!
	at_far iser bench --rw write --bs 64k --depth 16 --time 120 --yes-overwrite "$2" >/run/vanish.2 2>&1 &
	two=$!
	sleep 3
	kill -0 $one && kill -0 $two && cut_cable near && cut_cable near2 || return 1
	began=$(uptime_s)
	wait $one
	status_one=$?
	wait $two
	status_two=$?
	echo "$(uptime_s) $began" | awk '{ printf "%.1f\n", $1 - $2 }' | tee /run/vanished
	cat /run/vanish.1 /run/vanish.2
	echo "exit status $status_one and $status_two"
	# 8: a timeout
	[ $status_one = 8 ] && [ $status_two = 8 ] && grep -q 'timed out' /run/vanish.1 && grep -q 'timed out' /run/vanish.2 && [ "$(sed 's/\..*//' /run/vanished)" -lt $((25 * PATIENCE)) ]
}

# kernel_troubles ADDRESS IQN INTERFACE SECONDS...: logs in with timeouts of minutes, and
# cuts the cable for each of these times
kernel_troubles() {
	iscsid_start
	step login 60 kernel_login "$1" "$2" "$3" node.session.timeo.replacement_timeout=300 || return 1
	shift 3
	for seconds; do
		dd if=/dev/zero of="$(kernel_disk)" bs=1M count=48 oflag=direct 2>/dev/null
		step reconnect $((seconds + 150)) trouble cable_out "$seconds" || return 1
		figure "back-after-cut-$seconds" "$(cat /run/back)" s
	done
}

# The log of the kernel has no unexpected line. DMESG_ALLOW: a regular expression of
# lines that the job itself causes.
dmesg_clean() {
	dmesg | dmesg_without_unbind | grep -E 'BUG|WARNING|Oops|Call Trace|general protection|blocked for more|soft lockup|stalls on|[Ee]rror|fail(ed|ure)|timed out' |
		grep -vE "${DMESG_ALLOW:-^$}|module verification failed" || return 0
	return 1
}

# Linux warns once that its __iscsi_unbind_session waits for a work queue of the power
# management, if a session ends soon after its begin: docs/interop.md
dmesg_without_unbind() {
	awk '/cut here/ { held = 1 }
		!held { print; next }
		{ block = block $0 "\n" }
		/end trace/ { if (block !~ /__iscsi_unbind_session.*flushing !WQ_MEM_RECLAIM pm:/) printf "%s", block; block = ""; held = 0 }
		END { printf "%s", block }'
}

# ---- whole sessions ----

# kernel_session ADDRESS IQN INTERFACE NETDEV: all steps of a kernel initiator with a
# target at the other end of a cable; the first, short session is captured. Returns
# false if further steps make no sense.
kernel_session() {
	iscsid_start
	capture session "$4"
	step discovery 40 kernel_discovery "$1" "$2" "$3" || return 1
	step login 60 kernel_login "$1" "$2" "$3" || return 1
	step small 30 disk_small
	step logout 30 kernel_logout
	capture_end
	# Without pings Linux aborts a late command; with pings it tests the connection first
	step login-again 60 kernel_login "$1" "$2" "$3" 'node.conn[0].timeo.noop_out_interval=0' \
		'node.conn[0].timeo.noop_out_timeout=0' || return 1
	iscsiadm -m session -P 2 >"$OUT/session.txt" 2>&1
	step compare 200 disk_compare 64
	[ -z "${SMOKE:-}" ] || return 0
	step fsck 100 disk_fsck
	step reset 30 disk_reset
	kernel_figures
}

# iser_session SCHEME ADDRESS IQN NETDEV [LUN]: all steps of iser, run at the far end, with
# a unit of 64 MiB
iser_session() {
	iser_url="$1://$2:3260/$3/${5:-0}${iser_query:-}"
	capture session "$4" 500
	step discovery 20 iser_finds "$1://$2:3260${iser_query:-}" "$3"
	step login 20 at_far iser info "$iser_url" || return 1
	step ping 20 at_far iser ping --count 3 "$iser_url"
	step small 20 at_far iser bench --rw rw --bs 16k --amount 64k --depth 1 --yes-overwrite "$iser_url"
	capture_end
	[ -z "${SMOKE:-}" ] || return 0
	step compare 200 iser_compare "$iser_url"
	step fsck 100 iser_fsck "$iser_url"
	iser_figures "$iser_url"
}
iser_finds() {
	at_far iser ls "$1" | tee /run/found
	grep -q "$2" /run/found
}
iser_compare() { # copies a file in and out, and compares the digest of the unit
	dd if=/dev/urandom of=/tmp/reference bs=1M count=64 &&
		at_far iser copy --quiet /tmp/reference "$1" &&
		at_far iser copy --quiet "$1" /tmp/back &&
		sum=$(sha256sum </tmp/reference) && [ "$sum" = "$(sha256sum </tmp/back)" ] &&
		at_far iser hash "$1" | grep "${sum%% *}"
}
iser_connections() { # iser_connections N URL: its session has N connections
	at_far iser info --json "$2" | tee /run/info
	grep -q "\"connections\": $1\$" /run/info
}
# The 40th receive of a copy fails: that connection is lost, and its commands move to the
# other one. The kernel's target (6.1) then uses a null pointer in target_release_cmd_kref,
# when ExpStatSN acknowledges a command that has moved, so the end of the copy does not count.
iser_recovers() {
	dd if=/dev/urandom of=/tmp/reference bs=1M count=64
	at_far strace -f -o /dev/null -e trace=recvmsg -e inject=recvmsg:error=ECONNRESET:when=40 \
		iser copy --debug --debug /tmp/reference "$1" >/run/recovered 2>&1
	cat /run/recovered
	grep -q 'the lost connection with CID' /run/recovered
}
# The only connection is lost during a copy with one command at a time; the session is continued, and
# that command reassigned. The kernel's target then uses the null pointer at the next request.
iser_continues() { # iser_continues URL FILE: the file of the LUN
	dd if=/dev/urandom of=/tmp/reference bs=1M count=64
	at_far strace -f -o /dev/null -e trace=recvmsg -e inject=recvmsg:error=ECONNRESET:when=40 \
		iser copy --debug --debug /tmp/reference "$1" >/run/continued 2>&1 &
	wait_for 300 iser_wrote_on
	found=$?
	# shellcheck disable=SC2046 # words
	kill $(pidof iser)
	wait
	cat /run/continued
	whole=$(grep -c 'in SCSI Response .* status 00' /run/continued)
	[ $found = 0 ] && grep -q 'out Task Management' /run/continued &&
		cmp -n $((whole * 524288)) /tmp/reference "$2" && echo "$whole commands compared"
}
iser_wrote_on() {
	sed -n '/continues the session/,/lost/p' /run/continued | grep -q 'in SCSI Response .* status 00'
}
# A connection is lost during a copy in each direction, as above, and the data are all there.
# LOSS: the options of strace for another system call that fails
iser_loses_nothing() {
	dd if=/dev/urandom of=/tmp/reference bs=1M count=64
	iser_recovers_to /tmp/reference "$1" && iser_recovers_to "$1" /tmp/back &&
		cmp /tmp/reference /tmp/back
}
iser_recovers_to() {
	# shellcheck disable=SC2086 # words
	at_far strace -f -o /dev/null ${LOSS:--e trace=recvmsg -e inject=recvmsg:error=ECONNRESET:when=40} \
		iser copy --debug --debug "$1" "$2" >/run/recovered 2>&1 || {
		tail -40 /run/recovered
		return 1
	}
	grep 'the lost connection with CID' /run/recovered
}
# The A bit: iserd has asked, by RDMA Reads without data, whether read data came.
iserd_asks_to_acknowledge() {
	iserctl -s /run/iserd.ctl --json stats | tee /run/stats
	grep -qE '"rdma_acks": ?[1-9]' /run/stats
}
# change_connections URL ROUNDS: connections are removed and added under load
iser_changes() {
	command -v change_connections >/dev/null || {
		echo "this build has sanitizers in the library only"
		return 77
	}
	at_far change_connections "$@"
}
# iser_fences URL NEAR: iser copies a file over two paths, and this cable falls silent: WRITEs in
# progress there follow over the other path after the lost session is ended (RFC 7143 §6.3.5)
iser_fences() {
	dd if=/dev/urandom of=/tmp/reference bs=1M count=64
	slowly /tmp/reference | at_far iser copy --debug - "$1" >/run/fenced 2>&1 &
	copy=$!
	sleep 1
	kill -0 $copy && cut_cable "$2" || return 1
	wait $copy
	copied=$?
	mend_cable "$2"
	tail -40 /run/fenced
	[ $copied = 0 ] && grep -q 'the lost session is ended through another portal' /run/fenced &&
		at_far iser copy --quiet "$1" /tmp/back && cmp /tmp/reference /tmp/back
}
iser_fsck() {
	truncate -s 64M /tmp/image && mkfs.ext4 -q -F /tmp/image &&
		at_far iser copy --quiet /tmp/image "$1" &&
		at_far iser copy --quiet "$1" /tmp/image.back && cmp /tmp/image /tmp/image.back &&
		fsck.ext4 -f -n /tmp/image.back
}

# libiscsi_session ADDRESS IQN LUN: libiscsi's tools over iSER. iscsi-ls and the suite
# need another form of URL; iscsi-perf 1.19 aborts with 1 MiB at once, not with 256 KiB.
libiscsi_session() {
	libiscsi_url="iser://$1:3260/$2/$3"
	step login 10 iscsi-inq -i $IQN_LIBISCSI "$libiscsi_url" || return 1
	step capacity 10 iscsi-readcapacity16 -i $IQN_LIBISCSI "$libiscsi_url"
	libiscsi_rate read-4k-depth-8 8 8 IOPS
	libiscsi_rate read-256k-depth-4 512 4 MB/s
	step read-test 30 libiscsi_test ALL.Read10.Simple "iscsi://$1:3260/$2/$3?iser"
	step write-test 30 libiscsi_test ALL.Write10.Simple "iscsi://$1:3260/$2/$3?iser"
	step discovery 10 libiscsi_finds "iscsi://$1:3260?iser" "$2"
}
# The tools of libiscsi 1.19 crash over iSER, with the kernel's target, too: iscsi-ls
# always, the suite at times
libiscsi_crash() {
	[ "$1" != 139 ] || echo "libiscsi crashes, with the target of the kernel, too"
	[ "$1" = 139 ]
}
libiscsi_finds() {
	iscsi-ls -i $IQN_LIBISCSI "$1" >/run/found
	! libiscsi_crash $? || return 77
	grep "$2" /run/found
}
libiscsi_test() { # TEST URL; the suite reports failures in its output only
	iscsi-test-cu -i $IQN_LIBISCSI -d -n -t "$1" "$2" >/run/suite 2>&1
	! libiscsi_crash $? || return 77
	grep -v '^ *$' /run/suite | head -30
	if grep -q 'revents is not POLLIN' /run/suite && [ -e "$OUT/iserd.log" ] && ! grep -q PROTOCOL "$OUT/iserd.log"; then
		echo "libiscsi 1.19 takes a second without an event for an error: this machine is too slow"
		return 77
	fi
	grep -q ' tests  *1  *1  *1  *0 ' /run/suite
}
libiscsi_rate() { # NAME BLOCKS DEPTH UNIT
	timeout 10 iscsi-perf -i $IQN_LIBISCSI -t 3 -b "$2" -m "$3" -r "$libiscsi_url" >"$OUT/$1.txt" 2>&1
	figure "$1" "$(grep -ao 'iops average [0-9]* ([0-9]*' "$OUT/$1.txt" | tail -1 |
		awk -v unit="$4" '{ sub(/\(/, "", $4); print unit == "IOPS" ? $3 : $4 }')" "$4"
}

# ---- two paths ----

# The disks of both sessions are one unit, from which dm-multipath makes one disk
paths_join() {
	set -- /sys/class/iscsi_session/session*/device/target*/*/block/*
	cmp "$1/device/vpd_pg83" "$2/device/vpd_pg83" || return 1
	cat "$1/dev" "$2/dev" >/run/paths
	modprobe -a dm_multipath dm_round_robin
	dmsetup create paths --noudevsync --noudevrules --table "0 $(cat "$1/size") multipath 1 queue_if_no_path 0 1 1 round-robin 0 2 1 $(
		tr '\n' ' ' </run/paths | sed 's/ / 100 /g')"
}
# One path is cut until the disk works without it, restored, and used again
path_out() { # path_out NEAR
	cut_cable "$1"
	wait_for 600 path_lost || return 1
	sleep 3
	mend_cable "$1"
}
path_lost() { dmsetup status paths | grep -q ' F '; }
paths_back() {
	wait_for 600 kernel_logged_in || return 1
	while read -r path; do
		dmsetup message paths 0 "reinstate_path $path"
	done </run/paths
	! path_lost
}

# Makes writing 64 MiB take seconds, regardless of the speed of the machine.
slowly() {
	for mib in $(seq 0 63); do
		dd if="$1" bs=1M skip="$mib" count=1 status=none || return 1
		sleep 0.05
	done
}

# iser_through SECONDS URL: iser copies a file to the unit while the cable is cut
iser_through() {
	[ -e /tmp/reference ] || dd if=/dev/urandom of=/tmp/reference bs=1M count=64
	slowly /tmp/reference | at_far iser copy - "$2" &
	copy=$!
	sleep 1
	kill -0 $copy || return 1
	cable_out "$1" || return 1
	mended=$(uptime_s)
	wait $copy || return 1
	echo "$(uptime_s) $mended" | awk '{ printf "over %.1f s after the cable was mended\n", $1 - $2 }'
	at_far iser copy --quiet "$2" /tmp/back && cmp /tmp/reference /tmp/back
}

# ---- a real SCSI device served by iserd ----

# debug_disk OPTION...: makes a simulated device of the kernel; sets GENERIC (/dev/sgN) and
# DIRECT (/dev/sdX, if the device is a disk)
debug_disk() {
	modprobe -a crc32c_generic crct10dif_generic crc64_rocksoft_generic sd_mod sg &&
		modprobe scsi_debug "$@" || return 1
	wait_for 50 debug_names && export GENERIC DIRECT debug_path
	sleep 0.5 # sd examines the device
}
debug_names() {
	for d in /sys/bus/pseudo/drivers/scsi_debug/adapter*/host*/target*/*:*:*:*; do
		[ -e "$d/generic/dev" ] || return 1
		debug_path=$d
		GENERIC=/dev/$(basename "$(readlink "$d/generic")")
		DIRECT=/dev/$(ls "$d/block" 2>/dev/null)
	done
}
debug_set() { echo "$2" >"/sys/bus/pseudo/drivers/scsi_debug/$1"; }

# pass_both NAME PROGRAM... @: except for NORMACA, which iserd sets, the program prints the same about the device (@)
# through iserd as directly
pass_both() {
	pass_name=$1 pass_here=$(kernel_generic)
	shift
	for way in "$GENERIC" "$pass_here"; do
		pass_words=''
		for word; do
			[ "$word" = @ ] && word=$way
			pass_words="$pass_words $word"
		done
		# shellcheck disable=SC2086 # words
		timeout 20 $pass_words 2>&1 | sed "s#$way#DEVICE#g; s#NormACA=1#NormACA=0#" >"$OUT/$pass_name.${way#/dev/}"
	done
	[ -s "$OUT/$pass_name.${GENERIC#/dev/}" ] || {
		echo "$pass_name says nothing"
		return 1
	}
	diff "$OUT/$pass_name.${GENERIC#/dev/}" "$OUT/$pass_name.${pass_here#/dev/}" >"$OUT/$pass_name.diff" && return
	echo "$pass_name differs:"
	cat "$OUT/$pass_name.diff"
	return 1
}
# kernel_generic: prints the /dev/sgN of the first unit over iSCSI
kernel_generic() {
	for d in /sys/class/iscsi_session/session*/device/target*/*/generic; do
		[ -e "$d" ] && echo "/dev/$(basename "$(readlink "$d")")" && return
	done
	return 1
}
pass_same_reports() {
	sg_turs "$(kernel_generic)" >/dev/null 2>&1 # consumes a pending unit attention
	pass_status=0
	for page in 80 84 85 86 87 89 b1 b2; do
		pass_both "vpd-$page" sg_vpd -H --page=0x$page @ || pass_status=1
	done
	pass_both inquiry sg_inq @ || pass_status=1
	pass_both capacity-10 sg_readcap -H @ || pass_status=1
	pass_both capacity-16 sg_readcap --16 -H @ || pass_status=1
	pass_both modes sg_modes -a -H @ || pass_status=1
	pass_both logs sg_logs -a -H @ || pass_status=1
	pass_both lba-status sg_get_lba_status -H --lba=0 @ || pass_status=1
	pass_both defects sg_raw -r 64 @ 37 00 18 00 00 00 00 00 40 00 || pass_status=1
	pass_both requests sg_requests -H @ || pass_status=1
	pass_both invalid-opcode sg_raw -r 64 @ c1 00 00 00 00 00 00 00 00 00 || pass_status=1
	pass_both invalid-field sg_raw -r 64 @ 1a 00 3e 00 40 00 || pass_status=1
	pass_both out-of-range sg_raw -r 512 @ 28 00 7f ff ff ff 00 00 01 00 || pass_status=1
	pass_both one-opcode sg_opcodes --opcode=0x42 -H @ || pass_status=1
	return $pass_status
}
# Data written on one path are read on the other, with all write commands
pass_data_the_same() {
	here=$(kernel_generic)
	dd if=/dev/urandom of=/tmp/some bs=512 count=64 2>/dev/null
	sg_dd if=/tmp/some of="$here" bs=512 seek=1000 count=64 cdbsz=16 2>/dev/null &&
		sg_dd if="$GENERIC" of=/tmp/some.back bs=512 skip=1000 count=64 2>/dev/null && cmp /tmp/some /tmp/some.back || return 1
	sg_write_same --in=/tmp/some --lba=2000 --num=100 --xferlen=512 "$here" &&
		sg_dd if="$GENERIC" of=/tmp/one bs=512 skip=2099 count=1 2>/dev/null &&
		dd if=/tmp/some of=/tmp/one.sent bs=512 count=1 2>/dev/null && cmp /tmp/one /tmp/one.sent || return 1
	cat /tmp/one /tmp/one.sent >/tmp/caw # the old contents, and the new ones
	sg_compare_and_write --in=/tmp/caw --lba=2000 --num=1 --xferlen=1024 "$here" || return 1
	dd if=/dev/urandom of=/tmp/caw bs=1024 count=1 2>/dev/null
	sg_compare_and_write --in=/tmp/caw --lba=2000 --num=1 --xferlen=1024 "$here"
	[ $? = 14 ] || return 1 # MISCOMPARE
	sg_verify --lba=1000 --count=64 "$here" && sg_sync "$here"
}
pass_unmap() {
	here=$(kernel_generic)
	sg_write_same --in=/dev/zero --lba=4096 --num=64 --xferlen=512 "$here" &&
		sg_unmap --force --lba=4096 --num=64 "$here" &&
		pass_both unmapped sg_get_lba_status -H --lba=4096 @
}
# Sectors 0x1234 to 0x123d cannot be read: the sense data of the device arrive unchanged
pass_medium_error() {
	debug_set opts 2
	pass_both medium-error sg_raw -r 8192 @ 28 00 00 00 12 30 00 00 10 00
	pass_status=$?
	grep -i "medium error" "$OUT/medium-error.${GENERIC#/dev/}" || pass_status=1
	grep -iE "info.*123|12 34" "$OUT/medium-error.${GENERIC#/dev/}" || pass_status=1
	debug_set opts 0
	return $pass_status
}
# A command takes 8 s, and the timeout of the initiator is 1 s (checked every five
# seconds): its abort is answered when the device completes the command, and the disk works afterwards.
pass_abort() {
	before=$(kernel_statistic tmfcmd_pdus) late_began=$(uptime_s)
	debug_set ndelay 0 && debug_set delay 2000 || return 1 # in ticks of 4 ms
	sg_raw -t 1 -r 512 "$(kernel_generic)" 28 00 00 00 00 00 00 00 01 00
	echo "$late_began $(uptime_s)" | awk '{ print "given up after", $2 - $1, "s"; exit !($2 - $1 > 4) }' &&
		kernel_task_management "$before" || return 1
	wait_for 100 debug_set delay 0 && disk_small
}
# The device never answers: the command ends after --scsi-timeout with an error, and the
# disk works afterwards.
pass_silent() {
	silent_began=$(uptime_s)
	debug_set every_nth 1 && debug_set opts 0x80 || return 1
	sg_raw -t 60 -r 512 "$(kernel_generic)" 28 00 00 00 00 00 00 00 01 00 2>&1 | tee /run/silent
	debug_set opts 0
	debug_set every_nth 0
	grep -qi "aborted command" /run/silent &&
		echo "$silent_began $(uptime_s)" | awk '{ print "given up after", $2 - $1, "s"; exit !($2 - $1 < 30) }' &&
		disk_small
}
# The device is removed during reads and writes
pass_gone() {
	disk=$(kernel_disk)
	for process in 1 2 3 4; do
		dd if="$disk" of=/dev/null bs=64k iflag=direct 2>/run/gone.$process &
		dd if=/dev/zero of="$disk" bs=64k oflag=direct 2>/dev/null &
	done
	sleep 1
	echo 1 >"$debug_path/delete"
	wait
	cat /run/gone.*
	grep -q "device is gone" "$OUT/iserd.log" || return 1
	timeout 20 sg_turs "$(kernel_generic)" 2>&1 | tee /run/gone.turs
	at_far iserctl --socket /run/iserd.ctl status >/run/gone.status && kill -0 "$(cat /run/iserd.pid)"
}
# pass_type OPTION...: another type of scsi_debug; the same answers through iserd as directly
pass_type() {
	pass_begin "$@" && pass_serve "scsi:$GENERIC" || return 1
	pass_status=0
	pass_both inquiry sg_inq @ || pass_status=1
	pass_both pages sg_vpd -H --page=0x80 @ || pass_status=1
	pass_both ready sg_turs -v @ || pass_status=1
	pass_both modes sg_modes -a -H @ || pass_status=1
	pass_both capacity sg_readcap --16 -H @ || pass_status=1
	pass_both read sg_raw -r 4096 @ 28 00 00 00 00 00 00 00 08 00 || pass_status=1
	pass_both read-checked sg_raw -r 4096 @ 28 20 00 00 00 00 00 00 08 00 || pass_status=1
	pass_both unknown sg_raw -r 96 @ c5 01 02 03 04 05 06 07 08 00 || pass_status=1
	pass_end && return $pass_status
}
pass_begin() {
	rmmod scsi_debug 2>/dev/null
	debug_disk "$@"
}
pass_serve() { # OPTION... LUN
	rm -f /run/iserd.status /run/iserd.ctl
	iserd_at_far --log warning "$@" && kernel_discovery "$FAR" "$IQN_ISERD" default >/dev/null || return 1
	iscsiadm -m node -T $IQN_ISERD --login >/dev/null && wait_for 150 kernel_generic
	sg_turs "$(kernel_generic)" >/dev/null 2>&1 # consumes a pending unit attention
	sg_turs "$(kernel_generic)" >/dev/null 2>&1
	true
}
pass_end() {
	iscsiadm -m node --logoutall=all && iscsiadm -m node -o delete && iserd_ends
}
# pass_door bsg|block: the same disk under another device name
pass_door() {
	pass_begin dev_size_mb=64 delay=0 || return 1
	case $1 in
	bsg) pass_serve "scsi:/dev/bsg/${debug_path##*/}" ;;
	block) pass_serve "scsi:$DIRECT" ;;
	esac || return 1
	wait_for 50 kernel_disk && disk_compare 16 && pass_both medium-error-free sg_raw -r 512 @ 28 00 00 00 10 00 00 00 01 00 &&
		dd if="$DIRECT" of=/tmp/direct bs=1M count=16 iflag=direct && cmp /tmp/direct /tmp/reference && pass_end
}
# pass_read_only DEVICE: reads succeed, writes fail
pass_read_only() {
	pass_serve --read-only "scsi:$1" || return 1
	sg_raw -r 512 -o /tmp/served "$(kernel_generic)" 28 00 00 00 00 02 00 00 01 00 &&
		dd if="$DIRECT" of=/tmp/direct bs=512 skip=2 count=1 && cmp /tmp/served /tmp/direct || return 1
	sg_raw -s 512 -i /tmp/served "$(kernel_generic)" 2a 00 00 00 00 02 00 00 01 00 2>&1 | tee /run/written
	grep -qi "write protected" /run/written && pass_end
}
# A mounted disk is not served under any of its names, except read only
pass_mounted() {
	pass_begin dev_size_mb=64 delay=0 && mkfs.ext4 -q "$DIRECT" && mkdir -p /mnt && mount -t ext4 "$DIRECT" /mnt || return 1
	for pass_name in "$GENERIC" "$DIRECT" "/dev/bsg/${debug_path##*/}"; do
		timeout 5 iserd serve --listen 127.0.0.1:0 "scsi:$pass_name" 2>/run/mounted
		[ $? = 3 ] && grep "$pass_name: disk $DIRECT is in use by the system" /run/mounted || return 1
		pass_read_only "$pass_name" || return 1
	done
	umount /mnt
}

# ---- a CD/DVD unit ----

# makes two images, one.iso and two.iso, and the expected contents of their files
cd_images() {
	for name in one two; do
		mkdir -p "/tmp/$name/deep/er"
		dd if=/dev/urandom of="/tmp/$name/large" bs=1M count=8 2>/dev/null
		dd if=/dev/urandom of="/tmp/$name/deep/er/small" bs=777 count=1 2>/dev/null
		(cd "/tmp/$name" && find . -type f | sort | xargs sha256sum) >"/tmp/$name.sums"
		genisoimage -quiet -R -V "$name" -o "/tmp/$name.iso" "/tmp/$name" || return 1
	done
}
cd_ctl() { at_far iserctl --socket /run/iserd.ctl "$@"; }
# cd_mounted NAME COMMAND...: runs the command with the medium NAME mounted at /mnt/cd
cd_mounted() {
	cd_name=$1
	shift
	mkdir -p /mnt/cd
	wait_for 100 mount -t iso9660 -o ro "$(kernel_disk)" /mnt/cd || return 1
	"$@"
	cd_status=$?
	umount /mnt/cd && return $cd_status
}
cd_sums() { cd /mnt/cd && sha256sum -c "/tmp/$cd_name.sums"; }
cd_compare() { # also block by block, without the file system
	cd_mounted "$1" sh -c ". /lab/guest/lib.sh; cd_name=$1; cd_sums" || return 1
	dd if="$(kernel_disk)" bs=64k iflag=direct 2>/dev/null | cmp - "/tmp/$1.iso"
}
cd_utils() {
	disk=$(kernel_disk)
	sg_inq "$disk" && sg_turs "$disk" && sg_readcap "$disk" && sg_modes -a "$disk" || return 1
	sg_get_config "$disk" | tee /run/config
	grep -qi 'current profile: *CD-ROM' /run/config || return 1
	# READ TOC in MSF, and READ CD of whole sectors
	sg_raw -r 20 "$disk" 43 02 00 00 00 00 01 00 14 00 || return 1
	sg_raw -r 2352 -o /run/sector "$disk" be 00 00 00 00 10 00 00 01 f8 00 00 || return 1
	dd if=/run/sector bs=16 skip=1 count=128 2>/dev/null >/run/user
	dd if="$disk" bs=2048 skip=16 count=1 2>/dev/null | cmp - /run/user
}
# a mounted medium is locked: iserctl eject sends an eject request, and the medium stays
cd_locked() {
	cd_mounted "${1:-one}" sh -c '. /lab/guest/lib.sh; ! cd_ctl eject lun0' && cd_ctl luns
}
cd_exchange() { cd_ctl insert lun0 "path=/tmp/$1.iso"; }
cd_no_medium() { sg_turs "$(kernel_disk)" 2>&1 | tee /run/turs | grep -qi 'not ready\|medium not present' || ! sg_turs "$(kernel_disk)"; }
cd_eject() { # ejects by the initiator, loads again, ejects by iserctl
	disk=$(kernel_disk)
	sg_start --eject "$disk" && cd_no_medium && sg_start --load "$disk" || return 1
	wait_for 50 sg_turs "$disk" && cd_ctl eject lun0 && cd_no_medium || return 1
	! mount -t iso9660 -o ro "$disk" /mnt/cd
}
cd_insert() { cd_ctl insert lun0 "path=/tmp/$1.iso" && wait_for 50 sg_turs "$(kernel_disk)"; }

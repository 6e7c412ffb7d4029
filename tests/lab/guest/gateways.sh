# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
# Two gateways (iserd --cluster) that share one file, gw1 at FAR and gw2 at FAR2, and dm-multipath
# with multipathd, udev and the multipath.conf of docs/cluster.md as their initiator. Sourced by lib.sh.

GATEWAYS=/run/gateways
# for DMESG_ALLOW: what the kernel says about lost connections and failed paths
export GATEWAYS_MESSAGES='connection[0-9]+:[0-9]+|ping timeout|session[0-9]+:|I/O error, dev sd|Failing path|rejecting I/O|Add. Sense:|CDB:|FAILED Result|alua: rtpg failed|Synchronize Cache|ldm_validate_partition_table|unable to read partition table|callbacks suppressed|Buffer I/O error on dev sd'

# ---- the gateways ----

gateway_address() { case $1 in 1) echo "$FAR" ;; *) echo "$FAR2" ;; esac; }
gateway_port() { echo "${GATEWAY_PORTS:-3260 3260}" | cut -d' ' -f"$1"; }
gateway_portal() { echo "$(gateway_address "$1"):$(gateway_port "$1")"; }
# gateway_start NUMBER: starts it, and waits until it owns the unit or stands by
gateway_start() {
	[ -z "${ON_HOST:-}" ] || { gateway_ask start "$1" && wait_for 300 gateway_joined "$1" && return || return 1; }
	mkdir -p $GATEWAYS
	[ -e $GATEWAYS/disk ] || truncate -s 64M $GATEWAYS/disk
	rm -f "$GATEWAYS/$1.status"
	gateway_watched "$1" &
	wait_for 300 gateway_joined "$1" && return
	tail -1 "$OUT/gateway.$1.log"
	return 1
}
gateway_watched() { # writes the process id and the exit status to $GATEWAYS
	# shellcheck disable=SC2016,SC2086 # for the inner shell; options in words
	at_far sh -c 'echo $$ >"$1"; shift; exec "$@"' iserd "$GATEWAYS/$1.pid" iserd serve --name $IQN_ISERD \
		--listen "$(gateway_address "$1"):3260" --control "$GATEWAYS/$1.control" --log info --cluster --cluster-number "$1" \
		--cluster-gateway "gw$1" ${GATEWAY_TIMES:-} --cluster-directory $GATEWAYS/record --buffered $GATEWAYS/disk >>"$OUT/gateway.$1.log" 2>&1
	echo $? >"$GATEWAYS/$1.status"
}
# gateway_ask WORD NUMBER...: of run.py, if the gateways are on the host (tests/lab/host.py)
gateway_ask() {
	ask=$(mktemp -u XXXXXXXX)
	echo "host $ask $*" >>"$OUT/results"
	wait_for 900 [ -e "$OUT/answer.$ask" ] || return 1
	tail -n +2 "$OUT/answer.$ask"
	ask_status=$(head -1 "$OUT/answer.$ask")
	rm "$OUT/answer.$ask"
	return "$ask_status"
}
gateway_signal() { # gateway_signal NUMBER SIGNAL
	if [ -n "${ON_HOST:-}" ]; then gateway_ask signal "$@"; else kill "-$2" "$(cat "$GATEWAYS/$1.pid")"; fi
}
gateway_ctl() { # gateway_ctl NUMBER VERB...
	[ -z "${ON_HOST:-}" ] || { gateway_ask ctl "$@" && return || return 1; }
	gateway_to="$GATEWAYS/$1.control"
	shift
	iserctl -s "$gateway_to" "$@"
}
# gateway_value NUMBER KEY: a string or number of its status
gateway_value() { gateway_ctl "$1" --json cluster status 2>/dev/null | sed -n "s/.*\"$2\": *\"\{0,1\}\([a-z0-9-]*\).*/\1/p" | head -1; }
gateway_is() { [ "$(gateway_value "$1" role)" = "$2" ]; }
gateway_joined() { gateway_is "$1" owner || gateway_is "$1" standing-by; }
gateways_start() {
	gateway_start 1 && gateway_start 2 && gateway_is 1 owner && gateway_is 2 standing-by && wait_for 100 gateways_know
}
gateways_know() { gateway_ctl 1 cluster status | grep -q "$FAR2"; }
gateway_ended() { wait_for 150 gateway_has_ended "$1" && [ "$(gateway_status "$1")" = "$2" ]; } # NUMBER STATUS
gateway_has_ended() { [ -n "$(gateway_status "$1")" ]; }
gateway_status() { if [ -n "${ON_HOST:-}" ]; then gateway_ask status "$1"; else cat "$GATEWAYS/$1.status" 2>/dev/null; fi; }
gateways_end() { # in order
	for gateway in ${1:-2 1}; do
		gateway_signal "$gateway" TERM && gateway_ended "$gateway" 0 &&
			! grep -iE 'runtime error|sanitizer' "$OUT/gateway.$gateway.log" || return 1
	done
}

# ---- the initiator ----

# multipath_start [NOT]: with the multipath.conf of docs/cluster.md; NOT is a regular expression of disks that are not paths
multipath_start() {
	mkdir -p /etc/multipath /run/udev
	{
		sed -n '/^defaults {/,/^```/p' /lab/cluster.md | grep -v '```'
		[ -z "${1:-}" ] || printf 'blacklist {\n    devnode "%s"\n}\n' "$1"
	} | tee /etc/multipath.conf
	modprobe -a dm_multipath dm_service_time scsi_dh_alua
	systemd-udevd --daemon 2>"$OUT/udevd.log" && udevadm trigger --subsystem-match=block && udevadm settle || return 1
	multipathd -d -s -v 2 >"$OUT/multipathd.log" 2>&1 &
	wait_for 100 multipath_runs && multipathd show config local
}
multipath_runs() { multipathd show daemon | grep -qE 'running|idle'; }
# multipath_login INTERFACE: one path through each gateway, which discovery at one of them lists
multipath_login() {
	iscsiadm -m discovery -t st -p "$(gateway_portal 1)" -I "$1" | tee /run/found
	grep -q "$(gateway_portal 2)" /run/found || return 1
	# a gateway on the host lists itself by an address of the host
	[ -z "${ON_HOST:-}" ] || iscsiadm -m node -o delete
	for gateway in 1 2; do
		at=$(gateway_portal $gateway)
		[ -z "${ON_HOST:-}" ] || iscsiadm -m node -T "$IQN_ISERD" -p "$at" -I "$1" -o new || return 1
		iscsiadm -m node -T "$IQN_ISERD" -p "$at" -I "$1" --login || return 1
	done
	wait_for 300 multipath_has 2 && multipathd show topology
}
multipath_map() { # prints the device of the map
	multipath_name=$(multipathd show maps raw format '%d' | head -1)
	[ -b "/dev/$multipath_name" ] && echo "/dev/$multipath_name"
}
multipath_has() { multipath_map >/dev/null && [ "$(multipathd show paths raw format '%t %T' | grep -c '^active *\(ready\|ghost\)')" = "$1" ]; }
# multipath_disk NUMBER [INITIATOR]: prints the disk of the path through this gateway
multipath_disk() {
	for d in /sys/class/iscsi_session/session*/device/target*/*/block/*; do
		session=${d%/target*}
		[ "$(cat "$session"/connection*/iscsi_connection/*/persistent_address)" = "$(gateway_address "$1")" ] &&
			[ "$(cat "$session"/iscsi_session/*/initiatorname)" = "${2:-iqn.2026-01.org.example:lab-kernel}" ] &&
			echo "/dev/${d##*/}" && return
	done
	return 1
}
# multipath_sees NUMBER: the path through this gateway is active/optimized and has priority 50, the other one is standby,
# which the checker calls a ghost
multipath_sees() {
	owner=$(multipath_disk "$1") standby=$(multipath_disk $((3 - $1))) || return 1
	[ "$(multipath_path "$owner")" = "active/optimized active ready 50" ] &&
		[ "$(multipath_path "$standby")" = "standby active ghost 1" ]
}
multipath_path() { # multipath_path DISK: the state that the kernel, then that multipathd and its checker know, and the priority
	echo "$(cat "/sys/block/${1#/dev/}/device/access_state") $(
		multipathd show paths raw format '%d %t %T %p' | sed -n "s/^${1#/dev/} *//p" | tr -s ' ' | sed 's/ $//')"
}
# multipath_waits NUMBER: until it sees this gateway as the owner. A path checker has up to 20 s
# between two checks, and 30 s until the answer if the session is lost
multipath_waits() {
	wait_for 900 multipath_sees "$1" && return
	for disk in $(multipath_disk 1) $(multipath_disk 2); do echo "$disk: $(multipath_path "$disk")"; done
	return 1
}
multipath_ends() {
	multipath -f "$(multipath_map)" && multipathd shutdown && kernel_logout
}

# ---- faults under load ----

# gateways_load NAME COMMAND...: fio writes to the map and reads back what it wrote, pass after pass, while the command
# runs and for one more pass. A write that was acknowledged and lost, stale data or an error end fio with a status. The longest
# time that a command of fio took is a figure. The first command may find that the path in use has
# become a standby: multipathd takes seconds to reinstate it, and a change of the owner before that waits for it.
gateways_load() {
	load_name=$1
	shift
	rm -f /run/load.*
	gateways_passes "$(multipath_map)" &
	load_process=$! # the command may start a gateway in the background
	wait_for 300 [ -e /run/load.begun ] && sleep 2 && wait_for 300 multipath_has 2 && "$@"
	load_status=$?
	: >/run/load.last
	wait "$load_process" || load_status=1
	tail -3 /run/load.error
	[ $load_status = 0 ] || return 1
	echo "$(cat /run/load.passes) passes, all compared"
	figure "longest-io-$load_name" "$(cat /run/load.json.* | awk '/"lat_ns" :/ { on = 1 } on && /"max" :/ { gsub(/[^0-9]/, "");
		if ($0 + 0 > max) max = $0 + 0; on = 0 } END { printf "%.1f", max / 1e9 }')" s
}
gateways_passes() { # gateways_passes DISK
	load_pass=0
	while :; do
		load_ends=$([ -e /run/load.last ] && echo 1)
		: >/run/load.begun
		fio --name=load --filename="$1" --direct=1 --rw=randwrite --bsrange=4k-64k --blockalign=4k --size=32M --randseed=$load_pass \
			--ioengine=libaio --iodepth=8 --verify=crc32c --verify_backlog=64 --verify_fatal=1 --output-format=json \
			--output=/run/load.json.$load_pass 2>/run/load.error || return 1
		load_pass=$((load_pass + 1))
		echo $load_pass >/run/load.passes
		[ -z "$load_ends" ] || return 0
	done
}
# The next functions: what happens to gateway NUMBER, which owns the unit
gateway_yields() {
	gateway_moves "$1" 0 gateway_ctl "$1" cluster yield lun0 "to=gw$((3 - $1))" && map_reads && multipath_waits $((3 - $1))
}
gateway_killed() {
	gateway_moves "$1" 1 gateway_signal "$1" KILL && gateway_ended "$1" 137 && gateway_again "$1"
}
# It is fenced: the process has ended when it could go on; with Ceph its client was put on the blocklist, and it joins again
gateway_stopped() {
	gateway_moves "$1" 1 gateway_signal "$1" STOP || return 1
	gateway_signal "$1" CONT
	[ -z "${ON_HOST:-}" ] || { wait_for 300 gateway_is "$1" standing-by && multipath_waits $((3 - $1)) && return || return 1; }
	gateway_ended "$1" 137 && gateway_again "$1"
}
gateway_leaves() { gateway_moves "$1" 0 gateways_end "$1" && gateway_again "$1"; }
# The initiator loses its way to it: Linux asks for the other one by SET TARGET PORT GROUPS
gateway_cut() { # gateway_cut NUMBER NEAR
	gateway_moves "$1" 0 cut_cable "$2" && gateway_is "$1" standing-by && sleep 3 || return 1
	mend_cable "$2" && multipath_waits $((3 - $1))
}
# dm-multipath may have activated the group of either gateway: from here on gateway 1 owns the unit
gateway_settle() {
	map_reads || return 1 # the first command of a map activates the first group of its table
	gateway_is 1 owner || { gateway_moves 2 0 gateway_ctl 2 cluster yield lun0 to=gw1 && map_reads || return 1; }
	multipath_waits 1
}
# gateway_moves NUMBER FENCES COMMAND...: after the command the other gateway gets the unit, with so many fences
gateway_moves() {
	moves_to=$((3 - $1)) moves_fences=$2
	moves_before=$(gateway_value $moves_to fences)
	shift 2
	"$@" && wait_for 900 gateway_is $moves_to owner || return 1
	moves_after=$(gateway_value $moves_to fences)
	echo "fences of gateway $moves_to: $moves_before, $moves_after"
	[ $((moves_after - moves_before)) = "$moves_fences" ] && sleep 2
}
# map_reads: a command moves the map to the path of the owner. A map that uses no path keeps the earlier one, and the kernel
# takes the unit back when multipathd finds that path alive.
map_reads() { dd if="$(multipath_map)" of=/dev/null bs=4k count=1 iflag=direct 2>/dev/null; }
# gateway_again NUMBER: it starts, and its path comes back as a standby
gateway_again() { map_reads && gateway_start "$1" && gateway_is "$1" standing-by && multipath_waits $((3 - $1)); }

# gateways_session INTERFACE NEAR: all steps with dm-multipath; NEAR is the end of the cable to gateway 1
gateways_session() {
	step serve 60 gateways_start
	step multipathd 60 multipath_start
	iscsid_start
	step login 90 multipath_login "$1" && step states 60 multipath_waits 1 || return 1
	DISK=$(multipath_map)
	export DISK
	step compare 200 disk_compare 64
	step owner 120 gateway_settle
	step yield 120 gateways_load yield gateway_yields 1 &&
		step killed 240 gateways_load killed gateway_killed 2 &&
		step stopped 240 gateways_load stopped gateway_stopped 1 &&
		step yield-back 120 gateways_load yield-back gateway_yields 2 &&
		step cut 240 gateways_load cut gateway_cut 1 "$2" &&
		step ended-in-order 240 gateways_load ended-in-order gateway_leaves 2 &&
		step fsck 200 disk_fsck
	unset DISK
	step logout 60 multipath_ends
	step iserd-ends 40 gateways_end
}

# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
# Two machines on one cable; the second one, with the initiator of Linux, is killed under
# load: no FIN, no RST, no answer. The first one has iserd and, later, another initiator.
# Sourced by lib.sh; both machines use $OUT of the first one.

BOTH=/lab/out

# killed_cable: sets up eth0 with an address for TCP and one for iSER (FAR is the first
# machine, HERE the second)
killed_cable() {
	modprobe virtio_net && wait_for 100 [ -e /sys/class/net/eth0 ] || return 1
	case $MACHINE in
	1) killed_addresses="$FAR $FAR2" ;;
	*) killed_addresses="$HERE $HERE2" ;;
	esac
	for address in $killed_addresses; do ip addr add "$address/24" dev eth0; done
	ip link set eth0 up && wait_for 100 carrier eth0
}

# ---- the killed machine ----

# killed_initiator: reserves LUN 0 (PERSISTENT RESERVE without APTPL) and LUN 1
# (RESERVE(6)), leaves an ACA at LUN 2, and writes to LUNs 0 and 1
killed_initiator() {
	rdma_device siw eth0 && wait_for 900 [ -e $BOTH/serving ] || return 1
	iscsid_start
	kernel_login "$FAR" "$IQN_ISERD" default && kernel_login "$FAR2" "$IQN_ISERD" iser &&
		wait_for 150 scsi_disk 1 0 && wait_for 150 scsi_disk 2 2 || return 1
	killed_disk=$(scsi_disk 2 2)
	settle "$(scsi_disk 1 0)" "$(scsi_disk 2 1)" "$killed_disk"
	pr "$(scsi_disk 1 0)" --register --param-sark=0xaa &&
		pr "$(scsi_disk 1 0)" --reserve --param-rk=0xaa --prout-type=1 &&
		sg_raw "$(scsi_disk 2 1)" 16 00 00 00 00 00 && aca_fault "$killed_disk" || return 1
	cp $BOTH/pieces /tmp/pieces
	ACKED=$BOTH vanish_writers && wait
}

# ---- the surviving machine ----

killed_serve() { # LUN...
	iserd_at_far --listen "$FAR2:3260" --buffered "$@" || return 1
	dd if=/dev/urandom of=$BOTH/pieces bs=1M count=48 2>/dev/null
	ln -sf $BOTH/pieces /tmp/pieces
	killed_status >/run/status.before
	: >$BOTH/serving
}
# Everything that could leak: the answers of iserctl, and the descriptors of iserd
killed_status() {
	# connections and logins are counted from the start
	iserctl -s /run/iserd.ctl status | grep -vE '^  (connections|logins) '
	# shellcheck disable=SC2012 # names of numbers
	ls "/proc/$(cat /run/iserd.pid)/fd" | wc -l
}
killed_under_way() { ACKED=$BOTH wait_for 900 vanish_under_way && killed_sessions 2; }
killed_sessions() { # N sessions, of an initiator named lab-kernel
	iserctl -s /run/iserd.ctl --json status | tee /run/status
	[ "$(grep -c '"initiator": .*lab-kernel' /run/status)" = "$1" ]
}
# run.py kills QEMU now. iserd checks every 15 s whether a PDU arrived, and then allows
# 15 s for a ping.
killed_now() {
	echo kill >>$BOTH/results
	wait_for 100 [ -e $BOTH/killed ] || return 1
	began=$(uptime_s)
	wait_for 500 vanish_no_session || return 1
	echo "$(uptime_s) $began" | awk '{ printf "%.1f\n", $1 - $2 }' | tee /run/vanished
	tail -20 "$OUT/iserd.log"
}
killed_nothing_left() {
	killed_status >/run/status.after
	diff /run/status.before /run/status.after
}
# RESERVE(6) and the ACA ended with their nexus. A persistent reservation does not (SPC-4
# §5.13.1): the other initiator preempts it, as a cluster does.
killed_other() {
	echo 'InitiatorName=iqn.2026-01.org.example:lab-other' >/etc/iscsi/initiatorname.iscsi
	iscsid_start
	kernel_login "$FAR" "$IQN_ISERD" default && wait_for 150 scsi_disk 1 2 || return 1
	disk=$(scsi_disk 1 0)
	settle "$disk" "$(scsi_disk 1 1)" "$(scsi_disk 1 2)"
	aca_test_unit Good "$(scsi_disk 1 2)" 04 && may "$(scsi_disk 1 1)" 1 1 && may "$disk" 1 0 || return 1
	pr "$disk" --register --param-sark=0xbb &&
		pr "$disk" --preempt-abort --param-rk=0xbb --param-sark=0xaa --prout-type=1 &&
		settle "$disk" && pr_in "$disk" --read-keys | tee /run/pr
	! grep -q 0xaa /run/pr && grep -q 0xbb /run/pr && may "$disk" 1 1 &&
		pr "$disk" --clear --param-rk=0xbb
}
killed_acked() { ACKED=$BOTH vanish_acked; }

# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
# Persistent reservations of two initiators, node a and node b, through two gateways
# (gateways.sh), with sg_persist, mpathpersist and fence_scsi. Node a has the map of
# dm-multipath; node b uses the disk of each path. Sourced by lib.sh.

NODE_B=iqn.2026-01.org.example:lab-second

# persist_login TRANSPORT INTERFACE: node a, its map, and node b, a path through each gateway
persist_login() {
	multipath_login "$2" || return 1
	iscsiadm -m iface -I second -o new &&
		iscsiadm -m iface -I second -o update -n iface.transport_name -v "$1" &&
		iscsiadm -m iface -I second -o update -n iface.initiatorname -v $NODE_B || return 1
	for at in $FAR $FAR2; do
		iscsiadm -m node -T "$IQN_ISERD" -p "$at:3260" -I second -o new &&
			iscsiadm -m node -T "$IQN_ISERD" -p "$at:3260" -I second --login || return 1
	done
	wait_for 150 persist_disks && echo "node a: $a1 $a2, node b: $b1 $b2"
}
# persist_disks: sets a1, a2, b1 and b2, the disk of each node through each gateway
persist_disks() {
	a1=$(multipath_disk 1) && a2=$(multipath_disk 2) && b1=$(multipath_disk 1 $NODE_B) && b2=$(multipath_disk 2 $NODE_B) || return 1
	[ -b "$a1" ] && [ -b "$a2" ] && [ -b "$b1" ] && [ -b "$b2" ]
}
# out DISK OPTION...: PERSISTENT RESERVE OUT. Unit attentions may come first: one for each change
# by another nexus, and one if the state of the group has changed.
out() {
	out_disk=$1
	shift
	for out_try in 1 2 3 4 5; do
		sg_persist -n --out "$@" "$out_disk"
		out_status=$?
		[ "$out_status" = 6 ] || break
	done
	[ "$out_status" = 0 ] || echo "$out_disk $*: status $out_status, try $out_try"
	return "$out_status"
}
conflicts() { # conflicts DISK OPTION...: RESERVATION CONFLICT
	out "$@"
	[ $? = 24 ]
}
attentions() { # reads the unit attentions of all disks; a standby is not ready
	for attention_disk in "$a1" "$a2" "$b1" "$b2"; do
		for _ in 1 2 3 4 5; do
			sg_turs "$attention_disk" >/dev/null 2>&1
			[ $? = 6 ] || break
		done
	done
}
# persist_moved OWNER: after a move of the unit, Linux knows for each disk which gateway is the owner;
# it rejects the commands of a disk that it believes a standby
persist_moved() {
	wait_for 600 kernel_logged_in && wait_for 100 persist_sees "$1" && return
	grep . /sys/block/sd*/device/access_state
	return 1
}
persist_sees() {
	attentions
	case $1 in
	1) persist_states "$a1" "$b1" "$a2" "$b2" ;;
	*) persist_states "$a2" "$b2" "$a1" "$b1" ;;
	esac
}
persist_states() {
	persist_state=active/optimized
	for disk in "$1" "$2" - "$3" "$4"; do
		[ "$disk" != - ] || { persist_state=standby && continue; }
		[ "$(cat "/sys/block/${disk#/dev/}/device/access_state")" = $persist_state ] || return 1
	done
}
# keys A B: at each disk, so many registrations of node a (key 0xa1) and of node b (0xb1)
keys() {
	for keys_disk in "$a1" "$a2" "$b1" "$b2"; do
		pr_in "$keys_disk" --read-keys >/run/keys
		[ "$(grep -c 0xa1 /run/keys) $(grep -c 0xb1 /run/keys)" = "$1 $2" ] && continue
		echo "$keys_disk: want $1 keys of node a and $2 of node b"
		cat /run/keys
		return 1
	done
}
# reserved [TYPE [KEY]]: at each disk, the reservation has this type and key, or there is none
reserved() {
	for reserved_disk in "$a1" "$a2" "$b1" "$b2"; do
		pr_in "$reserved_disk" --read-reservation >/run/reservation
		case $# in
		0) grep -q 'NO reservation held' /run/reservation ;;
		*) grep -q "type: $1\$" /run/reservation && grep -q "Key=${2:-}" /run/reservation ;;
		esac && continue
		echo "$reserved_disk: want reservation ${*:-none}"
		cat /run/reservation
		return 1
	done
}
persist_begin() { # without what an earlier step left
	persist_disks && out "$a1" --register-ignore --param-sark=0xa1 && out "$a1" --clear --param-rk=0xa1 && attentions && keys 0 0
}
persist_registered() { # both nodes register each of their paths, one of which is a standby
	out "$a1" --register-ignore --param-sark=0xa1 "$@" && out "$a2" --register-ignore --param-sark=0xa1 "$@" &&
		out "$b1" --register-ignore --param-sark=0xb1 "$@" && out "$b2" --register-ignore --param-sark=0xb1 "$@"
}
persist_cleared() { out "$a2" --clear --param-rk=0xa1 && attentions && keys 0 0 && reserved; }

# ---- sg_persist ----

persist_keys() {
	persist_begin && persist_registered && keys 2 2 || return 1
	pr_in "$b2" --read-full-status | tee /run/full
	[ "$(grep -c 'lab-kernel' /run/full)" = 2 ] && [ "$(grep -c 'lab-second' /run/full)" = 2 ] &&
		[ "$(grep -ci 'relative port.*0x1$' /run/full)" = 2 ] && [ "$(grep -ci 'relative port.*0x1001$' /run/full)" = 2 ] || return 1
	conflicts "$b2" --register --param-rk=0xa1 --param-sark=0xb2 && # not its key
		conflicts "$a2" --reserve --param-rk=0xb1 --prout-type=5 && keys 2 2 && reserved && persist_cleared
}
# persist_types: node a reserves through the owner and through the standby in turn; node b is
# registered, and then not
persist_types() {
	persist_begin || return 1
	persist_type 1 'Write Exclusive' a1 1 0 1 0 || return 1
	persist_type 3 'Exclusive Access' a1 0 0 0 0 || return 1
	for from in a1 a2; do
		persist_type 5 'Write Exclusive, registrants only' $from 1 1 1 0 &&
			persist_type 6 'Exclusive Access, registrants only' $from 1 1 0 0 &&
			persist_type 7 'Write Exclusive, all registrants' $from 1 1 1 0 &&
			persist_type 8 'Exclusive Access, all registrants' $from 1 1 0 0 || return 1
	done
}
persist_type() { # persist_type TYPE TEXT a1|a2 READ WRITE READ WRITE
	echo "type $1, reserved through $3"
	case $3 in a1) from_disk=$a1 ;; *) from_disk=$a2 ;; esac
	persist_registered && out "$from_disk" --reserve --param-rk=0xa1 --prout-type="$1" && reserved "$2" || return 1
	attentions
	may "$a1" 1 1 && may "$b1" "$4" "$5" || return 1
	# a registrant reserves a reserved unit through the standby
	conflicts "$b2" --reserve --param-rk=0xb1 --prout-type=$(($1 == 1 ? 3 : 1)) || return 1
	out "$b2" --register --param-rk=0xb1 --param-sark=0 && out "$b1" --register --param-rk=0xb1 --param-sark=0 || return 1
	may "$a1" 1 1 && may "$b1" "$6" "$7" && keys 2 0 || return 1
	conflicts "$b2" --release --param-rk=0xb1 --prout-type="$1"
	out "$from_disk" --release --param-rk=0xa1 --prout-type="$1" && reserved && attentions && may "$b1" 1 1 && persist_cleared
}
# persist_moves: they hold at the next owner after a yield, and after a fail-over
persist_moves() {
	persist_begin && persist_registered && out "$a2" --reserve --param-rk=0xa1 --prout-type=5 &&
		out "$b1" --register --param-rk=0xb1 --param-sark=0 && out "$b2" --register --param-rk=0xb1 --param-sark=0 || return 1
	gateway_yields 1 && persist_moved 2 && keys 2 0 && reserved 'Write Exclusive, registrants only' 0xa1 &&
		may "$a2" 1 1 && may "$b2" 1 0 || return 1
	gateway_killed 2 && persist_moved 1 && keys 2 0 && reserved 'Write Exclusive, registrants only' 0xa1 &&
		may "$a1" 1 1 && may "$b1" 1 0 && persist_cleared
}
# persist_preempt: node b preempts through the standby while node a writes through the owner: the
# writes of node a end with RESERVATION CONFLICT, and none has an effect after the status. With TAS = 0
# (not the default), node a would notice only after its timeout of a command, 30 s, that its commands were aborted.
persist_preempt() {
	persist_begin && sdparm --quiet --get=TAS "$a1" | grep '^TAS *1' || return 1
	persist_registered && out "$a1" --reserve --param-rk=0xa1 --prout-type=5 && attentions || return 1
	fio --name=node-a --filename="$a1" --direct=1 --rw=randwrite --bs=64k --size=32M --time_based --runtime=60 --ioengine=libaio \
		--iodepth=16 --buffer_pattern=0xaa --output=/run/fio 2>&1 &
	persist_fio=$!
	sleep 2
	kill -0 $persist_fio && out "$b2" --preempt-abort --param-rk=0xb1 --param-sark=0xa1 --prout-type=5 || return 1
	head -c 33554432 /dev/zero | tr '\0' '\273' >/tmp/preempted
	attentions
	dd if=/tmp/preempted of="$b1" bs=1M oflag=direct || return 1
	wait $persist_fio && return 1
	cat /run/fio
	grep -q 'Invalid exchange' /run/fio && sleep 2 && dd if="$b1" bs=1M count=32 iflag=direct | cmp - /tmp/preempted &&
		keys 0 2 && reserved 'Write Exclusive, registrants only' 0xb1 && may "$a1" 1 0 && may "$b1" 1 1 &&
		out "$b2" --clear --param-rk=0xb1 && attentions && keys 0 0
}
# persist_restarts [--param-aptpl]: all gateways end in order, then all are killed
persist_restarts() {
	persist_begin && persist_registered "$@" && out "$a2" --reserve --param-rk=0xa1 --prout-type=6 &&
		out "$b2" --register --param-rk=0xb1 --param-sark=0 "$@" && out "$b1" --register --param-rk=0xb1 --param-sark=0 "$@" || return 1
	pr_in "$b1" --report-capabilities
	gateways_end && gateways_start && persist_back || return 1
	gateway_signal 2 KILL && gateway_ended 2 137 && gateway_signal 1 KILL && gateway_ended 1 137 &&
		gateway_start 1 && gateway_start 2 && wait_for 300 gateway_is 1 owner && persist_back && persist_cleared
}
persist_back() {
	multipath_waits 1 && persist_disks && persist_moved 1 && keys 2 0 &&
		reserved 'Exclusive Access, registrants only' 0xa1 && may "$a1" 1 1 && may "$b1" 0 0
}

# ---- mpathpersist ----

# Node a reserves its map. A path that comes back, and one with a new session, is registered again.
persist_map() {
	persist_begin && map=$(multipath_map) && persist_maps --register --param-sark=0xa1 && keys 2 0 &&
		persist_maps --reserve --param-rk=0xa1 --prout-type=5 || return 1
	mpathpersist --in --read-keys "$map" && mpathpersist --in --read-reservation "$map" && mpathpersist --in --report-capabilities "$map"
	reserved 'Write Exclusive, registrants only' 0xa1 && attentions && may "$map" 1 1 && may "$b1" 1 0 || return 1
	gateways_load reserved-yield gateway_yields 1 && persist_moved 2 && may "$map" 1 1 && may "$b2" 1 0 || return 1
	gateways_load reserved-killed gateway_killed 2 && persist_moved 1 && may "$map" 1 1 && may "$b1" 1 0 && keys 2 0 || return 1
	# a path with a new session: another nexus, which multipathd registers
	iscsiadm -m node -T "$IQN_ISERD" -p "$FAR2:3260" -I "$1" --logout && wait_for 100 multipath_has 1 &&
		iscsiadm -m node -T "$IQN_ISERD" -p "$FAR2:3260" -I "$1" --login && wait_for 300 multipath_has 2 && persist_disks &&
		gateways_load reserved-new-path gateway_yields 1 && may "$map" 1 1 || return 1
	gateways_load reserved-back gateway_yields 2 && persist_moved 1 || return 1
	# node b takes the unit, and node a takes it back
	out "$b2" --register-ignore --param-sark=0xb1 && out "$b1" --register-ignore --param-sark=0xb1 &&
		out "$b2" --preempt-abort --param-rk=0xb1 --param-sark=0xa1 --prout-type=5 && attentions && may "$b1" 1 1 && may "$map" 1 0 || return 1
	persist_maps --register-ignore --param-sark=0xa1 && persist_maps --preempt-abort --param-rk=0xa1 --param-sark=0xb1 --prout-type=5 &&
		attentions && may "$map" 1 1 && may "$b1" 1 0 || return 1
	persist_maps --release --param-rk=0xa1 --prout-type=5 && reserved && persist_maps --clear --param-rk=0xa1 && keys 0 0
}
persist_maps() { # persist_maps OPTION...
	mpathpersist --out "$@" "$(multipath_map)" || {
		echo "mpathpersist $*: status $?"
		return 1
	}
}

# ---- fence_scsi ----

# persist_node NAME: a root tree with the unpacked packages (build.sh) and a /run of its own,
# where fence_scsi keeps the key of its node
persist_node() {
	node=/run/node.$1
	mkdir -p "$node/dev" "$node/proc" "$node/sys" "$node/run" "$node/var" "$node/tmp" "$node/usr" "$node/etc"
	ln -s usr/bin usr/sbin usr/lib usr/lib64 "$node/" && ln -s ../run "$node/var/run" || return 1
	for from in dev proc sys; do mount --bind /$from "$node/$from" || return 1; done
	mount --bind /run/packages/usr "$node/usr" && mount --bind /run/packages/etc "$node/etc" &&
		chroot "$node" /usr/sbin/fence_scsi --version
}
persist_nodes() {
	mkdir -p /run/packages
	mount -t 9p -o trans=virtio,version=9p2000.L,msize=262144,ro,cache=loose packages /run/packages &&
		persist_node a && persist_node b
}
# fence NODE ACTION KEY: the disks of node b are those of its paths
fence() {
	case $1 in a) fence_disks=$(multipath_map) ;; *) fence_disks=$b1,$b2 ;; esac
	chroot "/run/node.$1" /usr/sbin/fence_scsi --verbose --action="$2" --key="$3" --devices="$fence_disks" 2>/run/fence.log
	fence_status=$?
	[ $fence_status = 0 ] || grep -v DEBUG /run/fence.log
	echo "fence_scsi of node $1: $2 $3: status $fence_status"
	return $fence_status
}
persist_fence() {
	persist_begin && fence a on a1 && fence b on b1 && keys 2 2 && reserved 'Write Exclusive, registrants only' &&
		may "$(multipath_map)" 1 1 && may "$b1" 1 1 && fence a status b1 && fence b status a1 || return 1
	# node a fences node b, which writes
	persist_fenced a "$b1" b1 && keys 2 0 && may "$(multipath_map)" 1 1 || return 1
	fence a status b1
	[ $? = 2 ] || return 1
	# it stays fenced when the unit moves in order, and when the owner fails
	gateway_yields 1 && persist_moved 2 && may "$b2" 1 0 && may "$(multipath_map)" 1 1 || return 1
	gateway_killed 2 && persist_moved 1 && may "$b1" 1 0 && may "$(multipath_map)" 1 1 || return 1
	# it comes back, and fences node a, which holds the reservation
	fence b on b1 && keys 2 2 && may "$b1" 1 1 && persist_fenced b "$a1" a1 && keys 0 2 && may "$b1" 1 1 &&
		reserved 'Write Exclusive, registrants only' 0xb1 || return 1
	fence a on a1 && keys 2 2 && may "$a1" 1 1 && out "$b2" --clear --param-rk=0xb1 && attentions && keys 0 0
}
# persist_fenced NODE DISK KEY: this node fences the key of the other node, which writes to the disk
persist_fenced() {
	sh -c 'while dd if=/dev/zero of="$1" bs=64k count=16 oflag=direct 2>/run/written; do :; done' writer "$2" &
	persist_writer=$!
	sleep 1
	kill -0 $persist_writer && fence "$1" off "$3" || return 1
	wait $persist_writer
	cat /run/written
	grep -q 'Invalid exchange' /run/written && attentions && may "$2" 1 0
}

# persist_session TRANSPORT INTERFACE: all steps
persist_session() {
	step serve 60 gateways_start
	step multipathd 60 multipath_start 'sd[c-z]' # node a has the first two disks
	iscsid_start
	step login 90 persist_login "$1" "$2" && step states 60 multipath_waits 1 || return 1
	step owner 120 gateway_settle || return 1
	step keys 60 persist_keys
	step types 120 persist_types
	step moves 240 persist_moves
	step preempt-and-abort 120 persist_preempt
	step restarts 240 persist_restarts
	step aptpl 240 persist_restarts --param-aptpl
	step mpathpersist 400 persist_map "$2"
	step nodes 120 persist_nodes && step fence-scsi 400 persist_fence
	step logout 60 multipath_ends
	step iserd-ends 40 gateways_end
}

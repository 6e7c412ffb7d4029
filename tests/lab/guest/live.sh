# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
# Changes of iserd's configuration file, brought into force by iserctl apply while the
# kernel's initiator is logged in and fio verifies another LUN. Sourced by lib.sh.
#
# Target $IQN_ISERD, with CHAP, has the LUNs 0 (fio), 1 (resized, later read-only), 2 (removed)
# and later 3 (new); target $IQN_LEAVES is removed, and added again.

IQN_LEAVES=iqn.2026-01.org.example:leaves
LIVE=/run/live

# ---- iserd ----

live_image() { # live_image NAME MIB: random bytes
	dd if=/dev/urandom of="$LIVE/$1.img" bs=1M count="$2" 2>/dev/null
}
live_secret() { (umask 077 && echo "$1" >$LIVE/secret); }
live_serve() {
	mkdir -p $LIVE
	live_secret the-first-secret
	for image in fio grows shrinks leaves; do live_image $image 8; done
	cat >$LIVE/iserd.yaml <<-END
		version: 1
		daemon: {control: /run/iserd.ctl, workers: 2, log: info}
		backstores:
		  fio: {store: $LIVE/fio.img, buffered: yes}
		  grows: {store: $LIVE/grows.img, buffered: yes}
		  shrinks: {store: $LIVE/shrinks.img, buffered: yes}
		  leaves: {store: $LIVE/leaves.img, buffered: yes}
		auth-groups:
		  lab: {accounts: [{user: lab, secret-file: $LIVE/secret}]}
		portal-groups:
		  front: {listen: "$FAR:3260"}
		targets:
		  $IQN_ISERD: {auth-group: lab, portal-groups: front, luns: {0: fio, 1: grows, 2: shrinks}}
		  $IQN_LEAVES: {auth-group: any, portal-groups: front, luns: {0: leaves}}
	END
	live_iserd &
	wait_for 100 live_ctl version
}
live_iserd() { # as iserd_watched
	at_far sh -c 'echo $$ >/run/iserd.pid; exec "$@"' iserd iserd --config $LIVE/iserd.yaml >"$OUT/iserd.urls" 2>"$OUT/iserd.log"
	echo $? >/run/iserd.status
}
live_ctl() { iserctl --socket /run/iserd.ctl "$@"; }
live_apply() { # live_apply SED_EXPRESSION: edits the file, and brings it into force
	sed "$1" $LIVE/iserd.yaml >$LIVE/new.yaml
	iserctl diff $LIVE/iserd.yaml $LIVE/new.yaml
	mv $LIVE/new.yaml $LIVE/iserd.yaml
	live_ctl apply $LIVE/iserd.yaml
}

# ---- the initiator ----

live_login() { # live_login INTERFACE
	kernel_login "$FAR" "$IQN_ISERD" "$1" node.session.auth.authmethod=CHAP \
		node.session.auth.username=lab node.session.auth.password=the-first-secret &&
		kernel_login "$FAR" $IQN_LEAVES "$1" node.session.timeo.replacement_timeout=5 &&
		wait_for 150 live_all && settle "$(live_disk 0)" "$(live_disk 1)" "$(live_disk 2)" "$(scsi_disk 2 0)" || return 1
	live_session >$LIVE/session
	cat $LIVE/session
	[ "$(wc -l <$LIVE/session)" = 2 ]
}
live_all() { live_disk 0 && live_disk 1 && live_disk 2 && scsi_disk 2 0; } >/dev/null
live_disk() { scsi_disk 1 "$1"; }
# The session of lab-kernel with the first target: the kernel's name of it, and iserd's TSIH and
# the port of its connection. A new login changes the second line.
live_session() {
	for session in /sys/class/iscsi_session/*; do
		[ "$(cat "$session/targetname" "$session/initiatorname")" != "$(printf '%s\n%s' \
			"$IQN_ISERD" iqn.2026-01.org.example:lab-kernel)" ] || echo "${session##*/}, $(cat "$session/state")"
	done
	live_ctl --json status >$LIVE/status
	awk -F'"' -v target="$IQN_ISERD" '/"peer":/ { peer = $4 } /"initiator":/ { name = $4 } /"target":/ { to = $4 }
		/"tsih":/ && to == target && name ~ /lab-kernel/ { print "TSIH" $3, peer }' $LIVE/status
}
live_same_session() {
	live_session >$LIVE/session.now
	diff $LIVE/session $LIVE/session.now
}

# live_step NAME LIMIT COMMAND...: a step in which fio begins and ends another round, and
# after which the session is the same
live_step() {
	live_name=$1 live_limit=$2
	shift 2
	step "$live_name" "$live_limit" live_change "$@"
}
live_change() {
	dmesg | wc -l >$LIVE/dmesg.lines
	"$@" || return 1
	before=$(cat $LIVE/rounds)
	wait_for 300 live_rounds $((before + 2)) || {
		echo "fio: no further round; $(tail -3 $LIVE/fio.txt)"
		return 1
	}
	live_same_session
}

# ---- fio ----

# fio writes and verifies LUN 0 until the file $LIVE/stop exists, or fio fails
live_fio() {
	round=0
	echo 0 >$LIVE/rounds
	while [ ! -e $LIVE/stop ]; do
		fio --name=live --filename="$1" --direct=1 --rw=randwrite --bsrange=512-64k --blockalign=512 --size=4M \
			--ioengine=libaio --iodepth=4 --verify=crc32c --verify_fatal=1 --randseed=$round >$LIVE/fio.txt 2>&1 || {
			cp $LIVE/fio.txt "$OUT/fio-failed.txt"
			return
		}
		round=$((round + 1))
		echo $round >$LIVE/rounds
	done
	echo well >$LIVE/fio.end
}
live_rounds() { [ "$(cat $LIVE/rounds)" -ge "$1" ]; }
live_fio_starts() {
	live_fio "$(live_disk 0)" &
	wait_for 300 live_rounds 1
}
live_fio_ends() {
	: >$LIVE/stop
	wait_for 300 [ -e $LIVE/fio.end ] || return 1
	echo "$(cat $LIVE/rounds) rounds of fio"
}

# ---- what Linux sees ----

# live_says PATTERN: the kernel has logged this since the step began
live_says() { dmesg | tail -n "+$(($(cat $LIVE/dmesg.lines) + 1))" | grep -iE "$1"; }
live_rescan() { iscsiadm -m session -R; }
live_rescan_disk() { echo 1 >"/sys/block/${1##*/}/device/rescan"; }
live_size() { [ "$(blockdev --getsize64 "$1")" = "$2" ]; }
live_has() { dd if="$1" of=/tmp/back bs=1M iflag=direct && cmp /tmp/back "$LIVE/$2.img"; } # DISK IMAGE

# REPORTED LUNS DATA HAS CHANGED arrives with a command of fio
live_new_lun() {
	live_image new 8
	live_apply "s#^  fio:#  new: {store: $LIVE/new.img, buffered: yes}\n&#; s#2: shrinks#&, 3: new#" &&
		wait_for 100 live_says 'LUN assignments on this target have changed' || return 1
	live_disk 3 && return 1
	live_rescan && wait_for 100 live_disk 3 && live_has "$(live_disk 3)" new && live_has "$(live_disk 1)" grows || return 1
	[ "$(live_says 'LUN assignments' | wc -l)" = 1 ] # once for all LUNs
}
# CAPACITY DATA HAS CHANGED arrives with a command to the disk
live_grows() {
	disk=$(live_disk 1)
	live_size "$disk" 8388608 && live_ctl resize grows size=12M || return 1
	dd if="$disk" of=/dev/null bs=4k count=1 iflag=direct
	live_says 'capacity data has changed' && live_size "$disk" 8388608 && live_rescan_disk "$disk" &&
		wait_for 50 live_size "$disk" 12582912 && live_says 'detected capacity change' || return 1
	dd if=/dev/urandom of=/tmp/end bs=1M count=4 2>/dev/null
	dd if=/tmp/end of="$disk" bs=1M seek=8 oflag=direct && live_has "$disk" grows &&
		dd if=/tmp/back bs=1M skip=8 2>/dev/null | cmp - /tmp/end
}
# MODE PARAMETERS CHANGED
live_settings() {
	disk=$(live_disk 1)
	cache=/sys/block/${disk##*/}/queue/write_cache
	[ "$(cat "$cache")" = 'write back' ] && live_apply '/^  grows:/s#}#, cache: write-through, read-only: yes}#' || return 1
	dd if="$disk" of=/dev/null bs=4k count=1 iflag=direct
	live_says 'mode parameters changed' && live_rescan_disk "$disk" && cat "$cache" || return 1
	[ "$(cat "$cache")" = 'write through' ] && [ "$(blockdev --getro "$disk")" = 1 ] || return 1
	dd if=/dev/zero of="$disk" bs=4k count=1 oflag=direct && return 1
	live_has "$disk" grows
}
# Linux keeps the disk, with 0 bytes after a rescan, until the administrator deletes it
live_removed_lun() {
	disk=$(live_disk 2)
	live_has "$disk" shrinks && live_apply "s#, 2: shrinks##; /^  shrinks:/d" || return 1
	dd if="$disk" of=/dev/null bs=4k count=1 iflag=direct && return 1
	live_says 'logical unit not supported' && live_rescan && wait_for 50 live_size "$disk" 0 &&
		echo 1 >"/sys/block/${disk##*/}/device/delete" && live_rescan || return 1
	live_disk 2 && return 1
	live_disk 0 && live_has "$(live_disk 1)" grows && live_has "$(live_disk 3)" new
}
# The number of the removed LUN gets another backstore
live_reused_number() {
	live_image other 4
	live_apply "s#^  fio:#  other: {store: $LIVE/other.img, buffered: yes}\n&#; s#1: grows#&, 2: other#" &&
		wait_for 100 live_says 'LUN assignments on this target have changed' && live_rescan &&
		wait_for 100 live_disk 2 && live_has "$(live_disk 2)" other
}

# live_second SECRET: another initiator logs in by CHAP
live_second() {
	for setting in authmethod=CHAP username=lab "password=$1"; do
		iscsiadm -m node -T "$IQN_ISERD" -p "$FAR:3260" -I second -o update \
			-n "node.session.auth.${setting%%=*}" -v "${setting#*=}" || return 1
	done
	iscsiadm -m node -T "$IQN_ISERD" -p "$FAR:3260" -I second --login
}
live_changed_secret() { # TRANSPORT of open-iscsi: tcp, iser
	iscsiadm -m iface -I second -o new &&
		iscsiadm -m iface -I second -o update -n iface.transport_name -v "$1" &&
		iscsiadm -m iface -I second -o update -n iface.initiatorname -v iqn.2026-01.org.example:lab-second &&
		iscsiadm -m node -T "$IQN_ISERD" -p "$FAR:3260" -I second -o new || return 1
	live_secret the-second-secret && live_apply '' || return 1
	live_second the-first-secret
	[ $? = 24 ] || return 1 # authorization failure
	live_second the-second-secret && live_same_session &&
		iscsiadm -m node -T "$IQN_ISERD" -p "$FAR:3260" -I second --logout
}

# Linux obeys the asynchronous logout within the three seconds, and then tries to log in
# again every two seconds (0203h, not found). Its commands fail after replacement_timeout.
live_removed_target() {
	disk=$(scsi_disk 2 0)
	live_has "$disk" leaves && live_apply "/^  $IQN_LEAVES:/d; /^  leaves:/d" &&
		wait_for 20 log_says 1 "$IQN_LEAVES ended: logged out" || return 1
	grep 'asked to log out' "$OUT/iserd.log"
	log_says 1 'asked to log out: no target has this name' && grep 'Target requests logout' "$OUT/iscsid.log" || return 1
	dd if="$disk" of=/dev/null bs=4k count=1 iflag=direct && return 1
	live_says 'session recovery timed out' && log_says 1 "$IQN_LEAVES refused: 0203"
}
# With the target back, Linux logs in again by itself, and the disk works
live_returned_target() {
	live_apply "s#^  fio:#  leaves: {store: $LIVE/leaves.img, buffered: yes}\n&#
		s#^targets:#&\n  $IQN_LEAVES: {auth-group: any, portal-groups: front, luns: {0: leaves}}#" &&
		wait_for 100 kernel_logged_in && live_has "$(scsi_disk 2 0)" leaves
}
# Two changes by verbs: another backstore for LUN 3, of which Linux learns by unit attentions and
# keeps the disk, and a new LUN 4
live_verbs() {
	live_image third 10
	live_ctl lun replace "$IQN_ISERD/3" "store=$LIVE/third.img" backstore=third buffered=yes &&
		live_ctl lun add "$IQN_ISERD/4" backstore=new || return 1
	dd if="$(live_disk 3)" of=/dev/null bs=4k count=1 iflag=direct
	live_says ':3: Inquiry data has changed' && live_rescan && wait_for 100 live_disk 4 &&
		live_has "$(live_disk 4)" new && live_size "$(live_disk 3)" 10485760 && live_has "$(live_disk 3)" third || return 1
	live_ctl save "$LIVE/saved.yaml" && iserctl check "$LIVE/saved.yaml" && grep '4: new' "$LIVE/saved.yaml"
}

# live_changes INTERFACE TRANSPORT
live_changes() {
	iscsid_start
	step login 60 live_login "$1" && step io 60 live_fio_starts || return 1
	live_step new-lun 60 live_new_lun
	live_step resize 60 live_grows
	live_step settings 60 live_settings
	live_step removed-lun 60 live_removed_lun
	live_step reused-number 60 live_reused_number
	live_step changed-secret 60 live_changed_secret "$2"
	live_step removed-target 60 live_removed_target
	live_step returned-target 60 live_returned_target
	live_step verbs 60 live_verbs
	step io-ends 60 live_fio_ends
	step logout 30 kernel_logout
}

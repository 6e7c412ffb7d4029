# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
# Functions of the jobs of iser attach.

# attach_begin URL OPTION...: makes NBD, the device
attach_begin() {
	attach_url=$1
	shift
	: >/run/attached
	rm -f /run/attach.status
	(
		iser attach "$@" "$attach_url" >/run/attached 2>>"$OUT/attach.log" &
		echo $! >/run/attach.pid
		wait $!
		echo $? >/run/attach.status
	) &
	wait_for 150 grep -q '^/dev/nbd' /run/attached && [ -b "$(nbd)" ] && return
	tail -1 "$OUT/attach.log"
	return 1
}
nbd() { head -1 /run/attached; }
nbd_name() { basename "$(nbd)"; }
attach_without_module() {
	iser attach "$1" 2>&1 | tee /run/no-module
	grep -q 'the module nbd of the Linux kernel is not loaded; run modprobe nbd' /run/no-module &&
		! lsmod | grep -q '^nbd'
}
attach_fsck() { DISK=$(nbd) disk_fsck; }
attach_fio() { # attach_fio OPTION...
	fio --name=attach --filename="$(nbd)" --direct=1 --ioengine=psync --thread --rw=randwrite --bs=16k --size=12M \
		--verify=crc32c --verify_fatal=1 --verify_state_save=0 --group_reporting "$@"
}
attach_verify() { attach_fio; }
# iserd reports fewer blocks in use after the discard, and the blocks read as zeros
attach_discard() {
	dd if=/dev/urandom of="$(nbd)" bs=1M count=32 oflag=direct || return 1
	before=$(stat -c %b /tmp/disk)
	blkdiscard -o 1048576 -l 16777216 "$(nbd)" && sync || return 1
	after=$(stat -c %b /tmp/disk)
	echo "512-byte blocks of the file: $before before, $after after the discard"
	[ $((before - after)) -ge 32768 ] || return 1
	dd if="$(nbd)" bs=1M skip=1 count=16 iflag=direct | cmp -n 16777216 - /dev/zero
}
attach_ended() { [ -s /run/attach.status ]; }
attach_end() {
	mkdir -p /mnt/held && mkfs.ext4 -q -F "$(nbd)" && mount -t ext4 "$(nbd)" /mnt/held || return 1
	iser detach "$(nbd)" 2>&1 | tee /run/detach # refused: mounted
	grep -q 'in use; unmount' /run/detach || return 1
	umount /mnt/held && iser detach "$(nbd)" && wait_for 50 attach_ended || return 1
	cat /run/attach.status
	[ "$(cat /run/attach.status)" = 0 ] && [ ! -e "/sys/block/$(nbd_name)/pid" ]
}
attach_terminated() {
	kill "$(cat /run/attach.pid)"
	wait_for 100 attach_ended && [ "$(cat /run/attach.status)" = 0 ] && [ ! -e "/sys/block/$(nbd_name)/pid" ]
}
# iserd is killed and started again while fio writes and verifies
attach_through() {
	attach_fio --loops=4 >/run/fio.txt 2>&1 &
	fio=$!
	sleep 2
	kill -0 $fio || return 1
	kill -9 "$(cat /run/iserd.pid)"
	sleep 3
	rm -f /run/iserd.status /run/iserd.ctl
	iserd_at_far --buffered /tmp/disk && kill -0 $fio || return 1
	wait $fio
	fio_status=$?
	cat /run/fio.txt
	return $fio_status
}
nbd_sectors() { cat "/sys/block/$(nbd_name)/size"; }
attach_resize() {
	[ "$(nbd_sectors)" = 131072 ] || return 1
	at_far iserctl --socket /run/iserd.ctl resize lun0 size=96M && wait_for 150 nbd_is_large || return 1
	dd if=/dev/urandom of=/tmp/end bs=1M count=1 &&
		dd if=/tmp/end of="$(nbd)" bs=1M seek=95 oflag=direct &&
		dd if="$(nbd)" of=/tmp/end.back bs=1M skip=95 iflag=direct && cmp /tmp/end /tmp/end.back
}
nbd_is_large() { [ "$(nbd_sectors)" = 196608 ]; }
# iser attach is killed while fio writes and verifies, and another one resumes the device
attach_resumed() {
	attach_fio --loops=4 >/run/fio.txt 2>&1 &
	fio=$!
	sleep 2
	kill -9 "$(cat /run/attach.pid)"
	wait_for 50 attach_ended
	sleep 1
	iser attach --resume --device "$(nbd)" "${1%/0}/1" 2>&1 | tee /run/other # no such unit
	grep -q 'no LUN 1' /run/other || return 1
	attach_begin "$1" --resume --device "$(nbd)" && kill -0 $fio || return 1
	wait $fio
	fio_status=$?
	cat /run/fio.txt
	return $fio_status
}
attach_read_only() {
	[ "$(cat "/sys/block/$(nbd_name)/ro")" = 1 ] && [ "$(cat "/sys/block/$(nbd_name)/queue/logical_block_size")" = 4096 ] &&
		! dd if=/dev/zero of="$(nbd)" bs=4k count=1 oflag=direct && dd if="$(nbd)" of=/dev/null bs=4k count=1 iflag=direct
}

# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
# Tests of a disk of iserd with programs of Linux: sg3-utils, sdparm, ddpt, fio, mkfs,
# blkdiscard. Sourced by lib.sh; jobs run the functions as steps.

# ---- persistent reservations by two sessions ----

# scsi_second TRANSPORT: logs in another initiator port (name and ISID) to the same target;
# its disk of LUN 0 is the second one. TRANSPORT is a name of open-iscsi: tcp, iser
scsi_second() {
	iscsiadm -m iface -I second -o new &&
		iscsiadm -m iface -I second -o update -n iface.transport_name -v "$1" &&
		iscsiadm -m iface -I second -o update -n iface.initiatorname -v iqn.2026-01.org.example:lab-second &&
		iscsiadm -m node -T "$IQN_ISERD" -p "$FAR:3260" -I second -o new &&
		iscsiadm -m node -T "$IQN_ISERD" -p "$FAR:3260" -I second --login &&
		wait_for 150 scsi_disk 2 0
}
scsi_disk() { # scsi_disk SESSION LUN: prints the disk, by the order of sessions
	scsi_session=0
	for scsi_at in /sys/class/iscsi_session/session*; do
		scsi_session=$((scsi_session + 1))
		[ $scsi_session = "$1" ] || continue
		for d in "$scsi_at"/device/target*/*:"$2"/block/*; do
			[ -b "/dev/${d##*/}" ] && echo "/dev/${d##*/}" && return
		done
	done
	return 1
}

pr() { # pr DISK OPTION...: PERSISTENT RESERVE OUT; a unit attention may come first
	pr_disk=$1
	shift
	sg_persist -n --out "$@" "$pr_disk" && return
	[ $? = 6 ] && sg_persist -n --out "$@" "$pr_disk"
}
pr_in() { # pr_in DISK OPTION...
	pr_disk=$1
	shift
	sg_persist -n --in "$@" "$pr_disk" || sg_persist -n --in "$@" "$pr_disk"
}
settle() { for settle_disk; do sg_turs "$settle_disk" >/dev/null 2>&1 || sg_turs "$settle_disk"; done; }
# may DISK READ WRITE: checks whether Linux can (1) or cannot (0), with the reason EBADE
may() {
	may_try "$2" "read of $1" dd if="$1" of=/dev/null bs=4k count=1 iflag=direct &&
		may_try "$3" "write of $1" dd if=/dev/zero of="$1" bs=4k count=1 oflag=direct
}
may_try() { # may_try 1|0 WHAT COMMAND...
	may_want=$1 may_what=$2
	shift 2
	if "$@" 2>/run/may; then
		[ "$may_want" = 1 ] && return
		echo "$may_what: allowed"
		return 1
	fi
	[ "$may_want" = 0 ] && grep -q 'Invalid exchange' /run/may && return
	echo "$may_what: $(head -1 /run/may)"
	return 1
}
# One reservation type: reads and writes of the holder, of another registrant and of an
# unregistered initiator (SPC-4 table 66)
pr_type() { # pr_type TYPE READ WRITE READ WRITE
	one=$(scsi_disk 1 0) two=$(scsi_disk 2 0)
	echo "type $1"
	pr "$one" --register-ignore --param-sark=0xaa &&
		pr "$two" --register-ignore --param-sark=0xbb &&
		pr "$one" --reserve --param-rk=0xaa --prout-type="$1" &&
		pr_in "$two" --read-reservation | tee /run/pr | grep -q "type" || return 1
	cat /run/pr
	may "$one" 1 1 && may "$two" "$2" "$3" || return 1
	pr "$two" --register --param-rk=0xbb --param-sark=0 && may "$two" "$4" "$5" || return 1
	# only holders release; the command of another registrant succeeds without effect
	pr "$one" --clear --param-rk=0xaa && settle "$one" "$two" && may "$two" 1 1
}
scsi_reservations() {
	pr_type 1 1 0 1 0 && pr_type 3 0 0 0 0 && pr_type 5 1 1 1 0 && pr_type 6 1 1 0 0 &&
		pr_type 7 1 1 1 0 && pr_type 8 1 1 0 0
}
scsi_preempt() {
	one=$(scsi_disk 1 0) two=$(scsi_disk 2 0)
	pr "$one" --register-ignore --param-sark=0xaa && pr "$two" --register-ignore --param-sark=0xbb &&
		pr "$one" --reserve --param-rk=0xaa --prout-type=1 && may "$two" 1 0 || return 1
	# a registrant reserves a reserved unit: RESERVATION CONFLICT, exit status 24
	sg_persist -n --out --reserve --param-rk=0xbb --prout-type=3 "$two"
	[ $? = 24 ] || return 1
	pr "$two" --preempt --param-rk=0xbb --param-sark=0xaa --prout-type=3 &&
		settle "$one" && may "$one" 0 0 && may "$two" 1 1 || return 1
	pr_in "$two" --read-keys | tee /run/pr
	grep -q '0xbb' /run/pr && ! grep -q '0xaa' /run/pr || return 1
	# preempts in return, and aborts the tasks of the other initiator
	pr "$one" --register-ignore --param-sark=0xaa &&
		pr "$one" --preempt-abort --param-rk=0xaa --param-sark=0xbb --prout-type=5 &&
		settle "$two" && may "$one" 1 1 && may "$two" 1 0 || return 1
	pr_in "$one" --read-full-status | tee /run/pr
	grep -q 'lab-kernel' /run/pr && pr_in "$one" --report-capabilities &&
		pr "$one" --clear --param-rk=0xaa && settle "$two" && may "$two" 1 1
}
scsi_aptpl() { # scsi_aptpl LUN...: a reservation survives a restart of iserd
	one=$(scsi_disk 1 0) two=$(scsi_disk 2 0)
	pr "$one" --register --param-sark=0xcc --param-aptpl &&
		pr "$one" --reserve --param-rk=0xcc --prout-type=1 || return 1
	kill -TERM "$(cat /run/iserd.pid)"
	wait_for 150 [ -s /run/iserd.status ]
	rm -f /run/iserd.status /run/iserd.ctl
	iserd_at_far "$@" && wait_for 600 kernel_logged_in && settle "$one" "$two" || return 1
	pr_in "$two" --read-reservation | tee /run/pr
	grep -q 0xcc /run/pr && may "$two" 1 0 && may "$one" 1 1 &&
		pr "$one" --clear --param-rk=0xcc && settle "$two" && may "$two" 1 1
}

# ---- auto contingent allegiance by two sessions (SAM-5 §5.10) ----

# A READ beyond the end with NACA = 1 makes the nexus the faulted one. Linux has no CLEAR
# ACA and no ACA attribute: only a reset or the end of the nexus clears the ACA.
aca_fault() { # aca_fault DISK
	aca_raw 'Check Condition' "$1" 28 00 ff ff ff fe 00 00 01 04
}
# aca_raw STATUS DISK CDB...: the command ends with this status, as sg_raw prints it (the
# exit status for ACA ACTIVE is 99)
aca_raw() {
	aca_want=$1
	shift
	sg_raw -t 2 -r 512 "$@" >/run/raw 2>&1
	cat /run/raw
	grep -qi "^SCSI Status: $aca_want *\$" /run/raw && return
	echo "sg_raw $*: not $aca_want"
	return 1
}
aca_test_unit() { aca_raw "$1" "$2" 00 00 00 00 00 "$3"; } # STATUS DISK CONTROL
aca_write() { dd if=/tmp/reference of="$1" bs=4k count=1 seek=16 oflag=direct; }
scsi_aca() {
	one=$(scsi_disk 1 0) two=$(scsi_disk 2 0)
	settle "$one" "$two"
	sg_inq "$one" | tee /run/says
	grep -q 'NormACA=1' /run/says && scsi_fill "$one" 1 || return 1
	# without NACA a failure leaves no ACA
	aca_raw 'Check Condition' "$one" 28 00 ff ff ff fe 00 00 01 00 && aca_test_unit Good "$one" 00 && aca_test_unit Good "$two" 00 || return 1
	# the faulted nexus: ACA ACTIVE, which Linux passes on at once and treats as an I/O error
	aca_fault "$one" && aca_test_unit 'ACA Active' "$one" 00 && aca_test_unit 'ACA Active' "$one" 04 || return 1
	aca_write "$one" 2>/run/says && return 1
	cat /run/says
	grep -q 'Input/output error' /run/says || return 1
	# the other nexus: ACA ACTIVE for NACA = 1, else BUSY, after which Linux repeats the
	# command: sg_raw for 2 s, a write until the reset
	aca_test_unit 'ACA Active' "$two" 04 && aca_test_unit Busy "$two" 00 || return 1
	aca_write "$two" &
	aca_writer=$!
	sleep 2
	kill -0 $aca_writer && sg_reset -d "$one" && wait $aca_writer || return 1
	settle "$one" "$two"
	aca_write "$one" && aca_test_unit Good "$one" 00 && aca_test_unit Good "$two" 00 || return 1
	# once more with exchanged roles; the faulted initiator logs out
	aca_fault "$two" && aca_test_unit 'ACA Active' "$two" 00 && aca_test_unit Busy "$one" 00 || return 1
	iscsiadm -m node -T "$IQN_ISERD" -I second --logout &&
		aca_test_unit Good "$one" 00 && aca_write "$one" || return 1
	iscsiadm -m node -T "$IQN_ISERD" -I second --login && wait_for 150 scsi_disk 2 0 && settle "$(scsi_disk 2 0)"
}

# ---- the reports of the disk ----

# scsi_says COMMAND...: succeeds and prints no complaint about the data
scsi_says() {
	echo "--- $*"
	"$@" >/run/says 2>&1
	scsi_status=$?
	cat /run/says
	[ $scsi_status = 0 ] || echo "exit status $scsi_status"
	[ $scsi_status = 0 ] && ! grep -iE 'malformed|too short|truncated|unexpected|invalid' /run/says
}
scsi_identity() {
	disk=$(scsi_disk 1 0)
	scsi_says sg_inq "$disk" && scsi_says sg_inq -d "$disk" && scsi_says sg_luns "$disk" &&
		scsi_says sg_luns --select=1 "$disk" && scsi_says sg_luns --select=2 "$disk" &&
		scsi_says sg_readcap "$disk" && scsi_says sg_readcap --16 "$disk" && scsi_says sg_turs "$disk" &&
		scsi_says sg_requests "$disk" && scsi_says sg_requests -d "$disk" && scsi_says sdparm --inquiry "$disk" &&
		scsi_says sdparm --inquiry --all "$disk" || return 1
	sg_vpd --page=sv --raw "$disk" | od -An -v -tx1 -j4 | tr -s ' ' '\n' >/run/pages
	[ "$(grep -c . /run/pages)" -gt 5 ] || return 1
	while read -r page; do
		[ -z "$page" ] || scsi_says sg_vpd --page="0x$page" "$disk" || return 1
	done </run/pages
	# a page that does not exist: INVALID FIELD IN CDB, exit status 5
	sg_vpd --force --page=0xc7 "$disk"
	[ $? = 5 ]
}
scsi_pages() { # mode and log pages
	disk=$(scsi_disk 1 0)
	scsi_says sg_modes --all "$disk" && scsi_says sg_modes --all --six "$disk" &&
		sdparm --all "$disk" | grep 'WCE  *[01]' && ! sdparm --all --long "$disk" | grep -i malformed &&
		scsi_says sg_logs --all "$disk" && ! grep 'Unable to decode' /run/says && scsi_says sg_logs --list "$disk" || return 1
	# the descriptor format of sense data is enabled, used and disabled
	sdparm --set=D_SENSE=1 "$disk" && sdparm --get=D_SENSE "$disk" | grep -q 'D_SENSE *1' || return 1
	sg_readcap --16 "$disk" && ! sg_vpd --force --page=0xc7 --verbose "$disk" 2>&1 | tee /run/says | grep -q 'Fixed format' &&
		grep -q 'Descriptor format' /run/says || return 1
	sdparm --set=D_SENSE=0 "$disk" && sdparm --get=D_SENSE "$disk" | grep -q 'D_SENSE *0' &&
		sdparm --set=SWP=1 "$disk" || return 1
	dd if=/dev/zero of="$disk" bs=4k count=1 oflag=direct && return 1 # write protected
	sdparm --set=SWP=0 "$disk" && dd if=/dev/zero of="$disk" bs=4k count=1 oflag=direct
}
scsi_opcodes() {
	disk=$(scsi_disk 1 0)
	scsi_says sg_opcodes "$disk" && scsi_says sg_opcodes --rctd "$disk" && scsi_says sg_opcodes --tmf "$disk" &&
		scsi_says sg_opcodes --opcode=0x8a "$disk" && scsi_says sg_opcodes --opcode=0x83,0x11 --rctd "$disk"
}
scsi_ports() {
	disk=$(scsi_disk 1 0)
	scsi_says sg_rtpg --decode "$disk" && scsi_says sg_rtpg --decode --extended "$disk" &&
		scsi_says sg_senddiag --test "$disk"
}

# ---- the commands of the disk ----

scsi_fill() { # scsi_fill DISK MIB: writes random bytes from LBA 0, with a copy in /tmp/reference
	dd if=/dev/urandom of=/tmp/reference bs=1M count="$2" 2>/dev/null &&
		dd if=/tmp/reference of="$1" bs=1M oflag=direct 2>/dev/null
}
scsi_part() { # scsi_part DISK LBA BLOCKS: reads blocks to /tmp/part
	dd if="$1" of=/tmp/part bs=128k skip=$(($2 * 512)) count=$(($3 * 512)) iflag=direct,skip_bytes,count_bytes 2>/dev/null
}
# scsi_same DISK LBA BLOCKS REFERENCE_LBA: the blocks equal that part of /tmp/reference
scsi_same() {
	scsi_part "$1" "$2" "$3" && dd if=/tmp/reference of=/tmp/part.want bs=512 skip="$4" count="$3" 2>/dev/null &&
		cmp /tmp/part /tmp/part.want
}
scsi_zero() { # scsi_zero DISK LBA BLOCKS
	scsi_part "$1" "$2" "$3" && head -c $(($3 * 512)) /dev/zero | cmp - /tmp/part
}
scsi_map() { # scsi_map DISK LBA mapped|deallocated
	sg_get_lba_status --lba="$2" "$1" | tee /run/map
	grep '^.1. LBA' /run/map | grep -q "  $3"
}
scsi_thin() {
	disk=$(scsi_disk 1 0)
	scsi_fill "$disk" 4 && scsi_map "$disk" 0 mapped || return 1
	scsi_says sg_unmap --force --lba=2048 --num=1024 "$disk" && scsi_zero "$disk" 2048 1024 &&
		scsi_map "$disk" 2048 deallocated && scsi_same "$disk" 1024 1024 1024 &&
		scsi_same "$disk" 3072 1024 3072 || return 1
	dd if=/dev/urandom of=/tmp/block bs=512 count=1 2>/dev/null
	scsi_says sg_write_same --16 --in=/tmp/block --lba=4096 --num=8 "$disk" &&
		scsi_says sg_write_same --10 --in=/tmp/block --lba=4104 --num=120 "$disk" && scsi_part "$disk" 4096 128 || return 1
	for i in 0 1 2 3 4 5 6; do cat /tmp/block /tmp/block >/tmp/blocks && mv /tmp/blocks /tmp/block; done
	cmp /tmp/block /tmp/part || return 1
	scsi_says sg_write_same --16 --unmap --lba=4096 --num=128 "$disk" && scsi_zero "$disk" 4096 128 &&
		scsi_same "$disk" 4224 64 4224
}
scsi_compare_and_write() {
	disk=$(scsi_disk 1 0)
	scsi_fill "$disk" 1 && dd if=/tmp/reference of=/tmp/caw bs=512 skip=8 count=8 2>/dev/null &&
		dd if=/dev/urandom bs=512 count=8 2>/dev/null >>/tmp/caw || return 1
	scsi_says sg_compare_and_write --in=/tmp/caw --lba=8 --num=8 --xferlen=8192 "$disk" || return 1
	dd if="$disk" bs=512 skip=8 count=8 iflag=direct 2>/dev/null >/tmp/part
	dd if=/tmp/caw bs=512 skip=8 2>/dev/null | cmp - /tmp/part || return 1
	# once more: the blocks have changed. MISCOMPARE, exit status 14
	sg_compare_and_write --in=/tmp/caw --lba=8 --num=8 --xferlen=8192 "$disk"
	[ $? = 14 ] && scsi_same "$disk" 16 8 16
}
scsi_sg() { # prints its sg device
	for scsi_at in "/sys/block/${1##*/}/device/scsi_generic/"*; do echo "/dev/${scsi_at##*/}"; done
}
scsi_copy() { # EXTENDED COPY by two programs
	disk=$(scsi_disk 1 0) sg=$(scsi_sg "$disk")
	scsi_fill "$disk" 4 && scsi_says sg_copy_results --params "$disk" &&
		sg_xcopy if="$sg" of="$sg" bs=512 skip=0 seek=32768 count=8192 &&
		scsi_same "$disk" 32768 8192 0 &&
		ddpt --xcopy if="$sg" of="$sg" bs=512 skip=1024 seek=65536 count=4096 &&
		scsi_same "$disk" 65536 4096 1024
}
# A token of blocks 512 to 2559 is used at LBA 98304, and is invalid after a write to them.
# With sg_raw, because ddpt 0.97 puts the range descriptor one octet too early.
scsi_token() {
	disk=$(scsi_disk 1 0)
	scsi_fill "$disk" 4 && ddptctl --info "$disk" || return 1
	{
		printf '\0\036\0\0\0\0\0\0\0\0\0\0\0\0\0\020' # SBC-3 table 57: one range descriptor
		printf '\0\0\0\0\0\0\002\0\0\0\010\0\0\0\0\0'
	} >/tmp/populate
	sg_raw -s 32 -i /tmp/populate "$disk" 83 10 00 00 00 00 00 00 01 01 00 00 00 20 00 00 &&
		sg_raw -r 550 -o /tmp/information "$disk" 84 07 00 00 01 01 00 00 00 00 00 00 02 26 00 00 || return 1
	{
		printf '\002\046\0\0\0\0\0\0\0\0\0\0\0\0\0\0' # 550 octets follow; offset 0 in the token
		tail -c +39 /tmp/information | head -c 512
		printf '\0\0\0\0\0\0\0\020'
		printf '\0\0\0\0\0\001\200\0\0\0\010\0\0\0\0\0'
	} >/tmp/use
	[ "$(wc -c </tmp/use)" = 552 ] || return 1
	set -- 83 11 00 00 00 00 00 00 01 02 00 00 02 28 00 00
	sg_raw -s 552 -i /tmp/use "$disk" "$@" && scsi_same "$disk" 98304 2048 512 &&
		dd if=/dev/zero of="$disk" bs=512 seek=600 count=8 oflag=direct 2>/dev/null || return 1
	sg_raw -s 552 -i /tmp/use "$disk" "$@" 2>&1 | tee /run/says
	grep -qi 'token' /run/says # INVALID TOKEN OPERATION
}
scsi_medium() {
	disk=$(scsi_disk 1 0)
	scsi_fill "$disk" 1 && scsi_says sg_sync "$disk" && scsi_says sg_sync --16 --lba=8 --count=8 "$disk" &&
		scsi_says sg_verify --lba=0 --count=2048 "$disk" && scsi_says sg_verify --16 --lba=0 --count=2048 "$disk" || return 1
	dd if=/tmp/reference of=/tmp/block bs=512 count=8 2>/dev/null
	scsi_says sg_verify --lba=0 --count=8 --ndo=4096 --in=/tmp/block "$disk" || return 1
	sg_verify --lba=8 --count=8 --ndo=4096 --in=/tmp/block "$disk" # MISCOMPARE
	[ $? = 14 ] || return 1
	scsi_says sg_write_verify --lba=512 --num=8 --in=/tmp/block "$disk" && scsi_same "$disk" 512 8 0 &&
		scsi_says sg_write_x --or --lba=512 --num=8 --in=/tmp/block "$disk" && scsi_same "$disk" 512 8 0 &&
		scsi_says sg_start --stop "$disk"
	scsi_says sg_start --start "$disk" && scsi_says sg_turs "$disk" || return 1
	sg_dd if="$disk" of=/tmp/part bs=512 count=512 blk_sgio=1 cdbsz=16 &&
		cmp -n 262144 /tmp/reference /tmp/part
}
scsi_erase() { # SANITIZE and FORMAT UNIT, with their progress up to the end
	disk=$(scsi_disk 1 1)
	scsi_fill "$disk" 4 && printf '\125\252' >/tmp/pattern &&
		sg_sanitize --overwrite --pattern=/tmp/pattern --ipl=2 --quick --wait "$disk" || return 1
	dd if="$disk" of=/tmp/part bs=1M count=4 iflag=direct 2>/dev/null
	[ "$(od -An -v -tx1 /tmp/part | tr -s ' ' '\n' | sort | uniq -c | grep -vc '^ *1 *$')" = 2 ] || return 1
	scsi_fill "$disk" 4 && sg_sanitize --block --quick --wait "$disk" && scsi_zero "$disk" 0 8192 || return 1
	scsi_fill "$disk" 4 && sg_format --format --quick --wait "$disk" && settle "$disk" &&
		scsi_zero "$disk" 0 8192 && scsi_fill "$disk" 1 && scsi_same "$disk" 0 2048 0
}

# ---- Linux and its file systems ----

scsi_fio() {
	fio --name=verified --filename="$(scsi_disk 1 0)" --direct=1 --rw=randwrite --bsrange=512-64k --blockalign=512 \
		--size=24M --norandommap=0 --ioengine=libaio --iodepth=8 --verify=crc32c --fsync=32 --verify_fatal=1
}
scsi_filesystems() {
	disk=$(scsi_disk 1 0)
	mkdir -p /mnt
	for kind in ext4 xfs; do
		case $kind in
		ext4) mkfs.ext4 -q -F "$disk" ;;
		*) mkfs.xfs -q -f "$disk" ;;
		esac && mount -t $kind "$disk" /mnt && dd if=/dev/urandom of=/mnt/file bs=1M count=16 2>/dev/null &&
			sum=$(sha256sum </mnt/file) && sync && before=$(du -k /tmp/disk | cut -f1) && fstrim -v /mnt &&
			rm /mnt/file && sync && fstrim -v /mnt && after=$(du -k /tmp/disk | cut -f1) &&
			echo "$kind: $before KiB with the file, $after KiB without it" && [ "$after" -lt $((before - 12000)) ] &&
			dd if=/dev/urandom of=/mnt/file bs=1M count=8 2>/dev/null && sum=$(sha256sum </mnt/file) &&
			umount /mnt || return 1
		case $kind in
		ext4) fsck.ext4 -f -n "$disk" ;;
		*) xfs_repair -n "$disk" ;;
		esac && mount -t $kind "$disk" /mnt && [ "$sum" = "$(sha256sum </mnt/file)" ] && umount /mnt || return 1
	done
}
scsi_discard() {
	disk=$(scsi_disk 1 0)
	lsblk -D "$disk" && [ "$(cat "/sys/block/${disk##*/}/queue/discard_max_bytes")" -gt 0 ] &&
		[ "$(cat "/sys/block/${disk##*/}/queue/write_zeroes_max_bytes")" -gt 0 ] || return 1
	scsi_fill "$disk" 8 && blkdiscard -o 1M -l 2M "$disk" && scsi_zero "$disk" 2048 4096 &&
		scsi_same "$disk" 0 2048 0 && scsi_same "$disk" 6144 2048 6144 &&
		blkdiscard -z -o 4M -l 1M "$disk" && scsi_zero "$disk" 8192 2048 && scsi_same "$disk" 10240 2048 10240 &&
		blkdiscard -f "$disk" && scsi_zero "$disk" 0 16384 && [ "$(du -k /tmp/disk | cut -f1)" -lt 64 ]
}

# scsi_session TRANSPORT LUN...: runs all of these steps; TRANSPORT as for scsi_second
scsi_session() {
	scsi_transport=$1
	shift
	iscsid_start
	case $scsi_transport in iser) scsi_iface=iser ;; *) scsi_iface=default ;; esac
	step login 60 kernel_login "$FAR" "$IQN_ISERD" $scsi_iface || return 1
	step identity 60 scsi_identity
	step pages 60 scsi_pages
	step opcodes 30 scsi_opcodes
	step ports 30 scsi_ports
	step thin 60 scsi_thin
	step compare-and-write 30 scsi_compare_and_write
	step copy 60 scsi_copy
	step token 30 scsi_token
	step medium 60 scsi_medium
	step erase 90 scsi_erase
	step fio 120 scsi_fio
	step fsck 150 scsi_filesystems
	step discard 60 scsi_discard
	step second-initiator 60 scsi_second "$scsi_transport" || return 1
	step reservations 120 scsi_reservations
	step preempt 60 scsi_preempt
	step aca 60 scsi_aca
	step aptpl 120 scsi_aptpl "$@"
	step logout 30 kernel_logout
}

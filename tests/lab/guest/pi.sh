# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
# Tests of a disk with protection information: pi.sh STEP [ARG]...
. /lab/guest/lib.sh
disk=$(kernel_disk)
PI=/tmp/pi

fails_with() { # fails_with TEXT COMMAND...
	text=$1
	shift
	"$@" >/tmp/failed 2>&1 && {
		echo "no failure: $*"
		return 1
	}
	cat /tmp/failed
	grep -qi "$text" /tmp/failed
}

reported() { # reported TYPE: the reports of the unit, and the reaction of Linux
	sg_readcap -l "$disk" | tee /tmp/told
	grep -q "prot_en=1, p_type=$(($1 - 1)), p_i_exponent=0" /tmp/told || return 1
	sg_inq "$disk" | grep -i 'PROTECT=1' || return 1
	sg_inq --page=0x86 --hex "$disk"
	dmesg | grep -i 'DIF Type' # Linux logs the type; iscsi_tcp moves no protection information for sd
	[ "$(cat /sys/class/block/"${disk##*/}"/device/scsi_disk/*/protection_type)" = "$1" ]
}

# ddpt reads 16 blocks with information that Linux wrote without, and writes them back
wire() {
	dd if=/dev/urandom of=$PI.data bs=512 count=16 &&
		dd if=$PI.data of="$disk" bs=512 seek=64 oflag=direct &&
		ddpt if="$disk" iflag=pt of=$PI.wire bs=512 skip=64 count=16 protect=1 || return 1
	[ "$(wc -c <$PI.wire)" = $((16 * 520)) ] || return 1
	for i in 0 15; do # each block is followed by its LBA as reference tag
		dd if=$PI.wire bs=1 skip=$((520 * i)) count=512 of=$PI.a
		dd if=$PI.data bs=512 skip=$i count=1 of=$PI.b
		cmp $PI.a $PI.b || return 1
		dd if=$PI.wire bs=1 skip=$((520 * i + 516)) count=4 | od -An -tx1 | tee $PI.tag
		grep -q "00 00 00 $(printf %02x $((64 + i)))" $PI.tag || return 1
	done
	ddpt if=$PI.wire of="$disk" oflag=pt bs=512 seek=64 count=16 protect=0,1 &&
		sg_verify --vrprotect=1 --lba=64 --count=16 "$disk" &&
		sg_verify --16 --vrprotect=1 --lba=64 --count=16 "$disk" &&
		sg_verify --vrprotect=1 --ndo=$((16 * 520)) --lba=64 --count=16 --in=$PI.wire "$disk"
}

# At another LBA the tags are wrong; a changed byte does not match its guard.
refused() {
	cp $PI.wire $PI.bad
	printf 'x' | dd of=$PI.bad bs=1 seek=530 conv=notrunc
	fails_with 'reference tag check failed' \
		ddpt if=$PI.wire of="$disk" oflag=pt bs=512 seek=128 count=16 protect=0,1 verbose=2 &&
		fails_with 'guard check failed' \
			ddpt if=$PI.bad of="$disk" oflag=pt bs=512 seek=64 count=16 protect=0,1 verbose=2
}

# Each read detects damage that was written unchecked, also a read by Linux.
found() {
	ddpt if=$PI.bad of="$disk" oflag=pt bs=512 seek=64 count=16 protect=0,3 &&
		fails_with 'guard check failed' sg_verify -v --lba=64 --count=16 "$disk" &&
		fails_with 'error' dd if="$disk" of=/dev/null bs=512 skip=64 count=16 iflag=direct &&
		dd if=$PI.data of="$disk" bs=512 seek=64 oflag=direct &&
		dd if="$disk" bs=512 skip=64 count=16 iflag=direct | cmp - $PI.data
}

# FORMAT UNIT with another type
format() { # format TYPE
	case $1 in
	1) set -- "$1" --fmtpinfo=2 ;;
	2) set -- "$1" --fmtpinfo=3 ;;
	3) set -- "$1" --fmtpinfo=3 --pfu=1 ;;
	esac
	type=$1
	shift
	sg_format --format --quick --wait "$@" "$disk" &&
		echo 1 >"/sys/class/block/${disk##*/}/device/rescan" || return 1
	sg_readcap -l "$disk" | tee /tmp/told
	grep -q "prot_en=1, p_type=$((type - 1))" /tmp/told
}

read_32() { # read_32 REFERENCE_TAG: 16 blocks from LBA 200 with information
	sg_raw -r $((16 * 520)) -o $PI.back "$disk" 7f 00 00 00 00 00 00 18 00 09 20 00 \
		00 00 00 00 00 00 00 c8 00 00 00 "$1" ff ff 00 00 00 00 00 10
}
# The kernel's initiator sends the 32-byte commands with an AHS; the expected tag differs
# from the LBA.
bytes_32() {
	sg_write_x --normal --32 --wrprotect=1 --lba=200 --num=16 --ref-tag=64 --tag-mask=0 \
		--in=$PI.wire "$disk" && read_32 40 && cmp $PI.wire $PI.back &&
		fails_with 'reference tag check failed' read_32 41 &&
		fails_with 'protection error' \
			sg_write_x --normal --32 --wrprotect=1 --lba=200 --num=16 --ref-tag=65 \
			--tag-mask=0 --in=$PI.wire "$disk" &&
		sg_write_x --same=0 --32 --wrprotect=1 --lba=300 --num=50 --ref-tag=64 --tag-mask=0 \
			--in=$PI.wire "$disk" &&
		fails_with 'invalid command operation code' \
			sg_raw -r 520 "$disk" 28 20 00 00 00 c8 00 00 01 00 &&
		sg_opcodes "$disk" | grep -i 'read(32)'
}

bytes_of() { # bytes_of OCTAL: prints a block of that byte
	head -c 512 /dev/zero | tr '\0' "\\$1"
}

# ORWRITE(32) with generations
orwrite() {
	bytes_of 017 >$PI.0f
	bytes_of 074 >$PI.3c
	bytes_of 060 >$PI.30
	dd if=/dev/zero of="$disk" bs=512 seek=400 count=1 oflag=direct &&
		sg_write_x --or --32 --lba=400 --num=1 --in=$PI.0f "$disk" &&
		sg_write_x --or --32 --bmop=1,7 --generation=0,7 --lba=400 --num=1 \
			--in=$PI.3c "$disk" &&
		fails_with 'generation does not match' \
			sg_write_x -v --or --32 --lba=400 --num=1 --in=$PI.0f "$disk" &&
		fails_with 'generation does not match' \
			sg_write_x -v --or --16 --lba=400 --num=1 --in=$PI.0f "$disk" &&
		sg_write_x --or --32 --generation=7,0 --lba=400 --num=1 --in=$PI.30 "$disk" &&
		dd if="$disk" bs=512 skip=400 count=1 iflag=direct | cmp - $PI.3c &&
		sg_opcodes "$disk" | grep -i 'orwrite(32)'
}

zeros() { # zeros N: prints ",0" N times
	printf ',0%.0s' $(seq "$1")
}

# The Application Tag mode page: LBA 0 to 999 have 1111h, the rest of 64 MiB has 2222h.
tags() {
	page="4a,2,0,cc$(zeros 12)"
	page="$page$(zeros 6),11,11$(zeros 14),3,e8"
	page="$page,80$(zeros 5),22,22$(zeros 6),3,e8$(zeros 5),1,fc,18"
	page="$page$(zeros 144)"
	dd if=$PI.data of="$disk" bs=512 seek=64 oflag=direct && # their tags are 0
		sg_wr_mode --page=0xa,2 --contents="$page" "$disk" &&
		sdparm --set=ATO=1,ATMPE=1 "$disk" &&
		sdparm --page=0xa,2 "$disk" | grep AT_COUNT && # the page has no saved values
		fails_with 'application tag check failed' \
			sg_verify -v --lba=64 --count=16 "$disk" &&
		dd if=$PI.data of="$disk" bs=512 seek=64 oflag=direct && # now FFFFh
		sg_verify -v --lba=64 --count=16 "$disk" &&
		sdparm --set=ATO=0,ATMPE=0 "$disk"
}

"$@"

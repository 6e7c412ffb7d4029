# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
# A machine without a disk boots Linux from iserd (RFC 4173): the DHCP server of this machine
# names the LUN, iPXE in the ROM of the other machine's network card boots GRUB from it, and
# Linux finds the target in the iBFT. guest/boot has the scripts on the LUN. Sourced by lib.sh.

BOOT_NAME=iqn.2026-01.org.example:diskless # of the initiator
BOOT_SECRET='correct horse battery' BOOT_WRONG='wrong horse battery'
BOOT_REVERSE='staple in the attic' BOOT_WRONG_REVERSE='staple in the cellar'

# boot_serve OPTION...: iserd with CHAP at both ends, and the DHCP server
boot_serve() {
	printf %s "$BOOT_SECRET" | boot_secret chap && printf %s "$BOOT_REVERSE" | boot_secret mutual
	dd if=/lab/boot.img of=/tmp/disk bs=1M conv=sparse || return 1
	iserd_at_far --buffered --chap-user me --chap-secret-file /run/chap \
		--chap-mutual-user disk --chap-mutual-secret-file /run/mutual /tmp/disk
}
boot_secret() { (umask 077 && cat >"/run/$1"); }
boot_change() { # boot_change FILE SECRET: new logins need the other secret
	printf %s "$2" | boot_secret "$1" && kill -HUP "$(cat /run/iserd.pid)"
}

# boot_offer [REVERSE]: the answers of the DHCP server; with REVERSE, iPXE and Linux authenticate
# the target, too. 17 is the root path (RFC 4173 §5), 203 the name of the initiator, and 175 has
# the options of iPXE: 190 and 191 the user and the secret, 192 and 193 those of the target.
boot_offer() {
	{
		printf 'start %s\nend %s\ninterface eth0\nlease_file /run/leases\npidfile /run/udhcpd.pid\n' "$HERE" "$HERE"
		printf 'opt subnet 255.255.255.0\nopt rootpath iscsi:%s::::%s\n' "$FAR" "$IQN_ISERD"
		printf 'opt 203 %s\nopt 175 %s' "$(printf %s "$BOOT_NAME" | boot_hex)" "$(boot_option 190 me)"
		boot_option 191 "$BOOT_SECRET"
		[ $# = 0 ] || { boot_option 192 disk && boot_option 193 "$1"; }
		echo
	} >/run/udhcpd.conf
	: >/run/leases
	[ ! -s /run/udhcpd.pid ] || kill "$(cat /run/udhcpd.pid)"
	busybox udhcpd -f /run/udhcpd.conf &
}
boot_hex() { od -An -v -tx1 | tr -d ' \n'; }
boot_option() { printf %02x%02x%s "$1" "${#2}" "$(printf %s "$2" | boot_hex)"; }

# ---- the other machine ----

boot_now() { # boot_now NAME: run.py starts it, with its console in out/second/NAME.txt
	BOOT_CONSOLE=$OUT/second/$1.txt
	echo "boot $1.txt" >>"$OUT/results"
}
# Its console, without the escape sequences of GRUB
boot_text() { sed "s/$(printf '\033')\[[0-9;?]*[A-Za-z]//g" "$BOOT_CONSOLE" 2>/dev/null | tr -d '\r'; }
boot_has() { boot_text | grep -q "$1"; }
boot_wait() { # boot_wait TENTHS TEXT: the console has it
	wait_for "$1" boot_has "$2\|^boot: FAILED" && boot_has "$2" && return
	boot_text | tail -30
	echo "the console has no \"$2\""
	return 1
}
boot_all() { # boot_all TEXT...
	boot_text
	for boot_line; do
		boot_has "$boot_line" || {
			echo "the console has no \"$boot_line\""
			return 1
		}
	done
}

# The root is on the LUN, which has what Linux wrote
boot_ends() {
	boot_wait 1200 'openiser boots Linux: the root of this Linux is on a LUN of iserd' || return 1
	boot_all 'root: /dev/sda1 / ext4' 'the sample is whole' 'boot: written' || return 1
	mkdir -p /mnt && modprobe -a loop ext4 &&
		mount -t ext4 -o loop,ro,offset=1048576 /tmp/disk /mnt || return 1
	cmp /mnt/written /mnt/boot/sample
	boot_status=$?
	umount /mnt
	return $boot_status
}

# CHAP of both ends: for iPXE, and by the iBFT for Linux
boot_mutual() {
	boot_offer "$BOOT_REVERSE" && boot_now mutual && boot_ends || return 1
	boot_all "iBFT initiator initiator-name $BOOT_NAME" "iBFT target0 target-name $IQN_ISERD" "iBFT target0 ip-addr $FAR" \
		'iBFT target0 chap-type 2' 'iBFT target0 chap-name me' "iBFT target0 chap-secret $BOOT_SECRET" \
		'iBFT target0 rev-chap-name disk' "iBFT target0 rev-chap-name-secret $BOOT_REVERSE" \
		"iscsistart -f: node.name = $IQN_ISERD" "iscsistart -b: .*$IQN_ISERD.* is operational now" \
		"iscsiadm -m fw: node.session.auth.username_in = disk" "iscsiadm -m session: .*$IQN_ISERD"
}
# The target alone authenticates. The secrets change between the login of iPXE and that of Linux.
boot_one_way() {
	boot_offer && boot_now one-way && boot_wait 900 'boot: GRUB starts' && boot_change chap "$BOOT_WRONG" &&
		boot_wait 600 'iscsistart -b ended with' && boot_change chap "$BOOT_SECRET" && boot_ends || return 1
	boot_all 'iBFT target0 chap-type 1' 'iscsistart -b: .*initiator reported error (24 - iSCSI login failed due to authorization failure)'
}
# iPXE does not boot if either end has a wrong secret
boot_denied() {
	boot_change chap "$BOOT_WRONG" && boot_offer "$BOOT_REVERSE" && boot_now denied && boot_wait 450 'No bootable device' || return 1
	boot_change chap "$BOOT_SECRET"
	boot_all 'Could not open SAN device: Operation not permitted' || return 1
	boot_offer "$BOOT_WRONG_REVERSE" && boot_now denied-target && boot_wait 450 'No bootable device' &&
		boot_all 'Could not open SAN device: Permission denied' && ! boot_has 'GRUB'
}

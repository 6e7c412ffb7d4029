#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# build.sh CACHE [boot]: makes the guest of the laboratory in the folder CACHE (1 GiB).
#
#   CACHE/vmlinux     Debian's kernel, uncompressed
#   CACHE/guest.cpio  its root tree, an initramfs: a few programs and modules
#   CACHE/boot.img    a disk with GRUB and a small Linux, from which another machine boots (with boot)
#
# Needs no root. Each product is made once, and made again when its inputs change; an
# incomplete product is never used.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
[ $# = 1 ] || [ "$*" = "$1 boot" ] || { echo "usage: $0 CACHE [boot]" >&2; exit 2; }
mkdir -p "$1"
cache=$(cd "$1" && pwd)
libs=usr/lib/x86_64-linux-gnu

die() {
	echo "lab: $*" >&2
	exit 1
}

words() { # words LIST: prints a list without its comments
	sed 's/#.*//' "$here/guest/$1" | tr -s ' \n' '  '
}

step() { # step TEXT FUNCTION: runs the function and prints its duration
	local began=$SECONDS
	"$2"
	[ $((SECONDS - began)) -lt 2 ] || printf 'lab: %s: %d s\n' "$1" $((SECONDS - began)) >&2
}

newer() { # newer PRODUCT SOURCE...: the product is complete and newer than all sources
	local product=$1 s
	shift
	[ -e "$product" ] || return 1
	for s; do
		[ "$product" -nt "$s" ] || return 1
	done
}

# ---- downloads ----

kernel_version() {
	local file=$cache/kernel-version package
	if [ ! -s "$file" ]; then
		package=$(apt-cache depends linux-image-amd64 2>/dev/null |
			sed -n 's/.*Depends: linux-image-\([0-9].*\)/\1/p' | head -1)
		[ -n "$package" ] || die "apt knows no linux-image-amd64: apt-get update?"
		echo "$package" >"$file"
	fi
	cat "$file"
}

fetch() { # fetch PACKAGE: downloads its file to CACHE/debs; sets $deb to the name
	mkdir -p "$cache/debs"
	deb=$(find "$cache/debs" -name "$1_*.deb" | head -1)
	[ -z "$deb" ] || return 0
	mkdir -p "$cache/debs/new"
	(cd "$cache/debs/new" && apt-get download -qq "$1" 2>"$cache/fetch.log") ||
		die "can't fetch $1: $(tail -1 "$cache/fetch.log")"
	mv "$cache/debs/new/$1"_*.deb "$cache/debs/"
	deb=$(find "$cache/debs" -name "$1_*.deb" | head -1)
}

# All dependencies of guest/packages.txt, resolved by apt as for an empty machine, with
# a private state instead of the state of this machine.
fetch_programs() {
	local apt=$cache/apt
	rm -rf "$apt"
	mkdir -p "$apt/archives/partial"
	: >"$apt/status"
	# shellcheck disable=SC2046 # one word each
	apt-get -qq -y -o Debug::NoLocking=1 -o APT::Install-Recommends=0 \
		-o APT::Sandbox::User= -o "Dir::State::status=$apt/status" \
		-o "Dir::Cache::archives=$apt/archives" \
		--download-only install $(words packages.txt) >"$cache/fetch.log" 2>&1 ||
		die "can't fetch the guest's programs: $(tail -1 "$cache/fetch.log")"
}

# ---- the kernel ----

kernel() {
	newer "$cache/vmlinux" "$here/vmlinux.py" && return
	fetch "linux-image-$version"
	rm -rf "$cache/kernel"
	mkdir -p "$cache/kernel"
	dpkg-deb -x "$deb" "$cache/kernel"
	# The ELF file boots by PVH, without a decompressor, which needs seconds under
	# emulation.
	python3 "$here/vmlinux.py" "$cache/kernel/boot/vmlinuz-$version" "$cache/vmlinux"
}

# Debian's kernel has no siw: build its folder of the kernel source with Debian's headers.
siw() {
	local headers=$cache/headers source=$cache/source series package dir
	newer "$cache/siw.ko" "$cache/vmlinux" && return
	series=$(echo "$version" | cut -d. -f1,2)
	rm -rf "$headers" "$source"
	mkdir -p "$headers" "$source"
	for package in "linux-headers-$version" "linux-headers-${version%-amd64}-common" "linux-kbuild-$series"; do
		fetch "$package"
		dpkg-deb -x "$deb" "$headers"
	done
	sed -i "s#/usr/src/#$headers/usr/src/#; s#/usr/lib/#$headers/usr/lib/#" \
		"$headers/usr/src/linux-headers-$version/Makefile"
	fetch "linux-source-$series"
	dpkg-deb --fsys-tarfile "$deb" | tar -xO "./usr/src/linux-source-$series.tar.xz" | xz -dc |
		tar -x -C "$source" --wildcards '*/drivers/infiniband/sw/siw/*'
	dir=$source/linux-source-$series/drivers/infiniband/sw/siw
	make -s -C "$headers/usr/src/linux-headers-$version" "M=$dir" CONFIG_RDMA_SIW=m \
		CONFIG_DEBUG_INFO_BTF_MODULES= modules >"$cache/siw.log" 2>&1 ||
		die "siw does not build: $(tail -3 "$cache/siw.log")"
	strip -g -o "$cache/siw.ko" "$dir/siw.ko"
}

# The module tree that modprobe reads: Debian's, plus siw, minus compression.
module_tree() {
	local tree=$cache/kernel/lib/modules/$version
	newer "$cache/modules.done" "$cache/siw.ko" && return
	mkdir -p "$tree/extra"
	cp "$cache/siw.ko" "$tree/extra/"
	find "$tree" -name '*.ko.xz' -exec xz -d {} +
	depmod -b "$cache/kernel" "$version"
	touch "$cache/modules.done"
}

# ---- the root tree ----

unpack() {
	local d f root=$cache/root
	newer "$root.done" "$here/guest/packages.txt" && return
	fetch_programs
	rm -rf "$root"
	mkdir -p "$root"/usr/{bin,sbin,lib,lib64}
	for d in bin sbin lib lib64; do ln -s "usr/$d" "$root/$d"; done
	for f in "$cache"/apt/archives/*.deb; do
		dpkg-deb --fsys-tarfile "$f" | tar -x -C "$root" --keep-directory-symlink --no-same-owner \
			--exclude=./dev --exclude=./usr/share/{doc,man,locale,perl,python3}
	done
	# its dependencies are for other agents: clouds, browsers
	fetch fence-agents
	dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$root" ./usr/sbin/fence_scsi ./usr/share/fence/fencing.py
	for f in librados.so.2 librbd.so.1 libgfapi.so.0 libnbd.so.0 libpmem.so.1 libpmemblk.so.1; do
		stand_in "$f" "$root/usr/bin/fio"
	done
	touch "$root.done"
}

# stand_in LIBRARY PROGRAM: makes a library with the functions of LIBRARY that PROGRAM links
# to; a call of one ends the process. fio needs 90 MiB of Ceph, Gluster, ... for engines that
# no guest uses.
stand_in() {
	local library=$cache/root/$libs/$1 code=$cache/stand-in
	nm -D --undefined-only "$2" | sed -n 's/^ *U //p' | sort >"$code.wanted"
	nm -D --defined-only "$library" | sed 's/^[^ ]* [^ ]* //; s/@@/@/' | sort | comm -12 - "$code.wanted" >"$code.names"
	sed 's/@.*//; s/.*/void &(void); void &(void) { __builtin_trap(); }/' "$code.names" >"$code.c"
	awk -F@ 'NF == 2 { of[$2] = of[$2] $1 "; " } 
		END { for (v in of) print v " { global: " of[v] "};"; if (!length(of)) print "{ global: *; };" }' "$code.names" >"$code.map"
	rm "$library" # a link
	gcc-12 -shared -fPIC "-Wl,-soname,$1" "-Wl,--version-script=$code.map" -o "$library" "$code.c" ||
		die "no stand-in for $1"
}

run_unpacked() { # runs a program of the unpacked packages, with their libraries
	"$cache/root/lib64/ld-linux-x86-64.so.2" --inhibit-cache \
		--library-path "$cache/root/$libs:$cache/root/$libs/systemd:$cache/root/usr/lib" "$@"
}

find_program() { # prints its path in the unpacked packages
	local d
	for d in usr/bin usr/sbin usr/lib/open-iscsi; do
		if [ -e "$cache/root/$d/$1" ]; then
			echo "$cache/root/$d/$1"
			return
		fi
	done
	die "no program $1 in guest/packages.txt"
}

copy_programs() { # copy_programs LIST
	local p f
	cp "$(command -v busybox)" "$tree/usr/bin/busybox"
	for p in $(busybox --list); do
		[ "$p" = busybox ] || ln -s busybox "$tree/usr/bin/$p"
	done
	for p in $(words "$1"); do
		f=$(find_program "$p")
		rm -f "$tree/usr/bin/$p"
		cp -L "$f" "$tree/usr/bin/$p"
	done
	ln -sf dash "$tree/usr/bin/sh"
}

# The user-space providers of RDMA devices are loaded by name.
copy_providers() {
	local p
	mkdir -p "$tree/$libs/libibverbs" "$tree/etc/libibverbs.d"
	for p in siw rxe; do
		cp "$cache/root/$libs/libibverbs/lib$p"-*.so "$tree/$libs/libibverbs/"
		cp "$cache/root/etc/libibverbs.d/$p.driver" "$tree/etc/libibverbs.d/"
	done
}

# What multipathd loads by name, and the rules of udev for its paths and maps.
copy_multipath() {
	local f
	mkdir -p "$tree/usr/lib/multipath" "$tree/usr/lib/udev/rules.d"
	for f in libchecktur libprio{alua,const,sysfs}; do
		cp "$cache/root/usr/lib/multipath/$f.so" "$tree/usr/lib/multipath/"
	done
	for f in 55-dm 55-scsi-sg3_id 56-dm-mpath 60-multipath 95-dm-notify; do
		cp "$cache/root/usr/lib/udev/rules.d/$f.rules" "$tree/usr/lib/udev/rules.d/"
	done
	ln -s udevadm "$tree/usr/bin/systemd-udevd"
}

copy_libraries() {
	local root=$cache/root f
	for f in "$tree"/usr/bin/* "$tree/$libs"/libibverbs/*.so "$tree"/usr/lib/multipath/*.so; do
		# busybox is static; links select its commands
		[ -L "$f" ] || [ ! -e "$f" ] || [ "${f##*/}" = busybox ] || run_unpacked --list "$f" 2>/dev/null || true
	done | sed -n 's/.* => \([^ ]*\) .*/\1/p' | sort -u >"$cache/libraries"
	while read -r f; do
		case $f in
		"$root"/*) cp -L "$f" "$tree/$libs/" ;;
		*) die "the guest's programs want $f: not in guest/packages.txt" ;;
		esac
	done <"$cache/libraries"
	cp -L "$root/lib64/ld-linux-x86-64.so.2" "$tree/usr/lib64/"
	cp -L "$root/$libs/libgcc_s.so.1" "$tree/$libs/" # loaded by dlopen when a thread ends
}

copy_modules() { # copy_modules LIST
	local from=$cache/kernel/lib/modules/$version to=$tree/usr/lib/modules/$version m f
	mkdir -p "$to"
	for m in $(words "$1"); do
		modprobe -d "$cache/kernel" -S "$version" --show-depends "$m" |
			sed -n 's/^insmod \([^ ]*\).*/\1/p' || die "no module $m"
	done | sort -u | while read -r f; do
		mkdir -p "$to/$(dirname "${f#"$from/"}")"
		cp "$f" "$to/${f#"$from/"}"
	done
	cp "$from"/modules.{builtin,builtin.modinfo,order} "$to/"
	depmod -b "$tree" "$version"
}

copy_settings() {
	cp -r "$cache/root/etc/iscsi" "$cache/root/etc/mke2fs.conf" "$tree/etc/"
	echo 'InitiatorName=iqn.2026-01.org.example:lab-kernel' >"$tree/etc/iscsi/initiatorname.iscsi"
	printf 'root:x:0:0::/root:/bin/sh\ntcpdump:x:100:100::/:/bin/false\n' >"$tree/etc/passwd"
	printf 'root:x:0:\ntcpdump:x:100:\n' >"$tree/etc/group"
	echo '127.0.0.1 localhost lab' >"$tree/etc/hosts"
}

initramfs() {
	local product=$cache/guest.cpio
	newer "$product" "$here/build.sh" "$here"/guest/{packages,programs,modules}.txt "$here/guest/init" \
		"$cache/root.done" "$cache/modules.done" && return
	tree=$cache/tree
	empty_tree
	copy_programs programs.txt
	copy_providers
	copy_multipath
	copy_libraries
	copy_modules modules.txt
	copy_settings
	install -m 755 "$here/guest/init" "$tree/init"
	pack_tree "$product"
}

empty_tree() {
	local d
	rm -rf "$tree"
	mkdir -p "$tree"/usr/{bin,lib,lib64} "$tree/$libs" "$tree"/{proc,sys,dev,run,tmp,lab,root} \
		"$tree"/etc "$tree"/var/{lib/iscsi,tmp}
	for d in bin lib lib64; do ln -s "usr/$d" "$tree/$d"; done
	ln -s usr/bin "$tree/sbin"
	ln -s ../run "$tree/var/run"
	ln -s bin "$tree/usr/sbin"
}

pack_tree() { # pack_tree ARCHIVE
	(cd "$tree" && find . | cpio -o -H newc -R 0:0 --quiet | zstd -q -6 -T1 -f -o "$1.new")
	mv "$1.new" "$1"
}

# ---- the disk of the boot-* jobs ----

# A partition table with one partition, GRUB before it, and in it a root tree whose /boot has
# the kernel and the same tree as an initramfs.
boot_disk() {
	local product=$cache/boot.img files="$here/guest/boot" part=$cache/boot.part
	newer "$product" "$here/build.sh" "$files"/* "$cache/root.done" "$cache/modules.done" && return
	tree=$cache/boot-tree
	empty_tree
	copy_programs boot/programs.txt
	copy_libraries
	copy_modules boot/modules.txt
	copy_settings
	install -m 755 "$files/initramfs" "$tree/init"
	pack_tree "$cache/boot.cpio"
	mkdir -p "$tree/boot/grub"
	cp "$files/init" "$tree/boot/init"
	cp "$files/grub.cfg" "$tree/boot/grub/"
	cp "$cache/kernel/boot/vmlinuz-$version" "$tree/boot/vmlinuz"
	mv "$cache/boot.cpio" "$tree/boot/initrd"
	head -c 1M /dev/urandom >"$tree/boot/sample"
	sha256sum <"$tree/boot/sample" >"$tree/boot/sample.sha256"
	echo "the root of this Linux is on a LUN of iserd" >"$tree/marker"
	rm -f "$part"
	truncate -s 95M "$part"
	mkfs.ext4 -q -F -L lun-root -m 0 -E root_owner=0:0 -d "$tree" "$part"
	boot_loader "$product.new"
	dd if="$part" of="$product.new" bs=1M seek=1 conv=notrunc,sparse status=none
	rm "$part"
	mv "$product.new" "$product"
}

# boot_loader DISK: boot.img of GRUB reads the rest from the next sector on
boot_loader() {
	local grub=$cache/root/usr/lib/grub/i386-pc
	run_unpacked "$cache/root/usr/bin/grub-mkimage" -d "$grub" -O i386-pc -p '(hd0,msdos1)/boot/grub' -o "$cache/core.img" \
		biosdisk part_msdos ext2 linux normal echo reboot
	[ "$(stat -c %s "$cache/core.img")" -le $((2047 * 512)) ] || die "GRUB does not fit before the partition"
	rm -f "$1"
	truncate -s 96M "$1"
	dd if="$grub/boot.img" of="$1" bs=440 count=1 conv=notrunc status=none
	# active, type 83h, from sector 2048 on, 95 MiB
	printf '\200\0\0\0\203\0\0\0\0\010\0\0\0\370\002\0' | dd of="$1" bs=1 seek=446 conv=notrunc status=none
	printf '\125\252' | dd of="$1" bs=1 seek=510 conv=notrunc status=none
	dd if="$cache/core.img" of="$1" bs=512 seek=1 conv=notrunc status=none
}

[ "$(dpkg --print-architecture)" = amd64 ] || die "the guest is built for amd64 only"
version=$(kernel_version)
step "kernel $version fetched and unpacked" kernel
step "siw built from the kernel's source" siw
step "module tree" module_tree
step "programs fetched and unpacked" unpack
step "initramfs" initramfs
[ $# = 1 ] || step "disk to boot from" boot_disk

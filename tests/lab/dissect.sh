#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# dissect.sh FILE.pcap [TSHARK OPTION]...: decodes a capture of iSER over iWARP.
# Two dissectors that would accept any Send are disabled.
here=$(dirname "$0")
[ $# -gt 0 ] || {
	echo "usage: $0 FILE.pcap [TSHARK OPTION]..." >&2
	exit 2
}
exec tshark -X "lua_script:$here/iser.lua" --disable-protocol rpcordma --disable-protocol smb_direct -r "$@"
